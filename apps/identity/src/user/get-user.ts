import { DomainError } from '@scheduling/errors';
import type { Kysely, Transaction } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { caseInsensitiveKey } from '../field/case-insensitive-key.ts';
import type { UserRow } from './user.ts';

export interface UserReference {
  crmId: string;
  reference: string;
}

/** Rejects with `user.not_found`, also for a user of another CRM. */
export async function getUser({ database }: IdentityDependencies, key: UserReference): Promise<UserRow> {
  const user = await findUserByReference(database.kysely, key);
  if (user === undefined) throw new DomainError('user.not_found');
  return user;
}

export function findUserByReference(db: Kysely<IdentitySchema>, key: UserReference): Promise<UserRow | undefined> {
  return selectByReference(db, key).executeTakeFirst();
}

/** The same, for what will refer to the user: until the end of the transaction nobody can delete the user. */
export function holdUserByReference(tx: Transaction<IdentitySchema>, key: UserReference): Promise<UserRow | undefined> {
  return selectByReference(tx, key).forKeyShare().executeTakeFirst();
}

function selectByReference(db: Kysely<IdentitySchema>, { crmId, reference }: UserReference) {
  return db.selectFrom('appUser').selectAll().where('crmId', '=', crmId).where('reference', '=', reference);
}

/** Rejects with `user.not_found`. */
export function requireUser(db: Kysely<IdentitySchema>, { crmId, id }: { crmId: string; id: string }): Promise<UserRow> {
  return db.selectFrom('appUser').selectAll().where('crmId', '=', crmId).where('id', '=', id).executeTakeFirstOrThrow(() => new DomainError('user.not_found'));
}

/** The user with this address, whichever CRM it belongs to: addresses and usernames are unique across the whole service. */
export function findUserByEmail(db: Kysely<IdentitySchema>, email: string): Promise<UserRow | undefined> {
  return selectByEmail(db, email).executeTakeFirst();
}

/** As {@link holdUserByReference}. */
export function holdUserByEmail(tx: Transaction<IdentitySchema>, email: string): Promise<UserRow | undefined> {
  return selectByEmail(tx, email).forKeyShare().executeTakeFirst();
}

function selectByEmail(db: Kysely<IdentitySchema>, email: string) {
  return db.selectFrom('appUser').selectAll().where('emailKey', '=', caseInsensitiveKey(email));
}

export function findUserByUsername(db: Kysely<IdentitySchema>, username: string): Promise<UserRow | undefined> {
  return db.selectFrom('appUser').selectAll().where('usernameKey', '=', caseInsensitiveKey(username)).executeTakeFirst();
}
