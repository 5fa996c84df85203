import { DomainError } from '@scheduling/errors';
import { transactOnce } from '@scheduling/postgres';
import type { Transaction } from 'kysely';
import type { IdentitySchema } from '../db/schema.ts';
import type { IdentityDependencies } from '../dependencies.ts';
import { findUserByReference, requireUser } from './get-user.ts';
import { lockReference } from './lock-login-names.ts';
import type { UserRow } from './user.ts';
import { startVerification } from '../verification/start-verification.ts';

export interface RequestVerification {
  crmId: string;
  /** The user's. */
  reference: string;
}

/**
 * Sends a user a new verification mail; the links of earlier ones stop working. Rejects with `user.not_found`,
 * `user.email_verified`, `user.email_derived` or `verification.limited`.
 */
export async function requestVerification(
  { database }: IdentityDependencies,
  request: RequestVerification,
): Promise<void> {
  const { crmId } = request;
  await transactOnce(database, crmId, {
    work: (tx) => verifyAgain(tx, request),
    keep: ({ id }) => ({ resourceIds: [id], created: false }),
    replay: (tx, { resourceIds }) => requireUser(tx, { crmId, id: resourceIds[0]! }),
  });
}

async function verifyAgain(tx: Transaction<IdentitySchema>, request: RequestVerification): Promise<UserRow> {
  // So that nobody can delete the user meanwhile.
  await lockReference(tx, request);
  const user = await findUserByReference(tx, request);
  if (user === undefined) throw new DomainError('user.not_found');
  if (user.emailGenerated) throw new DomainError('user.email_derived');
  await startVerification(tx, user, user.email);
  return user;
}
