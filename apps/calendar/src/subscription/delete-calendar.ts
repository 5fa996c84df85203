import { DomainError } from '@scheduling/errors';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import type { CalendarKey } from './calendar-subscription.ts';

/**
 * Deletes a subscription and what is stored of its events: its URL is dead. Rejects with `calendar.not_found` or
 * `provider.not_found`.
 */
export async function deleteCalendar(dependencies: CalendarDependencies, key: CalendarKey): Promise<void> {
  const { id: providerId } = await requireProvider(dependencies, key);
  const { numDeletedRows } = await dependencies.database.kysely
    .deleteFrom('calendarSubscription')
    .where('crmId', '=', key.crmId)
    .where('providerId', '=', providerId)
    .where('reference', '=', key.calendarReference)
    .executeTakeFirst();
  if (numDeletedRows === 0n) throw new DomainError('calendar.not_found');
}
