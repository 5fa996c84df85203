import { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { sql } from 'kysely';
import type { IdentityDependencies } from '../dependencies.ts';
import type { ApiKeyRow } from './api-key.ts';

/** Revokes a key permanently; the event makes the gateways drop it from their caches. Repeating it: no change, no event. Rejects with `key.not_found`. */
export async function revokeKey({ database }: IdentityDependencies, prefix: string): Promise<ApiKeyRow> {
  return database.transaction(async (tx) => {
    const revoked = await tx
      .updateTable('apiKey')
      .set({ revokedAt: sql<Date>`now()` })
      .where('prefix', '=', prefix)
      .where('revokedAt', 'is', null)
      .returningAll()
      .executeTakeFirst();
    if (revoked !== undefined) {
      await appendEvent(tx, events.apiKeyRevoked, { crmId: revoked.crmId, keyHash: revoked.keyHash });
      return revoked;
    }
    return tx
      .selectFrom('apiKey')
      .selectAll()
      .where('prefix', '=', prefix)
      .executeTakeFirstOrThrow(() => new DomainError('key.not_found'));
  });
}
