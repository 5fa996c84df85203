import { DomainError } from '@scheduling/errors';
import { emptyToNull } from '@scheduling/postgres';
import { caseInsensitiveKey } from '@scheduling/runtime';
import type { Transaction } from 'kysely';
import type { CrmRow } from '../crm/crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import { isTaken } from './get-user.ts';
import { hasUsername, loginNameKey } from './login-names.ts';
import type { PersonData, UserRow } from './user.ts';

export interface NewUser {
  crm: CrmRow;
  /** Null for an invited person. */
  reference: string | null;
  person: PersonData;
  /** Replaces the person's own address, which belongs to another user. */
  derivedEmail?: string | undefined;
}

/**
 * Rejects with `user.username_taken`. The caller holds the locks on the login names and has checked that the address is
 * free.
 */
export async function insertUser(
  tx: Transaction<IdentitySchema>,
  { crm, reference, person, derivedEmail }: NewUser,
): Promise<UserRow> {
  if (await isTaken(tx, hasUsername(crm, person.username))) throw new DomainError('user.username_taken');
  const { username, lastName, firstName, phone, mobile, language = crm.language } = person;
  const email = derivedEmail ?? person.email;
  return tx
    .insertInto('appUser')
    .values({
      crmId: crm.crmId,
      reference,
      email,
      emailKey: loginNameKey(crm, email),
      emailGenerated: derivedEmail !== undefined,
      emailDerivedFrom: derivedEmail === undefined ? null : caseInsensitiveKey(person.email),
      username,
      usernameKey: loginNameKey(crm, username),
      lastName,
      ...emptyToNull({ firstName, phone, mobile }),
      language,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}
