import { DomainError } from '@scheduling/errors';
import { type Kysely, sql } from 'kysely';
import { type CrmClock, readClock } from '../db/clock.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { makeDaysDue } from '../hours/make-hours-due.ts';

const maxYears = 10;

/** The clock of a sandbox (interface 11.1). Rejects with `sandbox.not_found` for a CRM that is not one. */
export async function getSandboxClock(dependencies: CalendarDependencies, crmId: string): Promise<CrmClock> {
  await requireSandbox(dependencies, crmId);
  return readClock(dependencies.database.kysely, crmId);
}

/**
 * Sets the clock of a sandbox, which goes on from there; without `now` to the real time. Reservations that are over by
 * the new time are removed at once, as the sweeper would, reminders written, and timeslots made from opening hours.
 * Rejects with `sandbox.invalid` for a time more than 10 years from the real one, or with `sandbox.not_found`.
 */
export async function setSandboxClock(
  dependencies: CalendarDependencies,
  { crmId, now }: { crmId: string; now?: Date | undefined },
): Promise<CrmClock> {
  await requireSandbox(dependencies, crmId);
  const clock = await dependencies.database.transaction(async (db) => {
    // Whoever is setting opening hours does that by one clock.
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`clock ${crmId}`}, 0))`.execute(db);
    const before = await readClock(db, crmId);
    if (now === undefined) await db.deleteFrom('sandboxClock').where('crmId', '=', crmId).execute();
    else await storeClock(db, crmId, now);
    await setReminderMarksBack(db, crmId, now);
    const after = await readClock(db, crmId);
    await makeDaysDue(db, { crmId, wasSetBack: after.now < before.now });
    return after;
  });
  dependencies.onClockSet();
  return clock;
}

/** Identity is asked each time: nothing but this depends on it. */
async function requireSandbox({ identity }: CalendarDependencies, crmId: string): Promise<void> {
  const { crm } = await identity.getCrm({ crmId });
  if (!crm!.sandbox) throw new DomainError('sandbox.not_found');
}

async function storeClock(db: Kysely<CalendarSchema>, crmId: string, now: Date): Promise<void> {
  const { numAffectedRows = 0n } = await sql`
    INSERT INTO sandbox_clock (crm_id, ahead_ms, set_at)
    SELECT ${crmId}, round(extract(epoch FROM wanted - real) * 1000), real
      FROM (SELECT ${now}::timestamptz AS wanted, scheduling_now() AS real) AS times
     WHERE wanted BETWEEN real - make_interval(years => ${maxYears}) AND real + make_interval(years => ${maxYears})
    ON CONFLICT (crm_id) DO UPDATE SET ahead_ms = excluded.ahead_ms, set_at = excluded.set_at`.execute(db);
  if (numAffectedRows > 0n) return;
  throw new DomainError('sandbox.invalid', {
    errors: [{ pointer: '/now', detail: `must be at most ${maxYears} years from the real time` }],
  });
}

/**
 * What is due at the time to which the clock was set back, or later, is due again (remind.sql), also if the clock is set
 * forward again before anybody has written reminders. Waits for whoever is writing some: they move the marks.
 */
async function setReminderMarksBack(db: Kysely<CalendarSchema>, crmId: string, now: Date | undefined): Promise<void> {
  await db
    .selectFrom('reminderMark')
    .select('minutes')
    .where('crmId', '=', crmId)
    .orderBy('providerId')
    .orderBy('minutes')
    .forNoKeyUpdate()
    .execute();
  const until = now === undefined ? sql<Date>`scheduling_now()` : now;
  await db.updateTable('reminderMark').set({ until }).where('crmId', '=', crmId).where('until', '>', until).execute();
}
