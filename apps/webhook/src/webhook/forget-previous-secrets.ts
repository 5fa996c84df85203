import type { Database } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';

/** Deletes previous secrets that no longer sign; returns of how many webhooks, at most the limit. */
export async function forgetPreviousSecrets({ kysely }: Database<WebhookSchema>, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    UPDATE webhook SET previous_secret = NULL, previous_secret_until = NULL WHERE (crm_id, id) IN (
      SELECT crm_id, id FROM webhook WHERE previous_secret_until < now() ORDER BY crm_id, id LIMIT ${limit} FOR UPDATE)`.execute(
    kysely,
  );
  return Number(numAffectedRows);
}
