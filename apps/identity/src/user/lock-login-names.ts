import { sql, type Transaction } from 'kysely';
import type { CrmRow } from '../crm/crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import { addressFamilies } from '../field/email-address.ts';
import type { UserReference } from './get-user.ts';
import { loginNameKey } from './login-name-key.ts';

/** This service's advisory locks have two-part keys; the outbox relay's has a single one, so they never collide. */
const loginNameLocks = 1;

/**
 * Locks those of a person's reference, e-mail address and username that are given until the end of the transaction, so that what the caller reads
 * about them stays true until it writes. The unique indexes alone would report a conflict only after the decision: the rule would have to be chosen again after each
 * violation, and of twenty requests with one address nineteen would try up to nineteen derived ones. With the locks the rule is chosen once, and
 * the indexes remain as the guarantee.
 *
 * An address shares its locks with all addresses derived from it. All locks are taken in the order of their keys, which prevents deadlocks; names
 * whose hashes collide merely wait longer than necessary.
 */
export function lockLoginNames(
  tx: Transaction<IdentitySchema>,
  crm: CrmRow,
  { reference, email, username }: { reference?: string; email?: string | undefined; username?: string | undefined },
): Promise<void> {
  return lock(tx, [
    ...(reference === undefined ? [] : [referenceName(crm.crmId, reference)]),
    ...(email === undefined ? [] : addressFamilies(email).map((family) => `email ${loginNameKey(crm, family)}`)),
    ...(username === undefined ? [] : [`username ${loginNameKey(crm, username)}`]),
  ]);
}

/** The lock on the reference alone. */
export function lockReference(tx: Transaction<IdentitySchema>, { crmId, reference }: UserReference): Promise<void> {
  return lock(tx, [referenceName(crmId, reference)]);
}

function referenceName(crmId: string, reference: string): string {
  return `reference ${crmId} ${reference}`;
}

async function lock(tx: Transaction<IdentitySchema>, names: string[]): Promise<void> {
  await sql`
    SELECT pg_advisory_xact_lock(${loginNameLocks}, key)
    FROM (SELECT DISTINCT hashtext(name) AS key FROM unnest(${names}::text[]) AS name ORDER BY key) AS keys`.execute(tx);
}
