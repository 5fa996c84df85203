import { calendarErrors } from './calendar-errors.ts';
import { customerErrors } from './customer-errors.ts';
import { identityErrors } from './identity-errors.ts';
import { notificationErrors } from './notification-errors.ts';
import { platformErrors } from './platform-errors.ts';
import { webhookErrors } from './webhook-errors.ts';

/** Every code that a service can return to another service or the gateway. The gateway adds its own codes for HTTP. */
export const errorCodes = {
  ...identityErrors,
  ...calendarErrors,
  ...customerErrors,
  ...notificationErrors,
  ...webhookErrors,
  ...platformErrors,
};

export type ErrorCode = keyof typeof errorCodes;
