import { type RawBuilder, sql, type Transaction } from 'kysely';
import type { CrmRow } from '../crm/crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import { addressFamilies } from '../field/email-address.ts';
import type { UserReference } from './get-user.ts';
import { scopeOf } from './login-names.ts';

/** This service's advisory locks have two-part keys; the outbox relay's has a single one, so they never collide. */
const loginNameLocks = 1;

/**
 * Locks those of a person's reference, e-mail address and username that are given until the end of the transaction, so
 * that what the caller reads about them stays true until it writes. Names that people take for one have one lock, and
 * no unique index. With unique indexes alone, a conflict would be reported only after the decision: the rule would have
 * to be chosen again after each violation, and of twenty requests with one address nineteen would try up to nineteen
 * derived ones. They remain as the guarantee that there are no exact duplicates.
 *
 * An address shares its locks with all addresses derived from it. All locks are taken in the order of their keys, which
 * prevents deadlocks; names whose hashes collide merely wait longer than necessary.
 */
export function lockLoginNames(
  tx: Transaction<IdentitySchema>,
  crm: CrmRow,
  { reference, email, username }: { reference?: string; email?: string | undefined; username?: string | undefined },
): Promise<void> {
  const scope = scopeOf(crm);
  const families = email === undefined ? [] : addressFamilies(email);
  const usernames = username === undefined ? [] : [username];
  const references = reference === undefined ? [] : [referenceName(crm.crmId, reference)];
  return lock(
    tx,
    sql`
      SELECT name FROM unnest(${references}::text[]) AS name
       UNION ALL
      SELECT 'email ' || ${scope} || address_key(family) FROM unnest(${families}::text[]) AS family
       UNION ALL
      SELECT 'username ' || ${scope} || username_as_read(username) FROM unnest(${usernames}::text[]) AS username`,
  );
}

/** The lock on the reference alone. */
export function lockReference(tx: Transaction<IdentitySchema>, { crmId, reference }: UserReference): Promise<void> {
  return lock(tx, sql`SELECT ${referenceName(crmId, reference)}::text AS name`);
}

function referenceName(crmId: string, reference: string): string {
  return `reference ${crmId} ${reference}`;
}

async function lock(tx: Transaction<IdentitySchema>, names: RawBuilder<unknown>): Promise<void> {
  await sql`
    SELECT pg_advisory_xact_lock(${loginNameLocks}, key)
    FROM (SELECT DISTINCT hashtext(name) AS key FROM (${names}) AS names ORDER BY key) AS keys`.execute(tx);
}
