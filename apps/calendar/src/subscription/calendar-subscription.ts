import { DomainError } from '@scheduling/errors';
import type { Kysely, Selectable, Transaction } from 'kysely';
import type { CalendarSchema, CalendarSubscriptionTable } from '../db/schema.ts';

export type CalendarSubscriptionRow = Selectable<CalendarSubscriptionTable>;

/** Which appointments it has, and what it tells of those who take part. */
export type CalendarContent = Pick<CalendarSubscriptionRow, 'resourceReference' | 'contactReference' | 'details'>;

export interface CalendarKey {
  crmId: string;
  providerReference: string;
  calendarReference: string;
}

export function selectCalendars(db: Kysely<CalendarSchema>, crmId: string) {
  return db.selectFrom('calendarSubscription').selectAll().where('crmId', '=', crmId);
}

/** The subscription of a repeated request. Rejects with `calendar.not_found` if it was deleted since. */
export async function requireCalendarById(
  tx: Transaction<CalendarSchema>,
  crmId: string,
  id: string,
): Promise<CalendarSubscriptionRow> {
  const row = await selectCalendars(tx, crmId).where('id', '=', id).executeTakeFirst();
  if (row === undefined) throw new DomainError('calendar.not_found');
  return row;
}
