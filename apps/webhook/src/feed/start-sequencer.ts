import type { Database } from '@scheduling/postgres';
import { type Logger, startLoop } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';

/** How long an event waits for its predecessor, in seconds. One that comes later is appended all the same: nothing is left out. */
const waitSeconds = 60;

const everyMs = 1_000;
const gatherMs = 20;
const batchSize = 500;

/** Gives events their place in the feed, soon after they arrived. Safe with many replicas: one at a time does it. */
export function startSequencer({ database, logger }: { database: Database<WebhookSchema>; logger: Logger }): AsyncDisposable {
  const loop = startLoop({
    name: 'the ordering of events',
    logger,
    everyMs,
    gatherMs,
    batch: batchSize,
    run: async (limit) => {
      const moved = await sequenceEvents(database, { limit, waitSeconds });
      // Others may have waited for these.
      if (moved > 0) database.committed();
      return moved;
    },
  });
  database.onCommit(loop.wake);
  return loop;
}

/** Moves events into the feed and returns how many; see sequence-events.sql. */
export async function sequenceEvents({ kysely }: Pick<Database<WebhookSchema>, 'kysely'>, request: { limit: number; waitSeconds: number }): Promise<number> {
  const { rows } = await sql<{ moved: number }>`SELECT sequence_events(${JSON.stringify(request)}::jsonb) AS moved`.execute(kysely);
  return rows[0]!.moved;
}
