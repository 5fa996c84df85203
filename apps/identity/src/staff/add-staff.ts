import { DomainError } from '@scheduling/errors';
import { transactOnce } from '@scheduling/postgres';
import type { Transaction } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { insertStaff } from '../provider/insert-staff.ts';
import { holdProvider } from '../provider/provider.ts';
import { holdUserByReference, requireUser } from '../user/get-user.ts';
import { invitePerson } from '../user/invite-person.ts';
import type { PersonData, UserRow } from '../user/user.ts';

export interface AddStaff {
  crmId: string;
  providerReference: string;
  /** A user of the CRM, or a person to invite. */
  member: { userReference: string } | { invitation: PersonData };
}

/**
 * Gives a user access to a provider; a user who already has access keeps it. Rejects with `provider.not_found`,
 * `user.not_found`, and for an invitation with `user.email_taken` or `user.username_taken`.
 */
export async function addStaff(
  { database }: IdentityDependencies,
  request: AddStaff,
): Promise<{ user: UserRow; added: boolean }> {
  const { crmId } = request;
  return transactOnce(database, crmId, {
    work: (tx) => giveAccess(tx, request),
    keep: ({ user, added }) => ({ resourceIds: [user.id], created: added }),
    replay: async (tx, { resourceIds, created }) => ({
      user: await requireUser(tx, { crmId, id: resourceIds[0]! }),
      added: created,
    }),
  });
}

async function giveAccess(
  tx: Transaction<IdentitySchema>,
  { crmId, providerReference, member }: AddStaff,
): Promise<{ user: UserRow; added: boolean }> {
  const provider = await holdProvider(tx, { crmId, reference: providerReference });
  const user =
    'invitation' in member
      ? await invitePerson(tx, crmId, member.invitation)
      : await holdUserByReference(tx, { crmId, reference: member.userReference });
  if (user === undefined) throw new DomainError('user.not_found');
  return { user, added: await insertStaff(tx, provider, user.id) };
}
