import { type Kysely, sql } from 'kysely';
import type { CalendarSchema } from '../src/db/schema.ts';
import type { Calendar, CalendarUnderTest } from './calendar-under-test.ts';

const minuteMs = 60_000;
/** Times in these tests are minutes from here. */
const base = new Date(Math.ceil(Date.now() / (60 * minuteMs)) * 60 * minuteMs);

export const dateOf = (minutes: number): Date => new Date(base.getTime() + minutes * minuteMs);
export const textOf = (minutes: number): string => dateOf(minutes).toISOString();

/** Sets the clock of the database, for all sessions at once: time has to pass for all replicas. */
export type SetRealClock = (minutes: number, db?: Kysely<CalendarSchema>) => Promise<void>;

export async function makeClockAdjustable({ database: { kysely } }: CalendarUnderTest): Promise<SetRealClock> {
  await sql`CREATE TABLE adjusted_clock AS SELECT interval '0' AS ahead`.execute(kysely);
  await sql`
    CREATE OR REPLACE FUNCTION scheduling_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
      SELECT clock_timestamp() + ahead FROM adjusted_clock
    $$`.execute(kysely);
  return async (minutes, db = kysely) => {
    await sql`UPDATE adjusted_clock SET ahead = ${dateOf(minutes)}::timestamptz - clock_timestamp()`.execute(db);
  };
}

/** All of them write what is due at the same moment, with which they begin when the clock of any sandbox is set. */
export async function wakeReplicas(replicas: Calendar[]): Promise<void> {
  const request = { crmId: 'other-sandbox', now: undefined };
  await Promise.all(replicas.map(({ clocks }) => clocks.setSandboxClock(request)));
}
