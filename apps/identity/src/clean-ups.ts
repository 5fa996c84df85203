import type { CleanUp } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { IdentitySchema } from './db/schema.ts';

const minuteMs = 60 * 1_000;

/** Everything that identity deletes by itself, and when. */
export const identityCleanUps: CleanUp<IdentitySchema>[] = [
  // Digests of mailboxes that the limit of verification mails no longer needs.
  { table: 'verificationMailbox', column: 'expiresAt', before: sql<Date>`now()`, everyMs: 10 * minuteMs },
];
