import type { Database } from '@scheduling/postgres';
import { measureAtScrape, type Metrics } from '@scheduling/runtime';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { Counter } from 'prom-client';
import type { NotificationSchema } from '../db/schema.ts';
import type { Outcome } from './record-outcome.ts';

/** With all labels, so that each counter starts at 0 and the first of each kind shows up as an increase. */
const attemptOutcomes = ['sent', 'retry', 'retry-once', 'postpone', 'give-up'] as const;
const quotaOutcomes = [
  ['hold', 'recipient-quota'],
  ['hold', 'crm-quota'],
  ['drop', 'recipient-quota'],
  ['drop', 'crm-quota'],
  ['drop', 'superseded'],
] as const;
/** The count is capped: thousands of pending mails must not slow down the scrape. */
const maxCounted = 10_000;

/** Measures the pending mails, and returns a function that counts an attempt. */
export function registerMailMetrics(
  metrics: Metrics,
  { kysely }: Database<NotificationSchema>,
): (outcome: Outcome) => void {
  measureAtScrape(
    metrics,
    {
      scheduling_mails_pending: { help: `Pending mails, across all replicas; capped at ${maxCounted}` },
      scheduling_mail_oldest_due_seconds: {
        help: 'How long the most overdue mail has been due, or has waited to be written; 0 if none is',
      },
    },
    async () => ({
      scheduling_mails_pending: [{ value: await countPending(kysely) }],
      scheduling_mail_oldest_due_seconds: [
        { value: Math.max(await readOldestDue(kysely), await readOldestUnwritten(kysely)) },
      ],
    }),
  );
  const attempts = new Counter({
    name: 'scheduling_mail_attempts_total',
    help: 'Attempts to send a mail by outcome: sent, retry, retry-once, postpone (the mail server is down), give-up',
    labelNames: ['outcome'],
    registers: [metrics],
  });
  const overQuota = new Counter({
    name: 'scheduling_mails_over_quota_total',
    help: 'Mails that were not sent because of a quota: hold (waits for a later hour) or drop, and the reason',
    labelNames: ['outcome', 'reason'],
    registers: [metrics],
  });
  for (const outcome of attemptOutcomes) attempts.inc({ outcome }, 0);
  for (const [outcome, reason] of quotaOutcomes) overQuota.inc({ outcome, reason }, 0);
  return (result) => {
    if (result.outcome === 'hold' || result.outcome === 'drop')
      overQuota.inc({ outcome: result.outcome, reason: result.reason });
    else attempts.inc({ outcome: result.outcome });
  };
}

async function countPending(db: Kysely<NotificationSchema>): Promise<number> {
  const { count } = await db
    .selectFrom((from) =>
      from
        .selectFrom('mail')
        .select('id')
        .where('state', '=', 'pending')
        .unionAll(from.selectFrom('unwrittenMail').select('id'))
        .limit(maxCounted)
        .as('pending'),
    )
    .select((select) => select.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

/** Not behind a mail that waits for a quota; that would not be overdue. */
function isNotHeldUp(table: 'mail' | 'unwritten_mail'): RawBuilder<boolean> {
  const item = sql.table(table);
  return sql`NOT EXISTS (
    SELECT FROM mail AS earlier
     WHERE earlier.crm_id = ${item}.crm_id AND earlier.about_id = ${item}.about_id AND earlier.version < ${item}.version AND earlier.state = 'pending' AND earlier.held)`;
}

/** Skips through the index from CRM to CRM, as the delivery does: the first entry of each is the earliest one due. */
async function readOldestDue(db: Kysely<NotificationSchema>): Promise<number> {
  const { rows } = await sql<{ seconds: number }>`
    WITH RECURSIVE first_of_crm AS (
      (SELECT crm_id, due_at FROM mail WHERE state = 'pending' AND ${isNotHeldUp('mail')} ORDER BY crm_id, due_at LIMIT 1)
      UNION ALL
      SELECT following.crm_id, following.due_at
      FROM first_of_crm CROSS JOIN LATERAL (
        SELECT crm_id, due_at FROM mail WHERE state = 'pending' AND crm_id > first_of_crm.crm_id AND ${isNotHeldUp('mail')} ORDER BY crm_id, due_at LIMIT 1
      ) AS following
    )
    SELECT greatest(0, coalesce(extract(epoch FROM now() - min(due_at)), 0))::float8 AS seconds FROM first_of_crm`.execute(
    db,
  );
  return rows[0]!.seconds;
}

/** Of the first that wait: those behind a mail that waits for a quota are written an hour later. */
async function readOldestUnwritten(db: Kysely<NotificationSchema>): Promise<number> {
  const { rows } = await sql<{ seconds: number }>`
    SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS seconds
      FROM (SELECT * FROM unwritten_mail ORDER BY created_at LIMIT ${maxCounted}) AS unwritten_mail
     WHERE ${isNotHeldUp('unwritten_mail')}`.execute(db);
  return rows[0]!.seconds;
}
