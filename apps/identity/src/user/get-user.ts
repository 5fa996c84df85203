import { DomainError } from '@scheduling/errors';
import type { Kysely } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { caseInsensitiveKey } from '../field/case-insensitive-key.ts';
import type { UserRow } from './user.ts';

/** Rejects with `user.not_found`, also for a user of another CRM. */
export async function getUser({ database }: IdentityDependencies, key: { crmId: string; reference: string }): Promise<UserRow> {
  const user = await findUserByReference(database.kysely, key);
  if (user === undefined) throw new DomainError('user.not_found');
  return user;
}

export function findUserByReference(
  db: Kysely<IdentitySchema>,
  { crmId, reference }: { crmId: string; reference: string },
): Promise<UserRow | undefined> {
  return db.selectFrom('appUser').selectAll().where('crmId', '=', crmId).where('reference', '=', reference).executeTakeFirst();
}

/** Rejects with `user.not_found`. */
export function requireUser(db: Kysely<IdentitySchema>, { crmId, id }: { crmId: string; id: string }): Promise<UserRow> {
  return db.selectFrom('appUser').selectAll().where('crmId', '=', crmId).where('id', '=', id).executeTakeFirstOrThrow(() => new DomainError('user.not_found'));
}

/** The user with this address, whichever CRM it belongs to: addresses and usernames are unique across the whole service. */
export function findUserByEmail(db: Kysely<IdentitySchema>, email: string): Promise<UserRow | undefined> {
  return db.selectFrom('appUser').selectAll().where('emailKey', '=', caseInsensitiveKey(email)).executeTakeFirst();
}

export function findUserByUsername(db: Kysely<IdentitySchema>, username: string): Promise<UserRow | undefined> {
  return db.selectFrom('appUser').selectAll().where('usernameKey', '=', caseInsensitiveKey(username)).executeTakeFirst();
}
