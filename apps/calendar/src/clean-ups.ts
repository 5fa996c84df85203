import type { CleanUp } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { CalendarSchema } from './db/schema.ts';
import type { CalendarDependencies } from './dependencies.ts';
import { removeExpiredInvitations } from './invitation/remove-expired-invitations.ts';
import { anonymiseOldParticipations } from './participation/anonymise-old-participations.ts';
import { settleClosedProviders } from './provider/settle-closed-providers.ts';

const minuteMs = 60 * 1_000;
const hourMs = 60 * minuteMs;

/**
 * What calendar removes by itself. Expired reservations have a loop of their own (`start-reservation-sweeper.ts`),
 * because they must be gone within seconds.
 */
export function calendarCleanUps(
  dependencies: Pick<CalendarDependencies, 'identity'>,
  anonymiseAfterDays: number,
): CleanUp<CalendarSchema>[] {
  const remove = (database: CalendarDependencies['database'], limit: number): Promise<number> =>
    anonymiseOldParticipations({ ...dependencies, database, anonymiseAfterDays }, limit);
  return [
    { name: 'the anonymisation of old participations', remove, everyMs: hourMs, batch: 500 },
    {
      name: 'the end of deletions of providers',
      remove: (database, limit) => settleClosedProviders({ ...dependencies, database }, limit),
      everyMs: minuteMs,
      batch: 100,
    },
    { table: 'pendingBooking', column: 'expiresAt', before: sql<Date>`clock_timestamp()`, everyMs: minuteMs },
    { name: 'the removal of expired invitations', remove: removeExpiredInvitations, everyMs: hourMs, batch: 500 },
    {
      table: 'verificationMail',
      column: 'sentAt',
      before: sql<Date>`clock_timestamp() - interval '24 hours'`,
      everyMs: hourMs,
    },
  ];
}
