import { DomainError } from '@scheduling/errors';
import type { Kysely, RawBuilder, Transaction } from 'kysely';
import type { CrmRow } from '../crm/crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { hasEmail } from './login-names.ts';
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
export function requireUser(
  db: Kysely<IdentitySchema>,
  { crmId, id }: { crmId: string; id: string },
): Promise<UserRow> {
  return db
    .selectFrom('appUser')
    .selectAll()
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => new DomainError('user.not_found'));
}

/**
 * The user with this address, whichever CRM it belongs to: addresses and usernames are unique across the whole service,
 * except in sandboxes.
 */
export function findUserByEmail(db: Kysely<IdentitySchema>, crm: CrmRow, email: string): Promise<UserRow | undefined> {
  return selectByEmail(db, crm, email).executeTakeFirst();
}

/** As {@link holdUserByReference}. */
export function holdUserByEmail(
  tx: Transaction<IdentitySchema>,
  crm: CrmRow,
  email: string,
): Promise<UserRow | undefined> {
  return selectByEmail(tx, crm, email).forKeyShare().executeTakeFirst();
}

function selectByEmail(db: Kysely<IdentitySchema>, crm: CrmRow, email: string) {
  return db.selectFrom('appUser').selectAll().where(hasEmail(crm, email));
}

/**
 * Whether anybody, or anybody else than the given user, has this address or a username that people read as this one.
 */
export async function isTaken(
  db: Kysely<IdentitySchema>,
  name: RawBuilder<boolean>,
  exceptFor?: UserRow,
): Promise<boolean> {
  let query = db.selectFrom('appUser').select('id').where(name).limit(1);
  if (exceptFor !== undefined) query = query.where('id', '!=', exceptFor.id);
  return (await query.executeTakeFirst()) !== undefined;
}
