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
        help: 'How long ago the reminders were written of the provider for whom that is longest, across all replicas, without sandboxes whose clock was set; 0 if there are none',
      },
    },
    async () => ({ scheduling_reminders_lag_seconds: [{ value: await readLag(database) }] }),
  );
  const written = new Counter({
    name: 'scheduling_reminders_total',
    help: 'Reminders that have become due, each an event from which a mail is made',
    registers: [metrics],
  });
  return { written: (reminders) => written.inc(reminders) };
}

async function readLag({ kysely }: Database<CalendarSchema>): Promise<number> {
  const { rows } = await sql<{ seconds: number }>`
    SELECT greatest(0, coalesce(extract(epoch FROM scheduling_now() - min(until)), 0))::float8 AS seconds
      FROM reminder_mark AS mark
     WHERE NOT EXISTS (SELECT FROM sandbox_clock AS clock WHERE clock.crm_id = mark.crm_id)`.execute(kysely);
  return rows[0]!.seconds;
}
