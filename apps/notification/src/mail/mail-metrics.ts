import type { Database } from '@scheduling/postgres';
import { measureAtScrape, type Metrics } from '@scheduling/runtime';
import { type Kysely, sql } from 'kysely';
import { Counter } from 'prom-client';
import type { NotificationSchema } from '../db/schema.ts';
import type { Outcome } from './record-outcome.ts';

const outcomes = ['sent', 'retry', 'retry-once', 'postpone', 'give-up'] as const satisfies Outcome['outcome'][];
/** The count is capped: thousands of pending mails must not slow down the scrape. */
const maxCounted = 10_000;

/** Measures the pending mails, and returns a function that counts an attempt. */
export function registerMailMetrics(metrics: Metrics, { kysely }: Database<NotificationSchema>): (outcome: Outcome['outcome']) => void {
  measureAtScrape(
    metrics,
    {
      scheduling_mails_pending: { help: `Pending mails, across all replicas; capped at ${maxCounted}` },
      scheduling_mail_oldest_due_seconds: { help: 'How long the most overdue mail has been due; 0 if none is' },
    },
    async () => ({
      scheduling_mails_pending: [{ value: await countPending(kysely) }],
      scheduling_mail_oldest_due_seconds: [{ value: await readOldestDue(kysely) }],
    }),
  );
  const attempts = new Counter({
    name: 'scheduling_mail_attempts_total',
    help: 'Attempts to send a mail by outcome: sent, retry, retry-once, postpone (the mail server is down), give-up',
    labelNames: ['outcome'],
    registers: [metrics],
  });
  // Initialised to 0, so that the first of each kind shows up as an increase.
  for (const outcome of outcomes) attempts.inc({ outcome }, 0);
  return (outcome) => attempts.inc({ outcome });
}

async function countPending(db: Kysely<NotificationSchema>): Promise<number> {
  const { count } = await db
    .selectFrom((from) => from.selectFrom('mail').select('id').where('state', '=', 'pending').limit(maxCounted).as('pending'))
    .select((select) => select.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

/** Skips through the index from CRM to CRM, as the delivery does: the first entry of each is the earliest one due. */
async function readOldestDue(db: Kysely<NotificationSchema>): Promise<number> {
  const { rows } = await sql<{ seconds: number }>`
    WITH RECURSIVE first_of_crm AS (
      (SELECT crm_id, due_at FROM mail WHERE state = 'pending' ORDER BY crm_id, due_at LIMIT 1)
      UNION ALL
      SELECT following.crm_id, following.due_at
      FROM first_of_crm CROSS JOIN LATERAL (
        SELECT crm_id, due_at FROM mail WHERE state = 'pending' AND crm_id > first_of_crm.crm_id ORDER BY crm_id, due_at LIMIT 1
      ) AS following
    )
    SELECT greatest(0, coalesce(extract(epoch FROM now() - min(due_at)), 0))::float8 AS seconds FROM first_of_crm`.execute(db);
  return rows[0]!.seconds;
}
