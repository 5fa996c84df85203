import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import type { ParticipationReminderDue } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { callFunction } from '@scheduling/postgres';
import { eventually } from '@scheduling/testing';
import { createRandom, type Random } from '@scheduling/testing/random';
import { type Kysely, sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CalendarSchema } from '../src/db/schema.ts';
import { dateOf, makeClockAdjustable, type SetRealClock, textOf, wakeReplicas } from './adjustable-clock.ts';
import {
  allEnded,
  type Calendar,
  type CalendarUnderTest,
  countWaiting,
  createAppointment,
  createCustomer,
  freshReference,
  newParticipation,
  startCalendar,
} from './calendar-under-test.ts';

const { BOOKED, REQUESTED, CANCELED } = ParticipationState;
/**
 * The clocks are set to multiples of this, and go on for some seconds then. With the start and the lengths of all
 * reminders, nothing is closer than a minute to what the rules compare it with.
 */
const grid = 11;
const startOffset = 6;
const lengths = [10, 30, 60, 120, 1_440, 2_880];
const onGrid = (minutes: number): number => Math.floor(minutes / grid) * grid;

const seed = Number(process.env['REMINDERS_SEED'] ?? Math.floor(Math.random() * 1_000_000));
const steps = Number(process.env['REMINDERS_STEPS'] ?? 80);

const owners = {
  p1: { crmId: 'one', providerReference: 'p1' },
  p2: { crmId: 'one', providerReference: 'p2' },
  sandbox: { crmId: 'sandbox', providerReference: 'p1' },
};
type OwnerName = keyof typeof owners;
type Owner = (typeof owners)[OwnerName];

let calendar: CalendarUnderTest;
let replica: Calendar;
let setRealClock: SetRealClock;

beforeAll(async () => {
  calendar = await startCalendar();
  setRealClock = await makeClockAdjustable(calendar);
  replica = await calendar.startReplica();
}, 180_000);
afterAll(async () => {
  await replica?.[Symbol.asyncDispose]();
  await calendar?.[Symbol.asyncDispose]();
});

const setSandboxClock = (minutes: number) =>
  calendar.clocks.setSandboxClock({ crmId: 'sandbox', now: dateOf(minutes) });

/** Wakes the replicas, and waits until all reminders have been written that are due now. */
async function runRounds(): Promise<void> {
  const { kysely } = calendar.database;
  const { rows } = await sql<{ crm: string; present: Date }>`
    SELECT crm, scheduling_now(crm) AS present FROM unnest(ARRAY['one', 'two', 'sandbox']) AS crm`.execute(kysely);
  const presentOf = new Map(rows.map(({ crm, present }) => [crm, present]));
  await wakeReplicas([calendar, replica]);
  await eventually(async () => {
    const marks = await kysely
      .selectFrom('reminderMark')
      .select(['crmId', 'until', sql<boolean>`until > scheduling_now(crm_id)`.as('isAhead')])
      .execute();
    for (const { crmId, until, isAhead } of marks) {
      expect(isAhead).toBe(false);
      expect(until.getTime()).toBeGreaterThanOrEqual(presentOf.get(crmId)!.getTime());
    }
  });
}

type Reminder = Pick<ParticipationReminderDue, 'participationId' | 'start' | 'minutes'>;
const seen = new Set<string>();

/** The reminders since the last call. */
async function newReminders(
  db: Kysely<CalendarSchema> = calendar.database.kysely,
): Promise<ParticipationReminderDue[]> {
  const rows = await db
    .selectFrom('outbox')
    .select(['id', 'data'])
    .where('subject', '=', events.participationReminderDue.subject)
    .execute();
  const unseen = rows.filter(({ id }) => !seen.has(id));
  for (const { id } of unseen) seen.add(id);
  return unseen.map(({ data }) => events.participationReminderDue.fromJson(data!));
}

const factsOf = ({ participationId, start, minutes }: Reminder): Reminder => ({ participationId, start, minutes });

/** Otherwise its mail could not be sent again. */
async function expectPresentVersion({ crmId, participationId, version }: ParticipationReminderDue): Promise<void> {
  const { participations } = calendar;
  const { currentVersion } = await participations.getParticipationMailData({ crmId, participationId, version });
  expect(version).toBe(currentVersion);
}

const byId = (one: Reminder, two: Reminder): number =>
  `${one.participationId} ${one.minutes}` < `${two.participationId} ${two.minutes}` ? -1 : 1;

interface Appointment {
  reference: string;
  start: number;
  isActive: boolean;
}

interface Booking {
  id: string;
  reference: string;
  appointment: Appointment;
  state: ParticipationState;
  /** Whether the person has said that they will be there. */
  isAttending: boolean;
  /** When it was made, confirmed, or moved to its time, in real time. */
  arrangedAt: number;
  /** How often the clock of the sandbox had been set then. */
  clockSettings: number;
}

/** What is known of a provider, and which reminders that means: each length of a booking is an alarm. */
class Diary {
  readonly appointments: Appointment[] = [];
  readonly bookings: Booking[] = [];
  /** Since when there are reminders of this length. */
  readonly rules = new Map<number, number>();
  /** How far its clock is ahead of the real time. */
  ahead = 0;
  clockSettings = 0;
  #heardUntil = 0;
  readonly counts = { sent: 0, late: 0, tooLate: 0 };

  setRules(minutes: number[], now: number): void {
    for (const length of this.rules.keys()) if (!minutes.includes(length)) this.rules.delete(length);
    for (const length of minutes) if (!this.rules.has(length)) this.rules.set(length, now);
  }

  /** What reminds anybody now, after everything has been quiet since the last time. */
  hear(realNow: number): Reminder[] {
    const now = realNow + this.ahead;
    for (const [length, since] of this.rules) this.rules.set(length, Math.min(since, now));
    const from = Math.min(this.#heardUntil, now);
    this.#heardUntil = now;
    return this.bookings.flatMap((booking) => {
      const { start, isActive } = booking.appointment;
      if (booking.state !== BOOKED || !isActive) return [];
      const ringing = [...this.rules]
        .filter(([length, since]) => start - length >= Math.max(from, since) && start - length < now)
        .map(([length]) => length)
        .toSorted((one, two) => one - two);
      const [minutes] = ringing;
      return minutes === undefined || !this.#isWorthSending(booking, minutes, realNow)
        ? []
        : [this.#send(booking, minutes, now)];
    });
  }

  #isWorthSending({ appointment, arrangedAt, clockSettings }: Booking, minutes: number, realNow: number): boolean {
    const isTooLate = appointment.start - realNow - this.ahead < Math.min(15, minutes / 2);
    const dueAt = appointment.start - minutes - this.ahead;
    const isJustRead = clockSettings === this.clockSettings && dueAt - arrangedAt < Math.min(60, minutes / 2);
    if (isTooLate) this.counts.tooLate += 1;
    return !isTooLate && !isJustRead;
  }

  #send({ id, appointment: { start } }: Booking, minutes: number, now: number): Reminder {
    this.counts.sent += 1;
    if (now - (start - minutes) > grid) this.counts.late += 1;
    return { participationId: id, start: textOf(start).replace('.000', ''), minutes };
  }
}

/** Random changes of one provider, through any replica. */
class Actor {
  readonly diary = new Diary();
  readonly #owner: Owner;
  readonly #random: Random;
  #customerReference = '';

  constructor(name: OwnerName, random: Random) {
    this.#owner = owners[name];
    this.#random = random;
  }

  async act(realNow: number): Promise<void> {
    this.#customerReference ||= await createCustomer(calendar, this.#owner);
    const act = this.#random.pick([
      this.#book,
      this.#book,
      this.#book,
      this.#bookEmbedded,
      this.#changeState,
      this.#attend,
      this.#moveAppointment,
      this.#describeAppointment,
      this.#moveBooking,
      this.#endAppointment,
      this.#setRules,
    ]);
    await act.call(this, realNow);
  }

  get #somewhere(): Calendar {
    return this.#random.pick([calendar, replica]);
  }

  #now(realNow: number): number {
    return realNow + this.diary.ahead;
  }

  /** Often soon after a reminder would be due, or soon before. */
  #newStart(realNow: number): number {
    const lead = this.#random.chance(0.7)
      ? this.#random.pick(lengths) + this.#random.integer(-30, 120)
      : this.#random.integer(grid, 4_000);
    return onGrid(this.#now(realNow) + Math.max(lead, grid)) + startOffset;
  }

  async #createAppointment(realNow: number, embedded: string[] = []): Promise<Appointment> {
    const start = this.#newStart(realNow);
    const participations = embedded.map((reference) => ({
      reference,
      name: 'Grace',
      email: 'grace@example.com',
      state: BOOKED,
    }));
    const reference = await createAppointment(this.#somewhere, {
      ...this.#owner,
      start: textOf(start),
      end: textOf(start + 60),
      capacity: 100,
      acceptBookings: true,
      participations,
    });
    const appointment = { reference, start, isActive: true };
    this.diary.appointments.push(appointment);
    return appointment;
  }

  async #note(reference: string, appointment: Appointment, state: ParticipationState, realNow: number): Promise<void> {
    const { id } = await calendar.database.kysely
      .selectFrom('participation')
      .select('id')
      .where('crmId', '=', this.#owner.crmId)
      .where('reference', '=', reference)
      .executeTakeFirstOrThrow();
    const { clockSettings } = this.diary;
    this.diary.bookings.push({
      id,
      reference,
      appointment,
      state,
      isAttending: false,
      arrangedAt: realNow,
      clockSettings,
    });
  }

  #rearrange(booking: Booking, realNow: number): void {
    booking.arrangedAt = realNow;
    booking.isAttending = false;
    booking.clockSettings = this.diary.clockSettings;
  }

  async #book(realNow: number): Promise<void> {
    const open = this.diary.appointments.filter(({ isActive }) => isActive);
    const appointment =
      open.length > 0 && this.#random.chance(0.3) ? this.#random.pick(open) : await this.#createAppointment(realNow);
    const state = this.#random.chance(0.2) ? REQUESTED : BOOKED;
    const required = { appointmentReference: appointment.reference, customerReference: this.#customerReference };
    const request = newParticipation(required, { ...this.#owner, state, sendMails: this.#random.chance(0.5) });
    await this.#somewhere.participations.createParticipation(request);
    await this.#note(request.reference, appointment, state, realNow);
  }

  async #bookEmbedded(realNow: number): Promise<void> {
    const references = [1, 2].map(() => freshReference('embedded'));
    const appointment = await this.#createAppointment(realNow, references);
    for (const reference of references) await this.#note(reference, appointment, BOOKED, realNow);
  }

  async #changeState(realNow: number): Promise<void> {
    const booking = this.#random
      .shuffled(this.diary.bookings)
      .find(({ state, appointment }) => state !== CANCELED && appointment.isActive);
    if (booking === undefined) return;
    const state = booking.state === REQUESTED && this.#random.chance(0.7) ? BOOKED : CANCELED;
    await this.#somewhere.participations.updateParticipation({
      ...this.#owner,
      participationReference: booking.reference,
      state,
      ignoreCapacity: false,
      sendMails: this.#random.chance(0.5),
    });
    booking.state = state;
    this.#rearrange(booking, realNow);
  }

  async #attend(realNow: number): Promise<void> {
    const booking = this.#random
      .shuffled(this.diary.bookings)
      .find(
        ({ state, appointment, isAttending }) =>
          state === BOOKED && appointment.isActive && appointment.start > this.#now(realNow) && !isAttending,
      );
    if (booking === undefined) return;
    const key = { ...this.#owner, participationReference: booking.reference };
    const { token } = await this.#somewhere.participations.getParticipationLink(key);
    await this.#somewhere.persons.confirmAttendance({ token });
    booking.isAttending = true;
  }

  async #moveAppointment(realNow: number): Promise<void> {
    const appointment = this.#random.shuffled(this.diary.appointments).find(({ isActive }) => isActive);
    const start = this.#newStart(realNow);
    if (appointment === undefined || appointment.start === start) return;
    await this.#somewhere.appointments.updateAppointment({
      ...this.#owner,
      appointmentReference: appointment.reference,
      start: textOf(start),
      end: textOf(start + 60),
      sendMails: this.#random.chance(0.5),
      noAddress: false,
    });
    appointment.start = start;
    for (const booking of this.diary.bookings) {
      if (booking.appointment === appointment && booking.state !== CANCELED) this.#rearrange(booking, realNow);
    }
  }

  async #describeAppointment(): Promise<void> {
    const appointment = this.#random.shuffled(this.diary.appointments).find(({ isActive }) => isActive);
    if (appointment === undefined) return;
    await this.#somewhere.appointments.updateAppointment({
      ...this.#owner,
      appointmentReference: appointment.reference,
      description: freshReference('title'),
      sendMails: this.#random.chance(0.5),
      noAddress: false,
    });
    for (const booking of this.diary.bookings) if (booking.appointment === appointment) booking.isAttending = false;
  }

  async #moveBooking(realNow: number): Promise<void> {
    const booking = this.#random
      .shuffled(this.diary.bookings)
      .find(({ state, appointment }) => state !== CANCELED && appointment.isActive);
    if (booking === undefined) return;
    const target = await this.#createAppointment(realNow);
    await this.#somewhere.bookings.changeBooking({
      ...this.#owner,
      participationReference: booking.reference,
      place: { $case: 'appointmentReference', value: target.reference },
      ignoreNotice: true,
      sendMails: this.#random.chance(0.5),
    });
    booking.appointment = target;
    this.#rearrange(booking, realNow);
  }

  async #endAppointment(): Promise<void> {
    const appointment = this.#random.shuffled(this.diary.appointments).find(({ isActive }) => isActive);
    if (appointment === undefined) return;
    const { reference } = appointment;
    const { appointments } = this.#somewhere;
    if (this.#random.chance(0.5))
      await appointments.cancelAppointment({ ...this.#owner, appointmentReference: reference });
    else {
      const target = { $case: 'appointmentReference', value: reference } as const;
      await appointments.deleteAppointments({ ...this.#owner, target });
    }
    appointment.isActive = false;
  }

  async #setRules(realNow: number): Promise<void> {
    await this.setReminders(this.#random.shuffled(lengths).slice(0, this.#random.integer(0, 4)), realNow);
  }

  async setReminders(minutes: number[], realNow: number): Promise<void> {
    await this.#somewhere.bookings.updateBookingRules({
      ...this.#owner,
      noHorizon: false,
      defaultSelfService: false,
      reminders: { minutes },
    });
    this.diary.setRules(minutes, this.#now(realNow));
  }

  /** Of a sandbox. */
  async setClock(now: number, realNow: number): Promise<void> {
    await this.#somewhere.clocks.setSandboxClock({ crmId: this.#owner.crmId, now: dateOf(now) });
    this.diary.ahead = now - realNow;
    this.diary.clockSettings += 1;
  }
}

describe('reminders', () => {
  it(
    `are written once, in time and for what is still booked, whatever happens (seed ${seed})`,
    { timeout: 600_000 },
    async () => {
      const random = createRandom(seed, 0);
      const actors = (Object.keys(owners) as OwnerName[]).map(
        (name, index) => new Actor(name, createRandom(seed, index + 1)),
      );
      const [, , sandbox] = actors as [Actor, Actor, Actor];
      let now = 0;
      await setRealClock(now);
      for (const actor of actors) await actor.setReminders([60, 1_440], now);

      const counts = ['sent', 'late', 'tooLate'] as const;
      const total = (count: (typeof counts)[number]) => actors.reduce((sum, { diary }) => sum + diary.counts[count], 0);
      // Otherwise the test says nothing about one of them.
      const isEnough = () => counts.every((count) => total(count) > steps / 20);
      for (let step = 0; step < steps || (!isEnough() && step < 5 * steps); step += 1) {
        if (random.chance(0.15)) {
          const present = now + sandbox.diary.ahead;
          await sandbox.setClock(present + grid * random.pick([-300, -10, -1, 1, 8, 30, 200]), now);
        } else {
          // Nobody writes reminders meanwhile: the long ones are outages.
          now += grid * random.pick([1, 1, 1, 1, 1, 2, 2, 3, 5, 9, 25, 300]);
          await setRealClock(now);
        }
        if (random.chance(0.05)) {
          await replica[Symbol.asyncDispose]();
          replica = await calendar.startReplica();
        }
        await runRounds();
        const expected = actors.flatMap(({ diary }) => diary.hear(now));
        const written = await newReminders();
        for (const reminder of written) await expectPresentVersion(reminder);
        expect(written.map(factsOf).toSorted(byId), `seed ${seed}, step ${step}`).toEqual(expected.toSorted(byId));
        for (const actor of actors) {
          for (let count = random.integer(0, 3); count > 0; count -= 1) await actor.act(now);
        }
      }
      for (const count of counts) expect(total(count), count).toBeGreaterThan(steps / 20);
    },
  );

  it('are written by one replica at a time, and by another one if that is killed', async () => {
    const { kysely, pool } = calendar.database;
    const ids = await bookQuietly(owners.p2, [100]);
    const killed = await pool.connect();
    try {
      await killed.query('BEGIN');
      // The replicas that are running leave the provider to this one.
      await killed.query('SELECT FROM reminder_mark FOR NO KEY UPDATE');
      await setRealClock(70);
      const { rows } = await killed.query<{ pid: number }>(`
        SELECT pg_backend_pid() AS pid, remind(jsonb_build_object('crmId', crm_id, 'providerId', id, 'limit', 500))
          FROM provider WHERE crm_id = 'one' AND reference = 'p2'`);
      expect(await remind(kysely, owners.p2)).toEqual({ written: 0, isBehind: false });
      await sql`SELECT pg_terminate_backend(${rows[0]!.pid}, 5000)`.execute(kysely);
    } finally {
      killed.release(true);
    }
    await runRounds();
    expect(await newRemindersOf(ids)).toEqual([ids]);
  });

  it('are written although the title was changed, or the person has said that they will be there, just before', async () => {
    const [titled, attended] = (await bookQuietly(owners.p2, [100, 110])) as [string, string];
    await setRealClock(35);
    const { appointmentReference } = await referencesOf(titled);
    await calendar.appointments.updateAppointment({
      ...owners.p2,
      appointmentReference,
      description: 'Another title',
      sendMails: false,
      noAddress: false,
    });
    const { participationReference } = await referencesOf(attended);
    const { token } = await calendar.participations.getParticipationLink({ ...owners.p2, participationReference });
    await calendar.persons.confirmAttendance({ token });
    await setRealClock(55);
    await runRounds();
    expect(await newRemindersOf([titled, attended])).toEqual([[titled], [attended]]);
  });

  it('are written if they are due at the very time to which the clock of a sandbox is set back', async () => {
    const { sandbox } = owners;
    await setRealClock(0);
    await setSandboxClock(5_000);
    const ids = await bookQuietly(sandbox, [4_060]);
    await setSandboxClock(4_000);
    await runRounds();
    expect(await newRemindersOf(ids)).toEqual([ids]);
  });

  it('are written if the clock of a sandbox is set back and forward again before anybody could write any', async () => {
    const { sandbox } = owners;
    await setRealClock(0);
    await setSandboxClock(5_000);
    const ids = await bookQuietly(sandbox, [4_060]);
    const round = await calendar.database.kysely.startTransaction().execute();
    try {
      await sql`SELECT FROM reminder_mark WHERE crm_id = 'sandbox' FOR NO KEY UPDATE`.execute(round);
      const setting = setSandboxClock(3_990);
      await eventually(async () => expect(await countWaiting(calendar, '%reminder_mark%')).toBe(1));
      const settingOn = setSandboxClock(4_001);
      await eventually(async () => expect(await countWaiting(calendar, '%advisory%')).toBe(1));
      await round.rollback().execute();
      await allEnded([setting, settingOn]);
    } finally {
      if (!round.isRolledBack) await round.rollback().execute();
    }
    await runRounds();
    expect(await newRemindersOf(ids)).toEqual([ids]);
  });

  it('are written if they are due at the time to which the clock of a sandbox is set while others are being written', async () => {
    const { sandbox } = owners;
    await setRealClock(0);
    await setSandboxClock(3_000);
    const ids = await bookQuietly(sandbox, [4_060]);
    const round = await calendar.database.kysely.startTransaction().execute();
    try {
      // Its clock was ahead.
      await round
        .updateTable('reminderMark')
        .set({ until: dateOf(4_500) })
        .where('crmId', '=', 'sandbox')
        .execute();
      const setting = setSandboxClock(4_000);
      await eventually(async () => expect(await countWaiting(calendar, '%reminder_mark%')).toBe(1));
      await round.commit().execute();
      await setting;
    } finally {
      if (!round.isCommitted) await round.rollback().execute();
    }
    await runRounds();
    expect(await newRemindersOf(ids)).toEqual([ids]);
  });

  it('of more appointments than are considered at once are written in their order, each once', async () => {
    const owner = { crmId: 'two', providerReference: 'p1' };
    const ids = await bookQuietly(owner, [120, 100, 110, 110]);
    const tx = await calendar.database.kysely.startTransaction().execute();
    try {
      // For nobody else.
      await setRealClock(70, tx);
      const answers = [];
      for (let call = 1; call <= 4; call += 1) answers.push(await remind(tx, owner, 1));
      expect(answers).toEqual([
        { written: 1, isBehind: true },
        { written: 2, isBehind: true },
        { written: 1, isBehind: true },
        { written: 0, isBehind: false },
      ]);
      const [last, first, ...middle] = ids;
      expect(await newRemindersOf(ids, tx)).toEqual([[first], middle.toSorted(), [last]]);
    } finally {
      await tx.rollback().execute();
    }
  });
});

/**
 * Bookings at so many minutes, and the ids of their participations. Nobody has been reminded of them, and an hour before
 * is the time for it.
 */
async function bookQuietly(owner: Owner, starts: number[]): Promise<string[]> {
  await setRealClock(0);
  const rules = { noHorizon: false, defaultSelfService: false, reminders: { minutes: [60] } };
  await calendar.bookings.updateBookingRules({ ...owner, ...rules });
  // The clock was ahead in other tests.
  await runRounds();
  const ids: string[] = [];
  for (const minutes of starts) {
    const reference = freshReference('embedded');
    await createAppointment(calendar, {
      ...owner,
      start: textOf(minutes),
      end: textOf(minutes + 60),
      participations: [{ reference, name: 'Grace', email: 'grace@example.com', state: BOOKED }],
    });
    const { id } = await calendar.database.kysely
      .selectFrom('participation')
      .select('id')
      .where('reference', '=', reference)
      .executeTakeFirstOrThrow();
    ids.push(id);
  }
  return ids;
}

function referencesOf(participationId: string) {
  return calendar.database.kysely
    .selectFrom('participation')
    .innerJoin('appointment', 'appointment.id', 'participation.appointmentId')
    .select(['participation.reference as participationReference', 'appointment.reference as appointmentReference'])
    .where('participation.id', '=', participationId)
    .executeTakeFirstOrThrow();
}

async function remind(
  db: Kysely<CalendarSchema>,
  { crmId, providerReference }: Owner,
  limit = 500,
): Promise<{ written: number; isBehind: boolean }> {
  const { id: providerId } = await db
    .selectFrom('provider')
    .select('id')
    .where('crmId', '=', crmId)
    .where('reference', '=', providerReference)
    .executeTakeFirstOrThrow();
  const request = { crmId, providerId, limit };
  return callFunction(db, { name: 'remind', request, locks: '' });
}

/** The ids of those who are reminded, by the time of their appointments. */
async function newRemindersOf(ids: string[], db = calendar.database.kysely): Promise<string[][]> {
  const reminders = (await newReminders(db)).filter(({ participationId }) => ids.includes(participationId));
  const byStart = Map.groupBy(reminders, ({ start }) => start);
  return [...byStart]
    .toSorted(([one], [two]) => (one < two ? -1 : 1))
    .map(([, each]) => each.map(({ participationId }) => participationId).toSorted());
}
