import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import type { DailyListDue } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { eventually, testLogger } from '@scheduling/testing';
import { createRandom, type Random } from '@scheduling/testing/random';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dueTime } from '../src/daily-list/local-day.ts';
import { writeDailyLists } from '../src/daily-list/write-daily-lists.ts';
import {
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  freshReference,
  newParticipation,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';
import { newBooking, newTimeslot } from './slots-under-test.ts';

const { BOOKED, REQUESTED, CANCELED, RESERVED } = ParticipationState;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** The clocks are set to multiples of this and `clockOffset`, and so never to the beginning of an hour anywhere. */
const grid = 20;
const clockOffset = 5;
const onGrid = (ms: number): number => (Math.floor(ms / (grid * minuteMs)) * grid + clockOffset) * minuteMs;

const seed = Number(process.env['DAILY_LISTS_SEED'] ?? Math.floor(Math.random() * 1_000_000));
const steps = Number(process.env['DAILY_LISTS_STEPS'] ?? 120);

/** Where the clock skips an hour, or shows one twice, at night, around midnight, or by half an hour. */
const zones = [
  'Europe/Berlin',
  'America/Nuuk',
  'America/Havana',
  'Asia/Beirut',
  'Australia/Lord_Howe',
  'Pacific/Auckland',
];
/** A few days before the clocks are changed in most of them. */
const seasons = ['2030-03-28T00:00:00Z', '2030-10-25T00:00:00Z', '2030-04-05T00:00:00Z', '2030-10-04T00:00:00Z'];

const owners = {
  p1: { crmId: 'one', providerReference: 'p1' },
  p2: { crmId: 'one', providerReference: 'p2' },
  other: { crmId: 'two', providerReference: 'p1' },
  sandbox: { crmId: 'sandbox', providerReference: 'p1' },
};
type OwnerName = keyof typeof owners;
type Owner = (typeof owners)[OwnerName];

const logger = testLogger('calendar-test');
let calendar: CalendarUnderTest;

beforeAll(async () => {
  calendar = await startCalendar();
  await makeClockAdjustable();
  for (const owner of Object.values(owners)) await setHour(owner, undefined);
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

/** That of the database, for all sessions at once: time has to pass for all replicas. */
async function makeClockAdjustable(): Promise<void> {
  const { kysely } = calendar.database;
  await sql`CREATE TABLE adjusted_clock AS SELECT interval '0' AS ahead`.execute(kysely);
  await sql`
    CREATE OR REPLACE FUNCTION scheduling_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
      SELECT clock_timestamp() + ahead FROM adjusted_clock
    $$`.execute(kysely);
}

async function setRealClock(ms: number): Promise<void> {
  await sql`UPDATE adjusted_clock SET ahead = ${new Date(ms)}::timestamptz - clock_timestamp()`.execute(
    calendar.database.kysely,
  );
}

const setClock = (ms: number | undefined, { crmId } = owners.sandbox) =>
  calendar.clocks.setSandboxClock({ crmId, now: ms === undefined ? undefined : new Date(ms) });

/** Undefined: no list. */
async function setHour(owner: Owner, hour: number | undefined): Promise<void> {
  await calendar.bookings.updateBookingRules({
    ...owner,
    noHorizon: false,
    dailyList: hour,
    noDailyList: hour === undefined,
  });
}

async function providerOf({ crmId, providerReference }: Owner): Promise<string> {
  const { id } = await calendar.database.kysely
    .selectFrom('provider')
    .select('id')
    .where('crmId', '=', crmId)
    .where('reference', '=', providerReference)
    .executeTakeFirstOrThrow();
  return id;
}

/** Identity is not asked again meanwhile. */
async function setZone({ crmId, providerReference }: Owner, timeZone: string): Promise<void> {
  await calendar.database.kysely
    .updateTable('provider')
    .set({ timeZone })
    .where('crmId', '=', crmId)
    .where('reference', '=', providerReference)
    .execute();
}

/** Writes what is due now, in two replicas at once, and beside those that the service itself runs. */
async function runRounds(): Promise<void> {
  const { database } = calendar;
  await Promise.all([writeDailyLists({ database, logger }), writeDailyLists({ database, logger })]);
  // Whoever has left a mark to the service waits for it.
  await sql`SELECT FROM daily_list_mark FOR UPDATE`.execute(database.kysely);
}

const seen = new Set<string>();

/** The events since the last call. */
async function newLists(): Promise<DailyListDue[]> {
  const rows = await calendar.database.kysely
    .selectFrom('outbox')
    .select(['id', 'data'])
    .where('subject', '=', events.dailyListDue.subject)
    .orderBy('id')
    .execute();
  const unseen = rows.filter(({ id }) => !seen.has(id));
  for (const { id } of unseen) seen.add(id);
  return unseen.map(({ data }) => events.dailyListDue.fromJson(data!));
}

const book = (owner: Owner, ms: number): Promise<string> =>
  createAppointment(calendar, {
    ...owner,
    start: new Date(ms).toISOString(),
    end: new Date(ms + hourMs).toISOString(),
  });

/** What a clock on the wall shows, by the data of Intl. */
function wallClock(ms: number, timeZone: string): { date: string; hour: number } {
  const parts = Object.fromEntries(
    new Intl.DateTimeFormat('en', {
      timeZone,
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      hourCycle: 'h23',
    })
      .formatToParts(ms)
      .map(({ type, value }) => [type, value]),
  );
  return { date: `${parts['year']}-${parts['month']}-${parts['day']}`, hour: Number(parts['hour']) };
}

/** Whether the hour has come on the present day. An hour that the day does not have comes before the day is over. */
function hasCome(ms: number, hour: number, timeZone: string): boolean {
  const now = wallClock(ms, timeZone);
  if (now.hour >= hour) return true;
  const isLastHour = wallClock(ms + hourMs, timeZone).date !== now.date;
  return isLastHour && wallClock(ms + hourMs - minuteMs, timeZone).hour < hour;
}

/** What is known of a provider, and which lists that means. */
class Diary {
  readonly timeZone: string;
  readonly appointments: { reference: string; startMs: number; isActive: boolean }[] = [];
  /** How far its clock is ahead of the real time. */
  aheadMs = 0;
  hour: number | undefined;
  setAtMs = 0;
  #listedOn: string | undefined;
  readonly #owner: Owner;
  readonly counts = { written: 0, empty: 0, setToday: 0 };

  constructor(owner: Owner, timeZone: string) {
    this.#owner = owner;
    this.timeZone = timeZone;
  }

  get owner(): Owner {
    return this.#owner;
  }

  /**
   * The time, or a later one if the hour was set then: whether that was before or after is decided by the milliseconds
   * that this test took.
   */
  awayFromSet(ms: number): number {
    return ms === this.setAtMs ? ms + grid * minuteMs : ms;
  }

  /** The day whose list is written now, if there is one. */
  listAt(realMs: number): string | undefined {
    const { hour, timeZone, setAtMs } = this;
    const ms = realMs + this.aheadMs;
    const { date } = wallClock(ms, timeZone);
    if (hour === undefined || this.#listedOn === date || !hasCome(ms, hour, timeZone)) return undefined;
    const isSetToday = setAtMs <= ms && wallClock(setAtMs, timeZone).date === date && hasCome(setAtMs, hour, timeZone);
    if (isSetToday) this.counts.setToday += 1;
    if (isSetToday) return undefined;
    this.#listedOn = date;
    const isListed = this.appointments.some(
      ({ startMs, isActive }) => isActive && wallClock(startMs, timeZone).date === date,
    );
    this.counts[isListed ? 'written' : 'empty'] += 1;
    return isListed ? date : undefined;
  }
}

async function act(diary: Diary, realMs: number, random: Random): Promise<void> {
  const presentMs = realMs + diary.aheadMs;
  const { owner } = diary;
  const kind = random.pick(['book', 'book', 'end', 'hour', 'sameHour'] as const);
  if (kind === 'book') {
    const startMs = onGrid(presentMs + random.integer(0, 3 * 24 * 60) * minuteMs);
    diary.appointments.push({ reference: await book(owner, startMs), startMs, isActive: true });
  } else if (kind === 'end') {
    const appointment = random.shuffled(diary.appointments).find(({ isActive }) => isActive);
    if (appointment === undefined) return;
    await calendar.appointments.cancelAppointment({ ...owner, appointmentReference: appointment.reference });
    appointment.isActive = false;
  } else {
    const hour = kind === 'sameHour' ? diary.hour : random.pick([undefined, 0, 1, 2, 3, 7, 12, 20, 22, 23]);
    await setHour(owner, hour);
    if (hour !== diary.hour) diary.setAtMs = presentMs;
    diary.hour = hour;
  }
}

function expectEndOfDay({ date, expiresAt }: DailyListDue, { timeZone, aheadMs }: Diary): void {
  const endMs = Date.parse(expiresAt) + aheadMs;
  // The clock was set by this test, and goes on meanwhile.
  expect(wallClock(endMs - minuteMs, timeZone).date).toBe(date);
  expect(wallClock(endMs + minuteMs, timeZone).date).not.toBe(date);
}

describe('the list of the day', () => {
  it(
    `is written once a day at its hour, where there are appointments, whatever happens (seed ${seed})`,
    { timeout: 600_000 },
    async () => {
      const random = createRandom(seed, 0);
      const zone = random.shuffled(zones);
      const diaries = Object.values(owners).map((owner, index) => new Diary(owner, zone[index]!));
      const sandbox = diaries.at(-1)!;
      let nowMs = onGrid(Date.parse(random.pick(seasons)));
      await setRealClock(nowMs);
      for (const diary of diaries) {
        await setZone(diary.owner, diary.timeZone);
        diary.setAtMs = nowMs;
      }
      await setClock(undefined);
      const ids = new Map(
        await Promise.all(diaries.map(async (diary) => [await providerOf(diary.owner), diary] as const)),
      );

      const counts = ['written', 'empty', 'setToday'] as const;
      const total = (count: (typeof counts)[number]) => diaries.reduce((sum, diary) => sum + diary.counts[count], 0);
      const isEnough = () => counts.every((count) => total(count) > steps / 20);
      for (let step = 0; step < steps || (!isEnough() && step < 5 * steps); step += 1) {
        if (random.chance(0.15)) {
          const presentMs = sandbox.awayFromSet(
            onGrid(nowMs + sandbox.aheadMs + random.pick([-200, -30, -3, -1, 1, 5, 30, 100]) * hourMs),
          );
          await setClock(presentMs);
          sandbox.aheadMs = presentMs - nowMs;
        } else {
          // The long ones are outages.
          nowMs = onGrid(nowMs + random.pick([20, 20, 60, 60, 120, 240, 600, 1_500, 4_000]) * minuteMs);
          nowMs = sandbox.awayFromSet(nowMs + sandbox.aheadMs) - sandbox.aheadMs;
          await setRealClock(nowMs);
        }
        await runRounds();
        const expected = diaries.flatMap((diary) => {
          const date = diary.listAt(nowMs);
          return date === undefined ? [] : [`${diary.owner.crmId} ${diary.owner.providerReference} ${date}`];
        });
        const written = (await newLists()).map((list) => {
          const diary = ids.get(list.providerId)!;
          expectEndOfDay(list, diary);
          return `${list.crmId} ${diary.owner.providerReference} ${list.date}`;
        });
        expect(written.toSorted(), `seed ${seed}, step ${step}`).toEqual(expected.toSorted());
        for (const diary of diaries) {
          for (let count = random.integer(0, 2); count > 0; count -= 1) await act(diary, nowMs, random);
        }
      }
      // Otherwise the test says nothing about one of them.
      for (const count of counts) expect(total(count), count).toBeGreaterThan(steps / 20);
      for (const owner of Object.values(owners)) await setHour(owner, undefined);
    },
  );

  it.each([
    ['Europe/Berlin', '2030-03-31', 2, '2030-03-31T01:00:00.000Z', 'skips'],
    ['Europe/Berlin', '2030-10-27', 2, '2030-10-27T00:00:00.000Z', 'shows twice'],
    // Midnight is skipped, the last hour of a day is, and the first hour of a day comes twice.
    ['Asia/Beirut', '2030-03-31', 0, '2030-03-30T22:00:00.000Z', 'skips'],
    ['America/Nuuk', '2030-03-30', 23, '2030-03-31T00:00:00.000Z', 'skips'],
    ['America/Havana', '2030-11-03', 0, '2030-11-03T04:00:00.000Z', 'shows twice'],
  ])('is due in %s on %s at %i o’clock once, at %s, although the clock %s that hour', (zone, date, hour, expected) => {
    expect(dueTime(Temporal.PlainDate.from(date), hour, zone).toISOString()).toBe(expected);
  });

  /** The provider in Berlin whose list of this day is next, at 7. */
  async function beforeHour(day: string): Promise<string> {
    await setZone(owners.p1, 'Europe/Berlin');
    await setRealClock(Date.parse(`${day}T00:05:00Z`));
    await setHour(owners.p1, undefined);
    await setHour(owners.p1, 7);
    await runRounds();
    await newLists();
    return providerOf(owners.p1);
  }

  it('is left to the replica that writes it, and written by another one if that is killed', async () => {
    const { database } = calendar;
    const providerId = await beforeHour('2031-06-02');
    await book(owners.p1, Date.parse('2031-06-02T10:00:00Z'));
    const killed = await database.pool.connect();
    try {
      await killed.query('BEGIN');
      await killed.query('SELECT FROM daily_list_mark FOR NO KEY UPDATE');
      await setRealClock(Date.parse('2031-06-02T06:05:00Z'));
      await writeDailyLists({ database, logger });
      expect(await newLists()).toEqual([]);
    } finally {
      killed.release(true);
    }
    await runRounds();
    expect(await newLists()).toMatchObject([{ crmId: 'one', providerId, date: '2031-06-02' }]);
  });

  it('is not written by a replica that has read the rules before another one wrote it', async () => {
    const providerId = await beforeHour('2031-06-03');
    await book(owners.p1, Date.parse('2031-06-03T10:00:00Z'));
    await setRealClock(Date.parse('2031-06-03T06:05:00Z'));
    await runRounds();
    expect(await newLists()).toHaveLength(1);
    const list = {
      providerId,
      hour: 7,
      listedOn: null,
      date: '2031-06-03',
      dayStart: '2031-06-02T22:00:00Z',
      dayEnd: '2031-06-03T22:00:00Z',
      expiresAt: '2031-06-03T22:00:00Z',
    };
    const request = JSON.stringify({ crmId: 'one', lists: [list] });
    await sql`SELECT write_daily_lists(${request}::jsonb)`.execute(calendar.database.kysely);
    expect(await newLists()).toEqual([]);
  });

  it('is not written again at a later hour, or after it was turned off and on', async () => {
    await beforeHour('2031-06-04');
    await book(owners.p1, Date.parse('2031-06-04T20:00:00Z'));
    await setRealClock(Date.parse('2031-06-04T06:05:00Z'));
    await runRounds();
    expect(await newLists()).toHaveLength(1);
    await setHour(owners.p1, undefined);
    await setHour(owners.p1, 10);
    await setRealClock(Date.parse('2031-06-04T09:05:00Z'));
    await runRounds();
    expect(await newLists()).toEqual([]);
  });

  it('begins tomorrow if the hour is over when it is set', async () => {
    await beforeHour('2031-06-05');
    await book(owners.p1, Date.parse('2031-06-05T20:00:00Z'));
    await book(owners.p1, Date.parse('2031-06-06T20:00:00Z'));
    await setHour(owners.p1, undefined);
    await setRealClock(Date.parse('2031-06-05T06:05:00Z'));
    await setHour(owners.p1, 7);
    await runRounds();
    expect(await newLists()).toEqual([]);
    await setRealClock(Date.parse('2031-06-06T06:05:00Z'));
    await runRounds();
    expect(await newLists()).toMatchObject([{ date: '2031-06-06' }]);
  });

  it('is a rule of its own, of which there is none until it is set', async () => {
    const { bookings } = calendar;
    const set = async (dailyList: number | undefined) => {
      await setHour(owners.p2, dailyList);
      return (await bookings.getBookingRules(owners.p2)).rules!.dailyList;
    };
    expect([await set(undefined), await set(0), await set(23), await set(undefined)]).toEqual([
      undefined,
      0,
      23,
      undefined,
    ]);
  });

  it('is written although the same hour is set again before that', async () => {
    await beforeHour('2031-06-07');
    await book(owners.p1, Date.parse('2031-06-07T20:00:00Z'));
    await setRealClock(Date.parse('2031-06-07T06:05:00Z'));
    await setHour(owners.p1, 7);
    await runRounds();
    expect(await newLists()).toMatchObject([{ date: '2031-06-07' }]);
  });

  it('is written of days before the hour was set, to which the clock of a sandbox is set back', async () => {
    await setZone(owners.sandbox, 'Europe/Berlin');
    await setRealClock(Date.parse('2031-06-09T00:05:00Z'));
    await setHour(owners.sandbox, undefined);
    await setClock(Date.parse('2032-03-10T12:05:00Z'));
    await setHour(owners.sandbox, 7);
    await book(owners.sandbox, Date.parse('2032-03-05T10:00:00Z'));
    await runRounds();
    await newLists();
    await setClock(Date.parse('2032-03-05T08:05:00Z'));
    await runRounds();
    expect(await newLists()).toMatchObject([{ crmId: 'sandbox', date: '2032-03-05' }]);
    await setHour(owners.sandbox, undefined);
  });

  it('is written when the clock of a sandbox is set, of that day only', async () => {
    await setZone(owners.sandbox, 'Europe/Berlin');
    await setRealClock(Date.parse('2031-06-10T00:05:00Z'));
    await setClock(Date.parse('2032-01-10T00:05:00Z'));
    await setHour(owners.sandbox, 7);
    for (const day of [10, 11, 12, 13]) await book(owners.sandbox, Date.parse(`2032-01-${day}T10:00:00Z`));
    await setClock(Date.parse('2032-01-12T07:05:00Z'));
    const lists: DailyListDue[] = [];
    await eventually(async () => {
      lists.push(...(await newLists()));
      expect(lists).toHaveLength(1);
    });
    expect(lists).toMatchObject([{ crmId: 'sandbox', date: '2032-01-12' }]);
    // At 23:00 UTC by the clock of the sandbox, which is 15:55 hours away.
    const minutesLeft = (Date.parse(lists[0]!.expiresAt) - Date.parse('2031-06-10T00:05:00Z')) / minuteMs;
    expect(minutesLeft).toBeGreaterThan(15 * 60 + 54);
    expect(minutesLeft).toBeLessThan(15 * 60 + 57);
  });

  it('is written although that of another provider cannot be', async () => {
    await beforeHour('2031-06-20');
    await setHour(owners.p2, 7);
    await setZone(owners.p2, 'Nowhere/Nowhere');
    await book(owners.p1, Date.parse('2031-06-20T10:00:00Z'));
    await setRealClock(Date.parse('2031-06-20T06:05:00Z'));
    await runRounds();
    expect(await newLists()).toMatchObject([{ date: '2031-06-20' }]);
    await setZone(owners.p2, 'Europe/Berlin');
    await setHour(owners.p2, undefined);
  });

  it('does not stop the reminders if it cannot be written, and is written later', async () => {
    const { database } = calendar;
    await beforeHour('2031-07-01');
    await book(owners.p1, Date.parse('2031-07-01T10:00:00Z'));
    await setRealClock(Date.parse('2031-07-01T06:05:00Z'));
    await sql`ALTER FUNCTION write_daily_lists RENAME TO unknown_function`.execute(database.kysely);
    try {
      await expect(writeDailyLists({ database, logger })).resolves.toBeUndefined();
      expect(await newLists()).toEqual([]);
    } finally {
      await sql`ALTER FUNCTION unknown_function RENAME TO write_daily_lists`.execute(database.kysely);
    }
    await runRounds();
    expect(await newLists()).toHaveLength(1);
  });
});

describe('what the list of the day says', () => {
  const owner = owners.p2;
  const at = (time: string): number => Date.parse(`2031-08-01T${time}:00Z`);
  const listDay = async (date: string, limit = 100) =>
    calendar.participations.listDay({ crmId: owner.crmId, providerId: await providerOf(owner), date, limit });

  async function participate(
    appointmentReference: string,
    state: ParticipationState,
  ): Promise<{ reference: string; name: string }> {
    const customerReference = await createCustomer(calendar, owner);
    const request = newParticipation({ appointmentReference, customerReference }, { ...owner, state });
    await calendar.participations.createParticipation(request);
    return { reference: request.reference, name: `Name of ${customerReference}` };
  }

  it('is who is booked or requested in each appointment of the day, and who else there is', async () => {
    await setRealClock(at('00:05'));
    await setZone(owner, 'Europe/Berlin');
    const yoga = await createAppointment(calendar, {
      ...owner,
      start: '2031-08-01T10:00:00Z',
      end: '2031-08-01T11:00:00Z',
      capacity: 10,
      acceptBookings: true,
      description: 'Yoga',
      address: { kind: { $case: 'text', value: 'Room 1' } },
      participations: [
        {
          reference: freshReference('embedded'),
          name: 'Grace',
          email: 'grace@example.com',
          mobile: '0171',
          state: BOOKED,
        },
      ],
    });
    const [booked, requested, cancelled] = [
      await participate(yoga, BOOKED),
      await participate(yoga, REQUESTED),
      await participate(yoga, BOOKED),
    ];
    await calendar.participations.updateParticipation({
      ...owner,
      participationReference: cancelled.reference,
      state: CANCELED,
      ignoreCapacity: false,
      sendMails: false,
    });
    await book(owner, at('08:00'));
    const ended = await book(owner, at('09:00'));
    await calendar.appointments.cancelAppointment({ ...owner, appointmentReference: ended });
    // At midnight in Berlin.
    await book(owner, at('22:00'));
    const timeslot = newTimeslot({ start: '2031-08-01T12:00:00Z', end: '2031-08-01T13:00:00Z' });
    await calendar.timeslots.createTimeslots({ ...owner, timeslots: [timeslot] });
    const place = {
      $case: 'timeslot' as const,
      value: {
        timeslotReference: timeslot.reference,
        start: '2031-08-01T12:00:00Z',
        duration: 30,
        productReference: 'product@test',
      },
    };
    await calendar.bookings.bookSlot(newBooking(place, { ...owner, state: RESERVED }));

    const day = await listDay('2031-08-01');
    expect(day).toMatchObject({ booked: 2, requested: 1, unlisted: 0 });
    expect(day.appointments.map(({ start }) => start!.toISOString().slice(11, 16))).toEqual(['08:00', '10:00']);
    expect(day.appointments[0]!.participations).toEqual([]);
    const { participations, ...appointment } = day.appointments[1]!;
    expect(appointment).toMatchObject({
      end: new Date(at('11:00')),
      description: 'Yoga',
      address: { kind: { $case: 'text', value: 'Room 1' } },
    });
    expect(participations).toMatchObject([
      { name: 'Grace', email: 'grace@example.com', mobile: '0171', state: BOOKED },
      { name: booked.name, email: 'person@example.com', state: BOOKED },
      { name: requested.name, email: 'person@example.com', state: REQUESTED },
    ]);
    expect(participations.map(({ customerId }) => customerId === undefined)).toEqual([true, false, false]);

    const part = await listDay('2031-08-01', 2);
    expect(part).toMatchObject({ booked: 2, requested: 1, unlisted: 2 });
    expect(part.appointments.map((each) => each.participations.length)).toEqual([0, 1]);
    expect((await listDay('2031-08-02')).appointments).toHaveLength(1);
    expect((await listDay('2031-08-03')).appointments).toEqual([]);
  });

  it('needs a day and a provider', async () => {
    expect(await refusal(listDay('2031-13-01'))).toMatchObject({ code: 'appointment.invalid' });
    const nobody = { crmId: 'one', providerId: '01990000-0000-7000-8000-000000000001', date: '2031-08-01', limit: 1 };
    expect(await refusal(calendar.participations.listDay(nobody))).toMatchObject({ code: 'provider.not_found' });
  });
});
