import { type Hours, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { DomainError } from '@scheduling/errors';
import { eventually, isTooSlow } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  allEnded,
  type Calendar,
  type CalendarUnderTest,
  countWaiting,
  createCustomer,
  freshReference,
  owned,
  startCalendar,
} from './calendar-under-test.ts';
import { dateOf, HoursReader, type Opening } from './hours-reader.ts';
import { listTimeslots, newHours, newWindow, putHours, type TimeslotJson } from './hours-under-test.ts';
import { customerOf, newBooking } from './slots-under-test.ts';

const clients = 16;
const seconds = Number(process.env['HOURS_SECONDS'] ?? 3);
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

let calendar: CalendarUnderTest;
let replicas: Calendar[];
let customerReference: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  calendar = stack.use(await startCalendar());
  replicas = [calendar, stack.use(await calendar.startReplica())];
  customerReference = await createCustomer(calendar);
}, 180_000);
afterAll(() => stack.disposeAsync());

const reader = new HoursReader('Europe/Berlin');
/** Of the race. */
const key = { ...owned, resourceReference: freshReference('resource') };
/** Not today, which goes on, and few, so that all meet each other. */
const days = [3, 4, 5].map((ahead) => Math.floor(Date.now() / dayMs) + ahead);
const period = { from: new Date((days[0]! - 1) * dayMs), to: new Date((days.at(-1)! + 2) * dayMs) };
const onDays = (...windows: Parameters<typeof newWindow>[0][]): Hours =>
  newHours({
    exceptions: [
      {
        from: dateOf(days[0]!),
        to: dateOf(days.at(-1)!),
        windows: windows.map((window) => newWindow({ weekdays: [], ...window })),
      },
    ],
    aheadDays: 14,
  });

/** Each has something in common with another one, and overlaps what another one has instead. */
const variants = [
  onDays({ from: '09:00', to: '12:00' }, { from: '13:00', to: '15:00', raster: 60 }),
  onDays({ from: '10:00', to: '13:00', raster: 20 }, { from: '13:00', to: '15:00', raster: 60 }),
  onDays({ from: '09:00', to: '12:00' }, { from: '11:30', to: '14:30', raster: 45, defaultCapacity: 2 }),
];

const expectedOutcomes = new Set([
  'done',
  'slot.unavailable taken',
  'slot.unavailable full',
  'slot.unavailable closed',
  'slot.busy',
]);

describe('hours that are set while others', () => {
  it('remove them, although there are none yet, are there with all of their timeslots, or gone', async () => {
    const room = { ...owned, resourceReference: freshReference('resource') };
    await putHours(calendar, room, variants[0]!);
    const [timeslot] = await listTimeslots(calendar, room, period.from, period.to);
    await calendar.bookings.bookSlot(newBooking(placeIn(timeslot!), customerOf(customerReference)));
    // Now it is hidden.
    await calendar.hours.deleteHours(room);
    const answers: Promise<unknown>[] = [];
    await calendar.database.kysely.transaction().execute(async (tx) => {
      await sql`SELECT FROM timeslot WHERE crm_id = ${room.crmId} AND reference = ${timeslot!.reference} FOR UPDATE`.execute(
        tx,
      );
      answers.push(replicas[0]!.hours.putHours({ ...room, hours: variants[0]! }));
      await eventually(async () => expect(await countWaiting(calendar)).toBe(1));
      answers.push(replicas[1]!.hours.deleteHours(room));
      await eventually(async () => expect(await countWaiting(calendar)).toBe(2));
    });
    await allEnded(answers);
    const isSet = await calendar.hours.getHours(room).then(
      () => true,
      () => false,
    );
    const listed = await listTimeslots(calendar, room, period.from, period.to);
    const states = listed.map(({ state }) => state);
    expect(states).toEqual(isSet ? Array.from({ length: 2 * days.length }, () => 'BOOKABLE') : ['CREATED']);
  });
});

describe(`${clients} clients for ${seconds} s`, { timeout: (seconds + 60) * 1_000 }, () => {
  it('book, move and cancel while others set the hours and remove them: nothing overlaps, and what is booked keeps its timeslot', async () => {
    const outcomes = new Map<string, number>();
    const seen = (what: string): number => outcomes.get(what) ?? 0;
    const count: Count = async (what, call) => {
      const outcome = await outcomeOf(call);
      const name = outcome === 'done' ? `${what} done` : outcome;
      outcomes.set(name, seen(name) + 1);
      return outcome === 'done';
    };
    let checks = 0;
    const endsAt = performance.now() + seconds * 1_000;
    // A busy machine takes longer to get into every situation often enough.
    const hasSeenEnough = (): boolean =>
      ['book', 'move', 'cancel', 'put', 'remove'].every((what) => seen(`${what} done`) > 2 * seconds) &&
      seen('slot.unavailable closed') > seconds &&
      checks > 5;
    const isRunning = (): boolean => performance.now() < endsAt || !hasSeenEnough();
    await count('put', putHours(calendar, key, variants[0]!));
    await allEnded([
      ...Array.from({ length: clients }, (_, index) => playClient(replicas[index % 2]!, isRunning, count)),
      ...replicas.map((replica) => changeHours(replica, isRunning, count)),
      repeatHours(replicas[1]!, isRunning, count),
      (async () => {
        for (; isRunning(); checks += 1) expect(await findViolations()).toEqual([]);
      })(),
    ]);
    expect(await findViolations()).toEqual([]);
    const unexpected = [...outcomes.keys()].filter(
      (outcome) => !outcome.endsWith(' done') && !expectedOutcomes.has(outcome),
    );
    expect(unexpected).toEqual([]);
    await expectOneWhole();
    expect(hasSeenEnough()).toBe(true);
  });

  it('cause no deadlock', async () => {
    await stack.disposeAsync();
    expect(await calendar.countDeadlocks()).toBe(0);
  });
});

type Count = (what: string, call: Promise<unknown>) => Promise<boolean>;

/** `done` for every success. */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'done';
  } catch (error) {
    if (isTooSlow(error)) return 'slot.busy';
    if (!(error instanceof DomainError)) throw error;
    return [error.code, error.reason].filter((part) => part !== undefined).join(' ');
  }
}

/** Books in a timeslot that was there a moment ago, moves what it has booked before, and cancels it. */
async function playClient(replica: Calendar, isRunning: () => boolean, count: Count): Promise<void> {
  const booked: string[] = [];
  const move = { ...owned, ignoreNotice: false, sendMails: false };
  const cancellation = { ...owned, state: ParticipationState.CANCELED, ignoreCapacity: false, sendMails: false };
  while (isRunning()) {
    const places = (await list(replica)).map(placeIn);
    for (let attempts = 0; attempts < 3 && places.length > 0; attempts += 1) {
      const request = newBooking(pick(places), customerOf(customerReference));
      if (await count('book', replica.bookings.bookSlot(request))) booked.push(request.reference);
      if (booked.length > 0 && Math.random() < 0.3) {
        const participationReference = pick(booked);
        await count('move', replica.bookings.changeBooking({ ...move, participationReference, place: pick(places) }));
      }
      const participationReference = booked.length > 1 || Math.random() < 0.3 ? booked.shift() : undefined;
      if (participationReference !== undefined)
        await count('cancel', replica.participations.updateParticipation({ ...cancellation, participationReference }));
    }
  }
}

/** At a random step. */
function placeIn({ reference, start, end, raster }: TimeslotJson) {
  const slots = Math.floor((Date.parse(end) - Date.parse(start)) / raster / minuteMs);
  const time = new Date(Date.parse(start) + Math.floor(Math.random() * slots) * raster * minuteMs).toISOString();
  const value = { timeslotReference: reference, start: time, productReference: 'product@test' };
  return { $case: 'timeslot' as const, value };
}

/** Sets one after the other, and sometimes none. */
async function changeHours(replica: Calendar, isRunning: () => boolean, count: Count): Promise<void> {
  while (isRunning()) {
    if (Math.random() < 0.2) await count('remove', replica.hours.deleteHours(key));
    else await count('put', replica.hours.putHours({ ...key, hours: pick(variants) }));
  }
}

/** Sets what is set, unless it changes at that moment. */
async function repeatHours(replica: Calendar, isRunning: () => boolean, count: Count): Promise<void> {
  while (isRunning()) {
    const hours = await presentHours(replica);
    if (hours !== undefined) await count('put', replica.hours.putHours({ ...key, hours }));
  }
}

async function presentHours(replica: Calendar): Promise<Hours | undefined> {
  try {
    const { json } = await replica.hours.getHours(key);
    const { exceptions } = JSON.parse(json.toString()) as Hours;
    const windows = (hours: Hours) => hours.exceptions[0]!.windows.map(({ from, to }) => `${from} ${to}`).join();
    return variants.find((variant) => windows(variant) === windows({ ...variant, exceptions }))!;
  } catch (error) {
    if (error instanceof DomainError && error.code === 'hours.not_found') return undefined;
    throw error;
  }
}

const list = (replica: Calendar) => listTimeslots(replica, key, period.from, period.to);

function textOf({ start, end, raster, defaultCapacity }: Opening): string {
  return [
    new Date(start * minuteMs).toISOString(),
    new Date(end * minuteMs).toISOString(),
    raster,
    defaultCapacity,
  ].join(' ');
}

/**
 * The timeslots are those of the hours that were set last, whichever these were, and hidden ones, which the same hours
 * remove if they have no appointments any more.
 */
async function expectOneWhole(): Promise<void> {
  const hours = await presentHours(calendar);
  const openings = hours === undefined ? [] : days.flatMap((day) => reader.openingsOn(hours, day));
  const expected = openings.map(textOf).toSorted();
  const before = await listByState();
  expect(before.bookable).toEqual(expected);
  await (hours === undefined ? calendar.hours.deleteHours(key) : putHours(calendar, key, hours));
  const after = await listByState();
  expect(after.bookable).toEqual(expected);
  expect(after.hidden).toEqual(before.hidden.filter(({ appointments }) => appointments > 0));
}

interface Hidden {
  reference: string;
  /** Active ones. */
  appointments: number;
}

async function listByState(): Promise<{ bookable: string[]; hidden: Hidden[] }> {
  const timeslots = await list(calendar);
  expect(timeslots.every(({ fromHours }) => fromHours)).toBe(true);
  const ofState = (wanted: TimeslotJson['state']) => timeslots.filter(({ state }) => state === wanted);
  return {
    bookable: ofState('BOOKABLE')
      .map(({ start, end, ...others }) =>
        textOf({ ...others, start: Date.parse(start) / minuteMs, end: Date.parse(end) / minuteMs }),
      )
      .toSorted(),
    hidden: ofState('CREATED').map(({ reference, appointments }) => ({
      reference,
      appointments: appointments.filter(({ state }) => state === 'ACTIVE').length,
    })),
  };
}

/**
 * Pairs of active appointments that overlap, appointments whose counter is not the number of those who have a seat, and
 * appointments that lie in no timeslot, as of one moment.
 */
async function findViolations(): Promise<unknown[]> {
  const { rows } = await sql`
    WITH place AS (
      SELECT *, (SELECT count(*) FROM participation WHERE participation.crm_id = appointment.crm_id AND appointment_id = appointment.id AND participation.state IN ('BOOKED', 'RESERVED')) AS seats
        FROM appointment WHERE crm_id = ${key.crmId} AND resource_reference = ${key.resourceReference} AND state = 'ACTIVE')
    SELECT 'overlap' AS violation, one.id::text || ' ' || other.id AS places FROM place AS one JOIN place AS other ON one.id < other.id
     WHERE one.starts_at < other.ends_at AND other.starts_at < one.ends_at
     UNION ALL
    SELECT 'seats', format('%s: %s taken, %s seats, capacity %s', id, taken, seats, capacity) FROM place WHERE taken <> seats OR taken > capacity
     UNION ALL
    SELECT 'no timeslot', format('%s from %s to %s', id, starts_at, ends_at) FROM place
     WHERE NOT EXISTS (
       SELECT FROM timeslot
        WHERE timeslot.crm_id = place.crm_id AND timeslot.provider_id = place.provider_id AND timeslot.resource_reference = place.resource_reference
          AND timeslot.starts_at <= place.starts_at AND timeslot.ends_at >= place.ends_at)`.execute(
    calendar.database.kysely,
  );
  return rows;
}

function pick<T>(values: T[]): T {
  return values[Math.floor(Math.random() * values.length)]!;
}
