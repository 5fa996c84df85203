import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { forgetKeys } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { findUserByReference, type UserReference } from './get-user.ts';
import { lockReference } from './lock-login-names.ts';
import type { UserRow } from './user.ts';

export type UserId = Pick<UserRow, 'crmId' | 'id'>;

/** A user who owns accounts or providers, which `owned` names: ten at most, and whether there are more. */
export interface Owner extends UserId {
  owned: string;
}

/**
 * Deletes a user with everything that is known of the person (interface 4.5), and publishes it, so that other services
 * erase what they have. Rejects with `user.not_found`, or with `user.owner`, in which case nothing has changed.
 */
export async function deleteUser({ database }: IdentityDependencies, key: UserReference): Promise<void> {
  await database.transaction(async (tx) => {
    await lockReference(tx, key);
    const user = await findUserByReference(tx, key);
    if (user === undefined) throw new DomainError('user.not_found');
    const [owner] = await eraseUsers(tx, [user]);
    if (owner !== undefined)
      throw new DomainError('user.owner', { text: `The user cannot be deleted, because they own ${owner.owned}.` });
  });
}

/** Repeating it only publishes the events again. Owners are left as they are, without an event, and returned. */
export async function eraseUsers(tx: Transaction<IdentitySchema>, users: UserId[]): Promise<Owner[]> {
  await lockUsers(tx, users);
  const owners = await selectOwners(tx, users);
  const isOwner = new Set(owners.map(({ id }) => id));
  const erased = users.filter(({ id }) => !isOwner.has(id));
  await removeUsers(tx, erased);
  for (const [crmId, ofCrm] of Map.groupBy(erased, (user) => user.crmId)) {
    await forgetKeys(
      tx,
      crmId,
      ofCrm.map(({ id }) => id),
    );
  }
  await appendEvent(tx, events.userDeleted, ...erased.map(({ crmId, id }) => ({ crmId, userId: id })));
  return owners;
}

/**
 * The verifications are locked before the users, as when a link is used. Another one can be started meanwhile only if
 * the caller does not hold the lock on the reference; it is removed, too. The locks on the users wait for accounts,
 * providers and staff that are being created for them, and delay later ones until there is no such user. Both kinds are
 * locked in the order of their users, so two transactions with the same users wait for each other in turn.
 */
async function lockUsers(tx: Transaction<IdentitySchema>, users: UserId[]): Promise<void> {
  await sql`
    SELECT FROM email_verification AS verification JOIN ${rowsOf(users)} ON verification.crm_id = listed.crm_id AND verification.user_id = listed.id
     ORDER BY listed.crm_id, listed.id
       FOR UPDATE OF verification`.execute(tx);
  await sql`
    SELECT FROM app_user JOIN ${rowsOf(users)} ON app_user.crm_id = listed.crm_id AND app_user.id = listed.id
     ORDER BY listed.crm_id, listed.id
       FOR UPDATE OF app_user`.execute(tx);
}

/** How many of the references of what a user owns are named. */
const maxNamed = 10;

async function selectOwners(tx: Transaction<IdentitySchema>, users: UserId[]): Promise<Owner[]> {
  const { rows } = await sql<UserId & { things: string[] }>`
    SELECT listed.crm_id, listed.id, owned.things
      FROM ${rowsOf(users)}
     CROSS JOIN LATERAL (SELECT ARRAY(
             SELECT 'account ' || reference FROM account WHERE crm_id = listed.crm_id AND owner_id = listed.id
              UNION ALL
             SELECT 'provider ' || reference FROM provider WHERE crm_id = listed.crm_id AND owner_id = listed.id
              LIMIT ${maxNamed + 1}) AS things) AS owned
     WHERE cardinality(owned.things) > 0`.execute(tx);
  return rows.map(({ things, ...user }) => ({
    ...user,
    owned: things.slice(0, maxNamed).join(', ') + (things.length > maxNamed ? ' and more' : ''),
  }));
}

async function removeUsers(tx: Transaction<IdentitySchema>, users: UserId[]): Promise<void> {
  const listed = rowsOf(users);
  await sql`DELETE FROM email_verification AS it USING ${listed} WHERE it.crm_id = listed.crm_id AND it.user_id = listed.id`.execute(
    tx,
  );
  await sql`DELETE FROM provider_staff AS it USING ${listed} WHERE it.crm_id = listed.crm_id AND it.user_id = listed.id`.execute(
    tx,
  );
  await sql`DELETE FROM app_user AS it USING ${listed} WHERE it.crm_id = listed.crm_id AND it.id = listed.id`.execute(
    tx,
  );
}

function rowsOf(users: UserId[]) {
  return sql`unnest(${users.map(({ crmId }) => crmId)}::text[], ${users.map(({ id }) => id)}::uuid[]) AS listed (crm_id, id)`;
}
