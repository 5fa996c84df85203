import type { Selectable } from 'kysely';
import type { UserTable } from '../db/schema.ts';

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
