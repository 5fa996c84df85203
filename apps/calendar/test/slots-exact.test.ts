import { patiently } from '@scheduling/testing';
import { sql } from 'kysely';
import fc from 'fast-check';
import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { instantOf, toDate } from '../src/date-time.ts';
import { bookingCall, type NewBooking } from '../src/slot/book-slot.ts';
import type { Slot } from '../src/slot/slot.ts';
import { dateOf, makeClockAdjustable } from './adjustable-clock.ts';
import { type CalendarUnderTest, startCalendar } from './calendar-under-test.ts';
import { newHours, newWindow, putHours, type RoomKey } from './hours-under-test.ts';

let calendar: CalendarUnderTest;
const firstSeed = Number(process.env['SLOTS_SEED'] ?? Math.floor(Math.random() * 1_000_000));
/** How many random calendars are tried. */
const count = Number(process.env['SLOTS_CALENDARS'] ?? 65);
const batch = 65;
/** With fewer, chance decides how many of their slots are free. */
const representative = 195;
/** When the tests begin, by the clock of the database: hours make timeslots at most 400 days ahead. */
const begin = Date.parse('2040-02-01T00:00Z');
const aheadMs = begin - Date.now();
const presentMs = (): number => Date.now() + aheadMs;
const tried = { slots: 0, refused: 0 };

beforeAll(async () => {
  calendar = await startCalendar({ RESERVATION_SWEEPER: 'off' });
  const setClock = await makeClockAdjustable(calendar);
  await setClock((presentMs() - dateOf(0).getTime()) / minuteMs);
  // Books, and takes it back.
  await sql`
    CREATE FUNCTION try_bookings(requests jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
    DECLARE
      request jsonb;
      answer jsonb;
      answers jsonb[] := '{}';
    BEGIN
      FOR request IN SELECT jsonb_array_elements(requests) LOOP
        BEGIN
          answer := book_slot(request);
          RAISE EXCEPTION 'undo' USING ERRCODE = 'UNDO1';
        EXCEPTION WHEN SQLSTATE 'UNDO1' THEN
          answers := answers || answer;
        END;
      END LOOP;
      RETURN to_jsonb(answers);
    END $$`.execute(calendar.database.kysely);
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

describe('what is listed can be booked, and nothing else', () => {
  it.each(Array.from({ length: Math.ceil(count / batch) }, (_, index) => firstSeed + index))(
    'in random calendars with seed %i',
    { timeout: 120_000 },
    async (seed) => {
      const stored = await Promise.all(
        fc
          .sample(calendarPlan, { seed, numRuns: batch, unbiased: true })
          .map(async (plan) => ({ plan, stored: await store(plan) })),
      );
      await sql`ANALYZE timeslot, appointment, participation`.execute(calendar.database.kysely);
      for (const { plan, stored: inDatabase } of stored) {
        const { listed, bookable, hidden, refused } = await compare(inDatabase, plan);
        expect(listed, `seed ${seed}: ${JSON.stringify(plan)}`).toEqual(bookable);
        expect(hidden, `seed ${seed}: ${JSON.stringify(plan)}`).toEqual([]);
        tried.slots += listed.length;
        tried.refused += refused;
      }
    },
  );

  // Usually there are 8 slots in a calendar, and 30 others. Some have many and some none, so a few calendars may have
  // less than this on average.
  it.runIf(count >= representative)('in calendars that are neither too empty nor too full to show anything', () => {
    expect(tried.slots).toBeGreaterThan(5 * count);
    expect(tried.refused).toBeGreaterThan(5 * count);
  });

  it.runIf(count >= representative)('in calendars in which hours have made timeslots, and hidden some', async () => {
    const rows = await calendar.database.kysely.selectFrom('timeslot').select('fromHours').execute();
    const countOf = (wanted: string): number => rows.filter(({ fromHours }) => fromHours === wanted).length;
    expect(countOf('MADE')).toBeGreaterThan(count / 2);
    expect(countOf('HIDDEN')).toBeGreaterThan(count / 10);
  });
});

/** Minutes from the begin of the day; everything begins at a quarter of an hour. */
const quarters = (min: number, max: number) => fc.integer({ min, max }).map((number) => number * 15);
const often = <T>(value: T, other: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: other });
const resources = ['room', 'chair'];
const products = ['cut', 'colour'];
/** Of no appointment. */
const newProduct = 'new';

const timeslotPlan = fc.record({
  resource: often('room', fc.constant('chair')),
  start: quarters(0, 48),
  // A few are longer than a day, so that they are found by another index.
  minutes: often(0, fc.constant(26 * 60)).chain((long) => quarters(2, 12).map((minutes) => minutes + long)),
  raster: fc.constantFrom(15, 20, 30, 45, 60),
  capacity: fc.constantFrom(0, 1, 1, 2, 3),
  acceptBookings: often(true, fc.constant(false)),
  state: often('BOOKABLE' as const, fc.constant('CREATED' as const)),
});

/** Opening hours of the day. */
const windowPlan = fc.record({
  from: quarters(0, 48),
  minutes: quarters(4, 24),
  raster: fc.constantFrom(15, 20, 30, 45, 60),
  capacity: fc.constantFrom(0, 1, 1, 2, 3),
  acceptBookings: often(true, fc.constant(false)),
});

const hoursPlan = fc.record({
  before: fc.array(windowPlan, { minLength: 1, maxLength: 3 }),
  /** What they are changed to after the appointments have been stored, none: they are removed. */
  after: fc.option(fc.array(windowPlan, { maxLength: 3 })),
});

const participationPlan = fc.constantFrom('BOOKED', 'REQUESTED', 'RESERVED', 'OVER', 'CANCELED', 'DELETED');

const appointmentPlan = fc.record({
  resource: often('room', fc.constant('chair')),
  start: quarters(-4, 56),
  minutes: often(0, fc.constantFrom(0, 0, 25 * 60)).chain((long) => quarters(1, 6).map((minutes) => minutes + long)),
  capacity: fc.constantFrom(0, 1, 2, 3),
  acceptBookings: often(true, fc.constant(false)),
  product: fc.constantFrom(...products),
  state: often('ACTIVE' as const, fc.constant('CANCELLED' as const)),
  whenEmpty: fc.constantFrom(null, 'REMOVED' as const, 'CANCELLED' as const),
  participations: fc.array(participationPlan, { maxLength: 3 }),
});

const calendarPlan = fc.record({
  zone: fc.constantFrom('Europe/Berlin', 'America/New_York', 'Asia/Kolkata'),
  // Both days of a change of the clock in Berlin, both in New York, and one without.
  day: fc.constantFrom('2040-03-25', '2040-10-28', '2040-03-11', '2040-11-04', '2040-06-05'),
  /** The list begins so many days earlier: more than 6 take several parts. */
  leadDays: fc.constantFrom(2, 7, 40),
  timeslots: fc.array(timeslotPlan, { minLength: 1, maxLength: 5 }),
  appointments: fc.array(appointmentPlan, { maxLength: 6 }),
  /** Of the room. */
  hours: fc.option(hoursPlan),
  /** Minutes from the begin of the day to the first and to the last bookable moment. */
  noticeEnds: often(null, quarters(0, 32)),
  horizonDays: often(null, fc.integer({ min: 1, max: 2 })),
  ignoreNotice: often(false, fc.constant(true)),
  duration: often(undefined, fc.constantFrom(30, 40, 60, 90)),
  product: often(undefined, fc.constantFrom(...products)),
  resource: often(undefined, fc.constantFrom(...resources)),
  limit: often(undefined, fc.integer({ min: 1, max: 5 })),
});
type Plan = typeof calendarPlan extends fc.Arbitrary<infer Value> ? Value : never;

interface Comparison {
  /** Each as a text, in the same order. */
  listed: string[];
  bookable: string[];
  /** What is listed although no timeslot offers it. */
  hidden: Entry[];
  refused: number;
}

async function compare(stored: Stored, plan: Plan): Promise<Comparison> {
  const before = await readBounds(stored.provider.id, plan);
  const listed = await list(stored, plan);
  const { booked, refused } = await tryAll(stored, plan);
  const after = await readBounds(stored.provider.id, plan);
  // The first and the last bookable moment move with the clock: what they passed in the meantime is not compared.
  const isCompared = ({ start, timeslotReference, appointmentReference }: Entry): boolean => {
    const time = Date.parse(start);
    const timeslot = stored.timeslots.find(({ reference }) => reference === timeslotReference);
    if (appointmentReference === null && isSkipped(timeslot!, time)) return false;
    return !(time >= before.earliest && time < after.earliest) && !(time > before.latest && time <= after.latest);
  };
  const texts = (entries: Entry[]): string[] =>
    entries
      .filter(isCompared)
      .map((entry) => JSON.stringify(entry))
      .toSorted();
  return {
    listed: texts(listed),
    bookable: texts(booked),
    hidden: listed.filter((entry) => !isOffered(stored, entry)),
    refused,
  };
}

/** Only what a booking made has to be offered by a timeslot. */
function isOffered({ timeslots, appointments }: Stored, { appointmentReference }: Entry): boolean {
  const appointment = appointments.find(({ reference }) => reference === appointmentReference);
  if (appointment === undefined || appointment.whenEmpty === null) return true;
  const { resourceReference, startsAt, endsAt } = appointment;
  const containing = timeslots.filter(
    (each) => each.resourceReference === resourceReference && each.startsAt <= startsAt && each.endsAt >= endsAt,
  );
  return containing.some(({ state, defaultCapacity }) => state === 'BOOKABLE' && defaultCapacity >= 1);
}

/** What identifies a slot. */
interface Entry {
  start: string;
  end: string;
  timeslotReference: string | null;
  appointmentReference: string | null;
}

interface StoredTimeslot {
  id: string;
  reference: string;
  startsAt: Date;
  endsAt: Date;
  raster: number;
  resourceReference: string;
  defaultCapacity: number;
  state: string;
}

interface StoredAppointment {
  id: string;
  reference: string;
  startsAt: Date;
  endsAt: Date;
  productReference: string;
  resourceReference: string;
  whenEmpty: string | null;
}

interface Stored {
  provider: { crmId: string; id: string; reference: string; timeZone: string; version: number };
  timeslots: StoredTimeslot[];
  appointments: StoredAppointment[];
  from: Date;
  to: Date;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

async function store(plan: Plan): Promise<Stored> {
  const { zone, day, leadDays, timeslots, appointments, hours, noticeEnds, horizonDays } = plan;
  const db = calendar.database.kysely;
  const provider = { crmId: 'one', id: randomUUID(), reference: `exact-${randomUUID()}`, timeZone: zone, version: 1 };
  const midnight = toDate(instantOf(Temporal.PlainDateTime.from(`${day}T00:00`), zone)).getTime();
  const at = (minutes: number): Date => new Date(midnight + minutes * minuteMs);
  const owned = { crmId: provider.crmId, providerId: provider.id, contentDigest: Buffer.alloc(0) };
  await db.insertInto('provider').values(provider).execute();
  const timeslotRows = timeslots.map(({ resource, start, minutes, raster, capacity, acceptBookings, state }) => ({
    ...owned,
    id: randomUUIDv7(),
    reference: randomUUID(),
    resourceReference: resource,
    startsAt: at(start),
    endsAt: at(start + minutes),
    raster,
    defaultCapacity: capacity,
    defaultAcceptBookings: acceptBookings,
    address: null,
    state,
  }));
  await db.insertInto('timeslot').values(timeslotRows).execute();
  const room = { crmId: provider.crmId, providerReference: provider.reference, resourceReference: 'room' };
  if (hours !== null) await setHours(room, day, hours.before);
  const appointmentRows = appointments.map(
    ({ resource, start, minutes, product, capacity, acceptBookings, state, whenEmpty, participations }) => ({
      ...owned,
      id: randomUUIDv7(),
      reference: randomUUID(),
      resourceReference: resource,
      productReference: product,
      startsAt: at(start),
      endsAt: at(start + minutes),
      capacity,
      acceptBookings,
      state,
      taken: participations.filter((each) => ['BOOKED', 'RESERVED', 'OVER'].includes(each)).length,
      // One that was made by a booking has ended, if nobody is in it.
      whenEmpty: participations.some((each) => !['CANCELED', 'DELETED'].includes(each)) ? whenEmpty : null,
      seriesId: null,
      contactReference: null,
      description: null,
      notes: null,
      address: null,
      priceValue: null,
      priceCurrency: null,
    }),
  );
  if (appointmentRows.length > 0) await db.insertInto('appointment').values(appointmentRows).execute();
  const participationRows = appointments.flatMap(({ participations }, index) =>
    participations.map((state) => ({
      crmId: provider.crmId,
      id: randomUUIDv7(),
      appointmentId: appointmentRows[index]!.id,
      customerId: null,
      reference: randomUUID(),
      name: 'Name',
      email: null,
      mobile: null,
      note: null,
      exempt: false,
      state: state === 'OVER' ? ('RESERVED' as const) : (state as 'BOOKED'),
      reservedUntil:
        state === 'RESERVED'
          ? new Date(presentMs() + dayMs)
          : state === 'OVER'
            ? new Date(presentMs() - minuteMs)
            : null,
    })),
  );
  if (participationRows.length > 0) await db.insertInto('participation').values(participationRows).execute();
  const after = hours?.after ?? null;
  if (after !== null) await setHours(room, day, after);
  if (noticeEnds !== null || horizonDays !== null) {
    const minutesUntil = (time: number): number => Math.round((time - presentMs()) / minuteMs);
    const horizon = horizonDays === null ? null : Math.floor(minutesUntil(midnight) / 1_440) + horizonDays;
    const rules = {
      minimumNotice: noticeEnds === null ? 0 : minutesUntil(at(noticeEnds).getTime()),
      horizon,
      changeNotice: 0,
      confirmation: 'BOOKED' as const,
    };
    const others = { page: false, reminders: [], notifyProvider: false, maxPerPerson: 3, offers: '[]' };
    await db
      .insertInto('bookingRules')
      .values({ crmId: provider.crmId, providerId: provider.id, ...rules, ...others })
      .execute();
  }
  return {
    provider,
    timeslots: await db.selectFrom('timeslot').selectAll().where('providerId', '=', provider.id).execute(),
    appointments: appointmentRows,
    from: new Date(midnight - leadDays * dayMs),
    to: new Date(midnight + 4 * dayMs),
  };
}

async function setHours(room: RoomKey, day: string, windows: NonNullable<Plan['hours']>['before']): Promise<void> {
  if (windows.length === 0) {
    await patiently(() => calendar.hours.deleteHours(room));
    return;
  }
  const timeOf = (minutes: number): string =>
    [Math.floor(minutes / 60) % 24, minutes % 60].map((part) => String(part).padStart(2, '0')).join(':');
  const exception = {
    from: day,
    to: day,
    windows: windows.map(({ from, minutes, raster, capacity, acceptBookings }) =>
      newWindow({
        weekdays: [],
        from: timeOf(from),
        to: timeOf(from + minutes),
        raster,
        defaultCapacity: capacity,
        defaultAcceptBookings: acceptBookings,
      }),
    ),
  };
  await putHours(calendar, room, newHours({ exceptions: [exception], aheadDays: 400 }));
}

async function readBounds(providerId: string, { ignoreNotice }: Plan): Promise<{ earliest: number; latest: number }> {
  const { rows } = await sql<{ earliest: Date; latest: Date | number }>`
    SELECT earliest, latest FROM booking_bounds('one', ${providerId}, scheduling_now(), ${ignoreNotice})`.execute(
    calendar.database.kysely,
  );
  return { earliest: rows[0]!.earliest.getTime(), latest: Number(rows[0]!.latest) };
}

/** The list, in pages if the plan says so. */
async function list(
  { provider, from, to }: Stored,
  { duration, product, resource, ignoreNotice, limit }: Plan,
): Promise<Entry[]> {
  const request = {
    crmId: provider.crmId,
    providerReference: provider.reference,
    from: from.toISOString().slice(0, 16) + 'Z',
    to: to.toISOString().slice(0, 16) + 'Z',
    duration,
    productReference: product,
    resourceReference: resource,
    ignoreNotice,
    limit,
  };
  const entries: Entry[] = [];
  let cursor: string | undefined;
  do {
    const parts = await Array.fromAsync(calendar.bookings.listSlots({ ...request, cursor }));
    const page = parts.flatMap(({ json }) => JSON.parse(`[${json.toString()}]`) as Entry[]);
    if (limit !== undefined) expect(page.length).toBeLessThanOrEqual(limit);
    entries.push(...page);
    cursor = parts.at(-1)?.nextCursor;
    if (cursor !== undefined) expect(page).toHaveLength(limit!);
  } while (cursor !== undefined);
  const starts = entries.map(({ start }) => start);
  expect(starts).toEqual(starts.toSorted());
  return entries.map(({ start, end, timeslotReference, appointmentReference }) => ({
    start,
    end,
    timeslotReference,
    appointmentReference,
  }));
}

/** What bookings that are tried one by one say the list must contain, and how many of them were refused. */
async function tryAll(stored: Stored, plan: Plan): Promise<{ booked: Entry[]; refused: number }> {
  const timeslots = stored.timeslots.filter(
    ({ resourceReference }) => (plan.resource ?? resourceReference) === resourceReference,
  );
  const appointments = stored.appointments.filter(
    (each) =>
      (plan.resource ?? each.resourceReference) === each.resourceReference &&
      (plan.product ?? each.productReference) === each.productReference,
  );
  const free = timeslots.flatMap((timeslot) =>
    startsToTry(timeslot).map((start) => ({
      timeslot,
      attempt: attemptAt(timeslot, start, newProduct, plan.duration),
      start,
    })),
  );
  const open = appointments.map((appointment) => ({
    appointment,
    attempt: { place: { appointmentReference: appointment.reference } },
  }));
  const named = appointments.flatMap((appointment) =>
    timeslots.map((timeslot) => ({
      appointment,
      timeslot,
      attempt: attemptAt(timeslot, appointment.startsAt, appointment.productReference, plan.duration),
    })),
  );
  const answers = await tryBookings(
    stored,
    plan,
    [...free, ...open, ...named].map(({ attempt }) => attempt.place),
  );
  const answersOf = answers.values();
  const freeEntries = free.flatMap(({ timeslot }): Entry[] => {
    const { slot } = answersOf.next().value!;
    return slot === undefined ? [] : [entryOf(slot, timeslot.reference, null)];
  });
  const openOnes = new Set(
    open.filter(() => answersOf.next().value!.slot !== undefined).map(({ appointment }) => appointment),
  );
  const namedEntries = named.flatMap(({ appointment, timeslot }): Entry[] => {
    const { slot } = answersOf.next().value!;
    // It joins the oldest one that has a seat; if that is exactly the slot, so is this one.
    const isStep =
      slot !== undefined &&
      sameTime(slot.startsAt, appointment.startsAt) &&
      sameTime(slot.endsAt, appointment.endsAt) &&
      (JSON.parse(slot.details) as Record<string, unknown>)['resourceReference'] === appointment.resourceReference;
    return isStep && openOnes.has(appointment) ? [entryOf(slot, timeslot.reference, appointment.reference)] : [];
  });
  const isNamed = new Set(namedEntries.map(({ appointmentReference }) => appointmentReference));
  const others = [...openOnes]
    .filter(({ reference }) => !isNamed.has(reference))
    .map((appointment) => entryOf(appointment, null, appointment.reference));
  return {
    booked: [...freeEntries, ...namedEntries, ...others],
    refused: answers.filter(({ error }) => error?.code === 'slot.unavailable').length,
  };
}

/** See book-slot.sql. */
interface Answer {
  error?: { code: string };
  slot?: Slot;
}

/** Each booking by itself, none of which remains. */
async function tryBookings(
  { provider }: Stored,
  { ignoreNotice }: Plan,
  places: NewBooking['place'][],
): Promise<Answer[]> {
  const requests = places.map((place) => {
    const booking = {
      crmId: provider.crmId,
      providerReference: provider.reference,
      place,
      reference: randomUUID(),
      state: 'RESERVED' as const,
      ignoreNotice,
      sendMails: false,
    };
    const { request } = bookingCall(provider, randomUUIDv7(), booking);
    return { ...request, crmId: provider.crmId, providerId: provider.id, providerVersion: provider.version };
  });
  const { rows } = await sql<{
    answers: Answer[];
  }>`SELECT try_bookings(${JSON.stringify(requests)}::jsonb) AS answers`.execute(calendar.database.kysely);
  const { answers } = rows[0]!;
  // An appointment that nobody but expired reservations were in is removed.
  const codes = new Set([undefined, 'slot.unavailable', 'appointment.not_found']);
  for (const { slot, error } of answers)
    expect(codes.has(error?.code) && (slot === undefined) !== (error === undefined)).toBe(true);
  return answers;
}

/**
 * From before the timeslot begins until after it ends: every step of its raster but the skipped ones, and some starts
 * that are off the raster.
 */
function startsToTry(timeslot: StoredTimeslot): Date[] {
  const [first, last, stepMs] = [timeslot.startsAt.getTime(), timeslot.endsAt.getTime(), timeslot.raster * minuteMs];
  const starts = [first - 5 * minuteMs, first + 5 * minuteMs, last - 5 * minuteMs];
  for (let time = first - stepMs; time <= last; time += stepMs) if (!isSkipped(timeslot, time)) starts.push(time);
  return starts.map((time) => new Date(time));
}

/** In the middle of a timeslot that is longer than a day. */
function isSkipped({ startsAt, endsAt }: StoredTimeslot, time: number): boolean {
  return (
    endsAt.getTime() - startsAt.getTime() > dayMs &&
    time > startsAt.getTime() + triedMs &&
    time < endsAt.getTime() - triedMs
  );
}

const triedMs = 3 * 60 * minuteMs;

function attemptAt({ reference }: StoredTimeslot, start: Date, productReference: string, duration: number | undefined) {
  return {
    place: { timeslotReference: reference, start: start.toISOString().slice(0, 19) + 'Z', productReference, duration },
  };
}

function entryOf(
  { startsAt, endsAt }: { startsAt: number | Date; endsAt: number | Date },
  timeslotReference: string | null,
  appointmentReference: string | null,
): Entry {
  const text = (time: number | Date): string => new Date(time).toISOString().slice(0, 19) + 'Z';
  return { start: text(startsAt), end: text(endsAt), timeslotReference, appointmentReference };
}

function sameTime(a: number, b: string | Date): boolean {
  return a === new Date(b).getTime();
}
