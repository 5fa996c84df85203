import { DomainError } from '@scheduling/errors';
import { transactOnce } from '@scheduling/postgres';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { hashOfSecret, newCalendarSecret } from './calendar-secret.ts';
import { type CalendarKey, type CalendarSubscriptionRow, requireCalendarById } from './calendar-subscription.ts';

interface ReplacedSecret {
  row: CalendarSubscriptionRow;
  /** Undefined for a repeated request. */
  secret: string | undefined;
}

/**
 * Gives a subscription another secret, and returns it unless the request is a repetition: only its hash is stored. The
 * URL with the previous one is dead. What is stored of its events remains, so that those in a calendar that goes on with
 * the new URL are replaced. Rejects with `calendar.not_found` or `provider.not_found`.
 */
export async function replaceCalendarSecret(
  dependencies: CalendarDependencies,
  key: CalendarKey,
): Promise<ReplacedSecret> {
  const { crmId } = key;
  const { id: providerId } = await requireProvider(dependencies, key);
  return transactOnce<CalendarSchema, ReplacedSecret>(dependencies.database, crmId, {
    work: async (tx) => {
      const secret = newCalendarSecret();
      const row = await tx
        .updateTable('calendarSubscription')
        .set({ secretHash: hashOfSecret(secret) })
        .where('crmId', '=', crmId)
        .where('providerId', '=', providerId)
        .where('reference', '=', key.calendarReference)
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) throw new DomainError('calendar.not_found');
      return { row, secret };
    },
    keep: ({ row }) => ({ resourceIds: [row.id], created: false }),
    replay: async (tx, { resourceIds }) => ({
      row: await requireCalendarById(tx, crmId, resourceIds[0]!),
      secret: undefined,
    }),
  });
}
