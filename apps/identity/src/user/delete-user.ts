import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { forgetKeys } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { findUserByReference, type UserReference } from './get-user.ts';
import { lockLoginNames } from './lock-login-names.ts';
import type { UserRow } from './user.ts';

/**
 * Deletes a user with everything that is known of the person (interface 4.5), and publishes it, so that other services erase what they have.
 * Rejects with `user.not_found`, or with `user.owner`, in which case nothing has changed.
 */
export async function deleteUser({ database }: IdentityDependencies, key: UserReference): Promise<void> {
  await database.transaction(async (tx) => {
    await lockLoginNames(tx, key);
    const user = await findUserByReference(tx, key);
    if (user === undefined) throw new DomainError('user.not_found');
    await eraseUser(tx, user);
  });
}

/** Repeating it only publishes the event again. Rejects with `user.owner`. */
export async function eraseUser(tx: Transaction<IdentitySchema>, { crmId, id }: UserId): Promise<void> {
  await removeUser(tx, { crmId, id });
  await forgetKeys(tx, crmId, [id]);
  await appendEvent(tx, events.userDeleted, { crmId, userId: id });
}

type UserId = Pick<UserRow, 'crmId' | 'id'>;

/**
 * The verification is locked before the user, as when a link is used; no other can be started meanwhile, because that takes the lock on the
 * reference. The lock on the user waits for accounts, providers and staff that are being created for them, and delays later ones until there is no
 * such user.
 */
async function removeUser(tx: Transaction<IdentitySchema>, { crmId, id }: UserId): Promise<void> {
  await tx.deleteFrom('emailVerification').where('crmId', '=', crmId).where('userId', '=', id).execute();
  await tx.selectFrom('appUser').select('id').where('crmId', '=', crmId).where('id', '=', id).forUpdate().execute();
  await refuseOwner(tx, { crmId, id });
  await tx.deleteFrom('providerStaff').where('crmId', '=', crmId).where('userId', '=', id).execute();
  await tx.deleteFrom('appUser').where('crmId', '=', crmId).where('id', '=', id).execute();
}

/** How many of the references of what a user owns the message names. */
const maxNamed = 10;

async function refuseOwner(tx: Transaction<IdentitySchema>, { crmId, id }: UserId): Promise<void> {
  const owned = await tx
    .selectFrom('account')
    .select(['reference', sql<string>`'account'`.as('kind')])
    .where('crmId', '=', crmId)
    .where('ownerId', '=', id)
    .unionAll(tx.selectFrom('provider').select(['reference', sql<string>`'provider'`.as('kind')]).where('crmId', '=', crmId).where('ownerId', '=', id))
    .limit(maxNamed + 1)
    .execute();
  if (owned.length === 0) return;
  const named = owned.slice(0, maxNamed).map(({ kind, reference }) => `${kind} ${reference}`);
  const more = owned.length > maxNamed ? ' and more' : '';
  throw new DomainError('user.owner', { text: `The user cannot be deleted, because they own ${named.join(', ')}${more}.` });
}
