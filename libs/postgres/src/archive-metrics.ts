import { measureAtScrape, type Metrics } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { Database } from './database.ts';

/**
 * Measures how much a restore would lose. A server to which nothing is written archives nothing, but the leader of an
 * idle relay commits every 10 seconds, so the age stays below `archive_timeout` and the time that archiving takes.
 */
export function measureArchive<Schema>({ kysely }: Database<Schema>, metrics: Metrics): void {
  measureAtScrape(
    metrics,
    {
      scheduling_postgres_archive_age_seconds: {
        help: 'Time since a file of the write-ahead log was archived, or since the start of a server that has archived none; absent if it does not archive',
      },
    },
    async () => {
      // The statistics are lost in a crash.
      const { rows } = await sql<{ value: number }>`
        SELECT extract(epoch FROM clock_timestamp() - coalesce(last_archived_time, pg_postmaster_start_time()))::float8 AS value
          FROM pg_stat_archiver WHERE current_setting('archive_mode') <> 'off'`.execute(kysely);
      return { scheduling_postgres_archive_age_seconds: rows };
    },
  );
}
