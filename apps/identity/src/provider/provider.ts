import { DomainError } from '@scheduling/errors';
import { isUuid } from '@scheduling/runtime';
import type { Kysely, Selectable, Transaction } from 'kysely';
import type { IdentitySchema, ProviderTable } from '../db/schema.ts';
import { parseTimeZone } from '../field/time-zone.ts';

/** With the references of its owner and its account. */
export type ProviderRow = Selectable<ProviderTable> & { ownerReference: string; accountReference: string };

export type ProviderKey = { crmId: string } & ({ reference: string } | { id: string });

export async function findProvider(db: Kysely<IdentitySchema>, key: ProviderKey): Promise<ProviderRow | undefined> {
  if ('id' in key && !isUuid(key.id)) return undefined;
  const query = selectProviders(db, key.crmId);
  return 'id' in key
    ? query.where('provider.id', '=', key.id).executeTakeFirst()
    : query.where('provider.reference', '=', key.reference).executeTakeFirst();
}

/** For what will refer to the provider: until the end of the transaction nobody can delete it. */
export async function holdProvider(
  tx: Transaction<IdentitySchema>,
  { crmId, reference }: { crmId: string; reference: string },
): Promise<ProviderRow> {
  return selectProviders(tx, crmId)
    .where('provider.reference', '=', reference)
    .forKeyShare('provider')
    .executeTakeFirstOrThrow(() => new DomainError('provider.not_found'));
}

/** Those of a CRM. */
export function selectProviders(db: Kysely<IdentitySchema>, crmId: string) {
  return db
    .selectFrom('provider')
    .innerJoin('appUser', (join) =>
      join.onRef('appUser.crmId', '=', 'provider.crmId').onRef('appUser.id', '=', 'provider.ownerId'),
    )
    .innerJoin('account', (join) =>
      join.onRef('account.crmId', '=', 'provider.crmId').onRef('account.id', '=', 'provider.accountId'),
    )
    .selectAll('provider')
    .select((select) => select.ref('appUser.reference').$notNull().as('ownerReference'))
    .select('account.reference as accountReference')
    .where('provider.crmId', '=', crmId);
}

/** The name in its usual spelling. Rejects with `provider.time_zone_unknown`. */
export function checkTimeZone(given: string): string {
  const timeZone = parseTimeZone(given);
  if (timeZone === undefined) {
    throw new DomainError('provider.time_zone_unknown', {
      errors: [{ pointer: '/timeZone', detail: 'must be the IANA name of a time zone' }],
    });
  }
  return timeZone;
}
