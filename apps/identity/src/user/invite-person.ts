import { DomainError } from '@scheduling/errors';
import type { Transaction } from 'kysely';
import { requireCrm } from '../crm/get-crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import { holdUserByEmail } from './get-user.ts';
import { insertUser } from './insert-user.ts';
import { lockLoginNames } from './lock-login-names.ts';
import type { PersonData, UserRow } from './user.ts';

/**
 * The user of this CRM with the invited person's address, unchanged, or a new one without a reference: create user
 * finds it by its address later (interface 4.5, rule 3). So an invitation can be repeated, even after the person got a
 * reference. It never returns a user of another CRM, nor one whose address is a derived one: `user.email_taken`,
 * because the invited person could not be found by a derived address. Also rejects with `user.username_taken` or
 * `crm.not_found`.
 */
export async function invitePerson(
  tx: Transaction<IdentitySchema>,
  crmId: string,
  person: PersonData,
): Promise<UserRow> {
  const crm = await requireCrm(tx, crmId);
  await lockLoginNames(tx, crm, { email: person.email, username: person.username });
  const holder = await holdUserByEmail(tx, crm, person.email);
  if (holder === undefined) return insertUser(tx, { crm, reference: null, person });
  if (holder.crmId !== crmId || holder.emailGenerated) throw new DomainError('user.email_taken');
  return holder;
}
