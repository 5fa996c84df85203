import { DomainError } from '@scheduling/errors';
import { emptyToNull } from '@scheduling/postgres';
import type { Transaction } from 'kysely';
import { requireCrm } from '../crm/get-crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import { caseInsensitiveKey } from '../field/case-insensitive-key.ts';
import { findUserByUsername } from './get-user.ts';
import type { PersonData, UserRow } from './user.ts';

export interface NewUser {
  crmId: string;
  /** Null for an invited person. */
  reference: string | null;
  person: PersonData;
  /** Replaces the person's own address, which belongs to another user. */
  derivedEmail?: string | undefined;
}

/** Rejects with `user.username_taken` or `crm.not_found`. The caller holds the locks on the login names and has checked that the address is free. */
export async function insertUser(tx: Transaction<IdentitySchema>, { crmId, reference, person, derivedEmail }: NewUser): Promise<UserRow> {
  if ((await findUserByUsername(tx, person.username)) !== undefined) throw new DomainError('user.username_taken');
  const crm = await requireCrm(tx, crmId);
  const { username, lastName, firstName, phone, mobile, language = crm.language } = person;
  const email = derivedEmail ?? person.email;
  return tx
    .insertInto('appUser')
    .values({
      crmId,
      reference,
      email,
      emailKey: caseInsensitiveKey(email),
      emailGenerated: derivedEmail !== undefined,
      emailDerivedFrom: derivedEmail === undefined ? null : caseInsensitiveKey(person.email),
      username,
      usernameKey: caseInsensitiveKey(username),
      lastName,
      ...emptyToNull({ firstName, phone, mobile }),
      language,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}
