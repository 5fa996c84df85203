import { DomainError } from '@scheduling/errors';
import { sql } from 'kysely';
import type { IdentityDependencies } from '../dependencies.ts';
import { selectVerification, toVerification, type Verification } from './get-verification.ts';
import { hashToken } from './verification.ts';

/**
 * Uses a link: the user's address is confirmed. Of concurrent calls only one succeeds. Rejects with
 * `verification.not_found`, `verification.used` or `verification.expired`.
 */
export async function confirmVerification({ database }: IdentityDependencies, token: string): Promise<Verification> {
  return database.transaction(async (tx) => {
    const verification = await selectVerification(tx, token)
      .forUpdate('emailVerification')
      .executeTakeFirstOrThrow(() => new DomainError('verification.not_found'));
    if (verification.state === 'USED') throw new DomainError('verification.used');
    if (verification.state === 'EXPIRED') throw new DomainError('verification.expired');
    await tx
      .updateTable('emailVerification')
      .set({ usedAt: sql<Date>`now()` })
      .where('tokenHash', '=', hashToken(token))
      .execute();
    await tx
      .updateTable('appUser')
      .set({ emailVerifiedAt: sql<Date>`now()` })
      .where('crmId', '=', verification.crmId)
      .where('id', '=', verification.userId)
      .execute();
    return toVerification(verification);
  });
}
