import { DomainError } from '@scheduling/errors';
import { describeCount, maxCounted } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { CustomerDependencies } from './customer.ts';
import { decideCustomer } from './provisional-customer.ts';

export interface ProviderClosing {
  crmId: string;
  providerId: string;
  version: number;
}

/**
 * From now on no customer is created for this version of a provider, which calendar deletes (ADR 43). Rejects with
 * `provider.in_use` while it has customers. Those that are provisional by then are decided: one for whom a booking was made
 * exists, also if that booking has been deleted since.
 */
export async function closeProvider(dependencies: CustomerDependencies, closing: ProviderClosing): Promise<void> {
  await close(dependencies, closing);
  let existing = 0;
  let undecided = await listProvisional(dependencies, closing);
  while (undecided.length > 0) {
    const decided = await Promise.all(undecided.map((customer) => decideCustomer(dependencies, customer)));
    existing += decided.filter((exists) => exists).length;
    undecided = await listProvisional(dependencies, closing);
  }
  if (existing > 0) throw inUse(existing);
}

/** Some of the provisional customers of the provider. */
function listProvisional(
  { database: { kysely } }: CustomerDependencies,
  { crmId, providerId }: ProviderClosing,
): Promise<{ crmId: string; id: string }[]> {
  return kysely
    .selectFrom('customer')
    .select(['crmId', 'id'])
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .where('provisionalUntil', 'is not', null)
    .limit(100)
    .execute();
}

async function close(
  { database }: CustomerDependencies,
  { crmId, providerId, version }: ProviderClosing,
): Promise<void> {
  await database.transaction(async (tx) => {
    // Waits for those who are creating customers.
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`provider ${providerId}`}, 0))`.execute(tx);
    const { count } = await tx
      .selectFrom(
        tx
          .selectFrom('customer')
          .select('id')
          .where('crmId', '=', crmId)
          .where('providerId', '=', providerId)
          .where('provisionalUntil', 'is', null)
          .limit(maxCounted + 1)
          .as('counted'),
      )
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    if (count > 0) throw inUse(count);
    await tx
      .insertInto('closedProvider')
      .values({ crmId, providerId, version })
      .onConflict((conflict) =>
        conflict.columns(['crmId', 'providerId']).doUpdateSet({
          // Another deletion may have closed a newer version, which stays closed.
          version: sql<number>`greatest(closed_provider.version, excluded.version)`,
          closedAt: sql`now()`,
        }),
      )
      .execute();
  });
}

function inUse(count: number): DomainError {
  return new DomainError('provider.in_use', {
    text: `The provider cannot be deleted, because it has customers (${describeCount(count)}).`,
  });
}
