import { DomainError } from '@scheduling/errors';
import type { Transaction } from 'kysely';
import { requireCrm } from '../crm/get-crm.ts';
import type { IdentitySchema } from '../db/schema.ts';
import { caseInsensitiveKey } from '../field/case-insensitive-key.ts';
import { emptyToNull } from '../field/optional-text.ts';
import type { PersonData, UserRow } from './user.ts';

export interface NewUser {
  crmId: string;
  /** Null for an invited person. */
  reference: string | null;
  person: PersonData;
  /** Takes the place of the person's own address, which is somebody else's. */
  derivedEmail?: string | undefined;
}

/** Rejects with `user.username_taken` or `crm.not_found`. The caller holds the login names and has found the address free. */
export async function insertUser(tx: Transaction<IdentitySchema>, { crmId, reference, person, derivedEmail }: NewUser): Promise<UserRow> {
  if (await isUsernameTaken(tx, person.username)) throw new DomainError('user.username_taken');
  const crm = await requireCrm(tx, crmId);
  const email = derivedEmail ?? person.email;
  return tx
    .insertInto('app_user')
    .values({
      crm_id: crmId,
      reference,
      email,
      email_key: caseInsensitiveKey(email),
      email_generated: derivedEmail !== undefined,
      username: person.username,
      username_key: caseInsensitiveKey(person.username),
      last_name: person.lastName,
      first_name: emptyToNull(person.firstName),
      phone: emptyToNull(person.phone),
      mobile: emptyToNull(person.mobile),
      language: person.language ?? crm.language,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

async function isUsernameTaken(tx: Transaction<IdentitySchema>, username: string): Promise<boolean> {
  const holder = await tx
    .selectFrom('app_user')
    .select('id')
    .where('username_key', '=', caseInsensitiveKey(username))
    .executeTakeFirst();
  return holder !== undefined;
}
