import type { Selectable } from 'kysely';
import type { UserTable } from '../db/schema.ts';

export type UserRow = Selectable<UserTable>;

/** The data of a person to create as a user or to invite. */
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
