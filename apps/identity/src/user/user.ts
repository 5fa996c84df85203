import { DomainError, type FieldError } from '@scheduling/errors';
import type { Selectable } from 'kysely';
import type { UserTable } from '../db/schema.ts';
import { isEmailAddress } from '../field/email-address.ts';
import { parseLanguageTag } from '../field/language-tag.ts';

export type UserRow = Selectable<UserTable>;

/** What is given of a person, who is created as a user or invited. */
export interface PersonData {
  email: string;
  username: string;
  lastName: string;
  firstName?: string | undefined;
  phone?: string | undefined;
  mobile?: string | undefined;
  /** Overrides the CRM's language. */
  language?: string | undefined;
}

export function userInvalid(errors: FieldError[]): DomainError {
  return new DomainError('user.invalid', { errors });
}

/** What interface 2.1 forbids. */
export function personErrors({ email, username, lastName, language }: PersonData): FieldError[] {
  const errors: FieldError[] = [];
  if (!isEmailAddress(email)) errors.push({ pointer: '/email', detail: 'must be an e-mail address' });
  if (username === '') errors.push({ pointer: '/username', detail: 'must not be empty' });
  if (/[/?:&#\\]/.test(username)) errors.push({ pointer: '/username', detail: 'must not contain / ? : & # or \\' });
  if (lastName === '') errors.push({ pointer: '/lastName', detail: 'must not be empty' });
  if (language !== undefined && parseLanguageTag(language) === undefined) {
    errors.push({ pointer: '/language', detail: 'must be a BCP 47 language tag' });
  }
  return errors;
}
