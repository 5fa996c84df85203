import { DomainError } from '@scheduling/errors';
import { emptyToNull, isAddress } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import type { CrmRow } from '../crm/crm.ts';
import { requireCrm } from '../crm/get-crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { verifyNewAddress } from '../verification/start-verification.ts';
import { findUserByReference, isTaken } from './get-user.ts';
import { lockLoginNames } from './lock-login-names.ts';
import { hasEmail, hasUsername, loginNameKey } from './login-names.ts';
import type { UserRow } from './user.ts';

/** Absent keeps the value; empty clears an optional one. */
export interface UserUpdate {
  crmId: string;
  reference: string;
  email?: string | undefined;
  username?: string | undefined;
  lastName?: string | undefined;
  firstName?: string | undefined;
  phone?: string | undefined;
  mobile?: string | undefined;
}

/**
 * Changes the given fields (interface 4.5). A new address has to be confirmed by a verification mail; another form of
 * the same address is not new, and stays verified. A derived address that is replaced becomes the user's own. Rejects
 * with `user.not_found`, `user.email_taken`, `user.username_taken`, or with `verification.limited` for a new address,
 * because the mail about it counts.
 */
export async function updateUser({ database }: IdentityDependencies, request: UserUpdate): Promise<UserRow> {
  return database.transaction(async (tx) => {
    const crm = await requireCrm(tx, request.crmId);
    await lockLoginNames(tx, crm, request);
    const user = await findUserByReference(tx, request);
    if (user === undefined) throw new DomainError('user.not_found');
    await checkLoginNames(tx, crm, user, request);
    const isNewAddress = request.email !== undefined && !(await isSameAddress(tx, user, request.email));
    if (isNewAddress) await verifyNewAddress(tx, user, request.email!);
    return writeChanges(tx, crm, user, request, isNewAddress);
  });
}

async function isSameAddress(tx: Transaction<IdentitySchema>, user: UserRow, email: string): Promise<boolean> {
  const { isSame } = await tx
    .selectNoFrom(isAddress(sql`${user.email}::text`, email).as('isSame'))
    .executeTakeFirstOrThrow();
  return isSame;
}

async function checkLoginNames(
  tx: Transaction<IdentitySchema>,
  crm: CrmRow,
  user: UserRow,
  { email, username }: UserUpdate,
): Promise<void> {
  if (email !== undefined && (await isTaken(tx, hasEmail(crm, email), user))) throw new DomainError('user.email_taken');
  if (username !== undefined && (await isTaken(tx, hasUsername(crm, username), user)))
    throw new DomainError('user.username_taken');
}

function writeChanges(
  tx: Transaction<IdentitySchema>,
  crm: CrmRow,
  user: UserRow,
  request: UserUpdate,
  isNewAddress: boolean,
): Promise<UserRow> {
  const { email, username, lastName, firstName, phone, mobile } = request;
  return tx
    .updateTable('appUser')
    .set({
      email,
      emailKey: email && loginNameKey(crm, email),
      ...(isNewAddress && { emailGenerated: false, emailDerivedFrom: null }),
      username,
      usernameKey: username && loginNameKey(crm, username),
      lastName,
      ...emptyToNull({ firstName, phone, mobile }),
      updatedAt: sql<Date>`now()`,
    })
    .where('crmId', '=', user.crmId)
    .where('id', '=', user.id)
    .returningAll()
    .executeTakeFirstOrThrow();
}
