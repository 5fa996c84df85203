import { calendarErrors } from './calendar-errors.ts';
import { customerErrors } from './customer-errors.ts';
import { identityErrors } from './identity-errors.ts';
import { notificationErrors } from './notification-errors.ts';
import { platformErrors } from './platform-errors.ts';

/** Every code that a service can answer another service or the gateway with. The gateway adds those of HTTP itself. */
export const errorCodes = { ...identityErrors, ...calendarErrors, ...customerErrors, ...notificationErrors, ...platformErrors };

export type ErrorCode = keyof typeof errorCodes;
