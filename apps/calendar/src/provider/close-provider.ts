import { DomainError } from '@scheduling/errors';
import { describeCount, maxCounted } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import type { ProviderRow } from './provider-copy.ts';

type ProviderVersion = Pick<ProviderRow, 'crmId' | 'id' | 'version'>;

/**
 * Removes the copy of a provider, so that nothing can refer to it, and stores no other one of this version or an older
 * one (ADR 43). It stays closed in a newer version for which another deletion has closed it. What somebody was to confirm
 * on its booking page is deleted. Rejects with `provider.in_use` while anything of the CRM refers to it.
 */
export async function closeProvider(
  { database }: Pick<CalendarDependencies, 'database'>,
  provider: ProviderVersion,
): Promise<void> {
  const { crmId, id, version } = provider;
  await database.transaction(async (tx) => {
    // No copy is stored meanwhile.
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`provider ${id}`}, 0))`.execute(tx);
    // Waits for what is being stored for it, and delays what comes later until there is no such provider.
    await tx.selectFrom('provider').select('id').where('crmId', '=', crmId).where('id', '=', id).forUpdate().execute();
    await requireUnused(tx, provider);
    await tx.deleteFrom('pendingBooking').where('crmId', '=', crmId).where('providerId', '=', id).execute();
    await sql`
      WITH removed AS (DELETE FROM booking_rules WHERE crm_id = ${crmId} AND provider_id = ${id} RETURNING to_jsonb(booking_rules) AS rules)
      INSERT INTO closed_provider AS known (crm_id, id, version, rules) VALUES (${crmId}, ${id}, ${version}, (SELECT rules FROM removed))
      ON CONFLICT (crm_id, id) DO UPDATE
        SET version = greatest(known.version, excluded.version), closed_at = excluded.closed_at, rules = coalesce(excluded.rules, known.rules)`.execute(
      tx,
    );
    await tx.deleteFrom('provider').where('crmId', '=', crmId).where('id', '=', id).execute();
  });
}

/** What a provider can have, as the message names it, by table. */
const kinds = {
  appointment: 'appointments, also past or cancelled ones',
  timeslot: 'timeslots',
  resource_hours: 'resources with opening hours',
  resource_block: 'blocks',
  invitation: 'invitations',
  calendar_subscription: 'calendars',
};

async function requireUnused(tx: Transaction<CalendarSchema>, { crmId, id }: ProviderVersion): Promise<void> {
  const counts = Object.keys(kinds).map(
    (table) => sql`
      SELECT ${table} AS name, count(*)::integer AS count
        FROM (SELECT FROM ${sql.table(table)} WHERE crm_id = ${crmId} AND provider_id = ${id} LIMIT ${maxCounted + 1}) AS counted`,
  );
  const { rows } = await sql<{
    name: keyof typeof kinds;
    count: number;
  }>`${sql.join(counts, sql` UNION ALL `)}`.execute(tx);
  const used = rows.flatMap(({ name, count }) => (count === 0 ? [] : [`${kinds[name]} (${describeCount(count)})`]));
  if (used.length > 0)
    throw new DomainError('provider.in_use', {
      text: `The provider cannot be deleted, because it has ${used.join('; ')}.`,
    });
}
