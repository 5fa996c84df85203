import { DomainError } from '@scheduling/errors';
import { transactOnce } from '@scheduling/postgres';
import type { ProviderKey } from '@scheduling/service';
import { sql, type Transaction } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { hashOfSecret, newCalendarSecret } from './calendar-secret.ts';
import {
  type CalendarContent,
  type CalendarSubscriptionRow,
  requireCalendarById,
  selectCalendars,
} from './calendar-subscription.ts';

interface CreatedCalendar {
  row: CalendarSubscriptionRow;
  /** Undefined for one that existed, and for a repeated request. */
  secret: string | undefined;
  created: boolean;
}

const maxCalendars = 100;

/**
 * Creates a subscription, and returns its secret: only now, because only its hash is stored. For an existing one with
 * this reference and the same content nothing is changed. Rejects with `calendar.reference_taken`,
 * `calendar.limit_reached` or `provider.not_found`.
 */
export async function createCalendar(
  dependencies: CalendarDependencies,
  { reference, content, ...key }: ProviderKey & { reference: string; content: CalendarContent },
): Promise<CreatedCalendar> {
  const { crmId } = key;
  const { id: providerId } = await requireProvider(dependencies, key);
  return transactOnce(dependencies.database, crmId, {
    work: (tx) => insertCalendar(tx, { crmId, providerId, reference }, content),
    keep: ({ row, created }) => ({ resourceIds: [row.id], created }),
    replay: async (tx, { resourceIds, created }) => ({
      row: await requireCalendarById(tx, crmId, resourceIds[0]!),
      secret: undefined,
      created,
    }),
  });
}

async function insertCalendar(
  tx: Transaction<CalendarSchema>,
  { crmId, providerId, reference }: { crmId: string; providerId: string; reference: string },
  content: CalendarContent,
): Promise<CreatedCalendar> {
  // The reference is looked up, and the subscriptions of the provider are counted below.
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`calendars ${crmId}`}, 0))`.execute(tx);
  const same = await selectCalendars(tx, crmId).where('reference', '=', reference).executeTakeFirst();
  if (same !== undefined) {
    if (same.providerId !== providerId || !haveSameContent(same, content))
      throw new DomainError('calendar.reference_taken');
    return { row: same, secret: undefined, created: false };
  }
  const { count } = await tx
    .selectFrom('calendarSubscription')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .executeTakeFirstOrThrow();
  if (count >= maxCalendars) throw new DomainError('calendar.limit_reached');
  const secret = newCalendarSecret();
  const row = await tx
    .insertInto('calendarSubscription')
    .values({ crmId, id: randomUUIDv7(), providerId, reference, ...content, secretHash: hashOfSecret(secret) })
    .returningAll()
    .executeTakeFirstOrThrow();
  return { row, secret, created: true };
}

function haveSameContent(one: CalendarContent, other: CalendarContent): boolean {
  return (['resourceReference', 'contactReference', 'details'] as const).every((name) => one[name] === other[name]);
}
