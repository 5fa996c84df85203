import { emptyToNull, transactOnce } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import { requireCrm } from '../crm/get-crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { verifyNewAddress } from '../verification/start-verification.ts';
import { findFreeDerivedAddress } from './find-free-derived-address.ts';
import { findUserByEmail, findUserByReference, requireUser } from './get-user.ts';
import { insertUser } from './insert-user.ts';
import { lockLoginNames } from './lock-login-names.ts';
import type { PersonData, UserRow } from './user.ts';

export interface CreateUser extends PersonData {
  crmId: string;
  reference: string;
}

/**
 * Creates a user or finds the existing one, by the rules of interface 4.5 in their order:
 *
 * 1. The reference is known: phone, mobile, last and first name are updated; e-mail, username and language of the
 *   request are ignored.
 * 2. The e-mail belongs to a user with another reference, or to any user of another CRM: a new user with a derived
 *   address.
 * 3. The e-mail belongs to an invited user of this CRM: it gets the reference, and its contact data as in rule 1. Its
 *   username stays, as the person may already know it. The address has to be confirmed again.
 * 4. Otherwise a new user, in the given language or the CRM's.
 *
 * Rejects with `user.username_taken` (rules 2 and 4), `user.email_taken` (the CRM has derived too many addresses from
 * the given one), `verification.limited` (rule 3, because its mail counts) or `crm.not_found`.
 */
export async function createUser(
  { database }: IdentityDependencies,
  request: CreateUser,
): Promise<{ user: UserRow; created: boolean }> {
  const { crmId } = request;
  return transactOnce(database, crmId, {
    work: (tx) => createOrFindUser(tx, request),
    keep: ({ user, created }) => ({ resourceIds: [user.id], created }),
    replay: async (tx, { resourceIds, created }) => ({
      user: await requireUser(tx, { crmId, id: resourceIds[0]! }),
      created,
    }),
  });
}

async function createOrFindUser(
  tx: Transaction<IdentitySchema>,
  request: CreateUser,
): Promise<{ user: UserRow; created: boolean }> {
  const { reference, email } = request;
  const crm = await requireCrm(tx, request.crmId);
  await lockLoginNames(tx, crm, request);
  const known = await findUserByReference(tx, request);
  if (known !== undefined) return { user: await updatePerson(tx, known, request), created: false };
  const holder = await findUserByEmail(tx, crm, email);
  if (holder?.crmId === crm.crmId && holder.reference === null)
    return { user: await adoptInvited(tx, holder, request), created: false };
  const derivedEmail = holder === undefined ? undefined : await findFreeDerivedAddress(tx, crm, email);
  return { user: await insertUser(tx, { crm, reference, person: request, derivedEmail }), created: true };
}

/** Absent keeps the value, empty clears it. */
function updatePerson(tx: Transaction<IdentitySchema>, user: UserRow, request: CreateUser): Promise<UserRow> {
  const { lastName, firstName, phone, mobile } = request;
  return tx
    .updateTable('appUser')
    .set({ lastName, ...emptyToNull({ firstName, phone, mobile }), updatedAt: sql<Date>`now()` })
    .where('crmId', '=', user.crmId)
    .where('id', '=', user.id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

async function adoptInvited(tx: Transaction<IdentitySchema>, invited: UserRow, request: CreateUser): Promise<UserRow> {
  await verifyNewAddress(tx, invited, invited.email);
  await tx
    .updateTable('appUser')
    .set({ reference: request.reference })
    .where('crmId', '=', invited.crmId)
    .where('id', '=', invited.id)
    .execute();
  return updatePerson(tx, invited, request);
}
