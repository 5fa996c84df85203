import type { Database } from '@scheduling/postgres';
import { measureAtScrape, type Metrics } from '@scheduling/runtime';
import { sql } from 'kysely';
import { Counter } from 'prom-client';
import type { CalendarSchema } from '../db/schema.ts';

export interface ReminderMetrics {
  written(reminders: number): void;
}

export function createReminderMetrics(metrics: Metrics, database: Database<CalendarSchema>): ReminderMetrics {
  measureAtScrape(
    metrics,
    {
      scheduling_reminders_lag_seconds: {
        help: 'How long ago the reminders were written of the provider for whom that is longest, or how long it is overdue to say that a request waits if that is longer, across all replicas, without sandboxes whose clock was set; 0 if there are none',
      },
    },
    async () => ({ scheduling_reminders_lag_seconds: [{ value: await readLag(database) }] }),
  );
  const written = new Counter({
    name: 'scheduling_reminders_total',
    help: 'Reminders that have become due, also of requests, each an event from which mails are made',
    registers: [metrics],
  });
  return { written: (reminders) => written.inc(reminders) };
}

async function readLag({ kysely }: Database<CalendarSchema>): Promise<number> {
  const { rows } = await sql<{ seconds: number }>`
    SELECT greatest(0, coalesce(extract(epoch FROM scheduling_now() - min(due_at)), 0))::float8 AS seconds
      FROM (SELECT crm_id, until AS due_at FROM reminder_mark UNION ALL (SELECT crm_id, due_at FROM waiting_request WHERE due_at <= scheduling_now())) AS due
     WHERE NOT EXISTS (SELECT FROM sandbox_clock AS clock WHERE clock.crm_id = due.crm_id)`.execute(kysely);
  return rows[0]!.seconds;
}
