import fc from 'fast-check';
import { sql } from 'kysely';
import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CalendarDependencies } from '../src/dependencies.ts';
import { bookingCall, type NewBooking } from '../src/slot/book-slot.ts';
import type { CutSlot } from '../src/slot/cut-slots.ts';
import { readSlots } from '../src/slot/list-slots.ts';
import { placeOf } from '../src/slot/place.ts';
import type { Slot } from '../src/slot/slot.ts';
import { dateOf, makeClockAdjustable } from './adjustable-clock.ts';
import { type CalendarUnderTest, startCalendar } from './calendar-under-test.ts';
import { CalendarMaker, moversOf, outcomeOf, type Stored, type StoredProvider, textOf } from './calendar-maker.ts';
import { calendarPlan, type Plan, rareCalendars } from './calendar-plans.ts';
import {
  type Appointment,
  dayMs,
  faults,
  minuteMs,
  offers,
  type Paper,
  type Person,
  type Place,
  type Rules,
  theRules,
  type Timeslot,
  type Verdict,
  verdictOf,
  verdictOfMove,
} from './slots-model.ts';

let calendar: CalendarUnderTest;
let maker: CalendarMaker;
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
/** How often another answer was expected by each wrong rule. */
const noticed = new Map(Object.keys(faults).map((fault) => [fault, 0]));

beforeAll(async () => {
  calendar = await startCalendar({ RESERVATION_SWEEPER: 'off' });
  maker = new CalendarMaker(calendar, presentMs);
  const setClock = await makeClockAdjustable(calendar);
  await setClock((presentMs() - dateOf(0).getTime()) / minuteMs);
  // Books or moves, and takes it back.
  await sql`
    CREATE FUNCTION try_bookings(requests jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
    DECLARE
      request jsonb;
      answer jsonb;
      answers jsonb[] := '{}';
    BEGIN
      FOR request IN SELECT jsonb_array_elements(requests) LOOP
        BEGIN
          answer := CASE WHEN request ? 'participationReference' THEN move_booking(request) ELSE book_slot(request) END;
          RAISE EXCEPTION 'undo' USING ERRCODE = 'UNDO1';
        EXCEPTION WHEN SQLSTATE 'UNDO1' THEN
          answers := answers || answer;
        END;
      END LOOP;
      RETURN to_jsonb(answers);
    END $$`.execute(calendar.database.kysely);
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

describe('what is listed can be booked, and nothing else, with the reason that the rules give', () => {
  it.each(Array.from({ length: Math.ceil(count / batch) }, (_, index) => firstSeed + index))(
    'in random calendars with seed %i',
    { timeout: 120_000 },
    async (seed) => {
      await expectAgreement(fc.sample(calendarPlan, { seed, numRuns: batch, unbiased: true }), `seed ${seed}`);
    },
  );

  it('in calendars that chance rarely makes', async () => {
    await expectAgreement(rareCalendars, 'rare ones');
  });

  it('which shows if a rule about blocks or buffers is wrong', () => {
    for (const [fault, times] of noticed) expect(times, fault).toBeGreaterThan(0);
  });

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

  it.runIf(count >= representative)('in calendars to which everything has been done', () => {
    for (const what of expectedActions) expect(maker.counts.get(what), what).toBeGreaterThan(0);
  });
});

const expectedActions = [
  ...['made', 'joined', 'taken', 'full', 'closed', 'off_raster', 'blocked'].map((verdict) => `book: ${verdict}`),
  ...['made', 'taken'].map((verdict) => `move: ${verdict}`),
  'block as planned',
  'block with conflicts',
  'unblock',
  'blockOften',
  'cancel',
  'expire',
  'changeBuffers',
  'appoint',
  'shift',
];

async function expectAgreement(plans: Plan[], about: string): Promise<void> {
  const calendars = await Promise.all(plans.map(async (plan) => ({ plan, stored: await maker.make(plan) })));
  await sql`ANALYZE timeslot, appointment, participation`.execute(calendar.database.kysely);
  for (const [index, { plan, stored }] of calendars.entries()) {
    const aboutThis = `${about}, calendar ${index}: ${JSON.stringify(plan)}`;
    const { listed, bookable, hidden, disagreements, refused } = await compare(stored, plan);
    expect(disagreements, aboutThis).toEqual([]);
    expect(listed, aboutThis).toEqual(bookable);
    expect(hidden, aboutThis).toEqual([]);
    tried.slots += listed.length;
    tried.refused += refused;
    if (index % 2 === 0) await expectMovesToAgree(stored, plan, aboutThis);
  }
}

/** What identifies a slot. */
interface Entry {
  start: string;
  end: string;
  timeslotReference: string | null;
  appointmentReference: string | null;
}

interface Comparison {
  /** Each as a text, in the same order. */
  listed: string[];
  bookable: string[];
  /** What is listed although no timeslot offers it. */
  hidden: Entry[];
  /** Where the answer is not what the rules say. */
  disagreements: unknown[];
  refused: number;
}

async function compare(stored: Stored, plan: Plan): Promise<Comparison> {
  const { paper } = stored;
  const before = await readBounds(stored, plan);
  const listed = await list(stored, plan);
  const attempts = attemptsOf(paper, plan, plan.product, plan.resource);
  const answers = await tryBookings(stored, plan, [...attempts.free, ...attempts.open, ...attempts.named]);
  const after = await readBounds(stored, plan);
  const isCompared = comparedIn(before, after);
  const isListed = ({ start, timeslotReference, appointmentReference }: Entry): boolean => {
    const time = Date.parse(start);
    const timeslot = paper.timeslots.find(({ reference }) => reference === timeslotReference);
    return isCompared(time) && (appointmentReference !== null || !isSkipped(timeslot!, time));
  };
  const texts = (entries: Entry[]): string[] =>
    entries
      .filter(isListed)
      .map((entry) => JSON.stringify(entry))
      .toSorted();
  Object.assign(paper, before);
  const tries = [...attempts.free, ...attempts.open, ...attempts.named].map((place, index) => ({
    place,
    answer: answers[index]!,
  }));
  return {
    listed: texts(listed),
    bookable: texts(entriesOf(attempts, answers)),
    hidden: listed.filter((entry) => !isOffered(paper, entry)),
    disagreements: disagreementsIn(tries, isCompared, (place, rules) => verdictOf(paper, place, rules)),
    refused: answers.filter(({ error }) => error?.code === 'slot.unavailable').length,
  };
}

/** Moves of somebody, if there is anybody who can move, and what is listed for them as long as they do not. */
async function expectMovesToAgree(stored: Stored, plan: Plan, about: string): Promise<void> {
  const { paper } = stored;
  // What others have made is what the test has stored, and need not have been possible.
  const movers = moversOf(paper);
  const mover = movers.find(({ source }) => source.timeslot !== undefined) ?? movers[0];
  if (mover === undefined) return;
  const { resource, product } = mover.source;
  const isEmptied = verdictOfMove(paper, mover, { appointment: mover.source }) === 'present' && endsWith(mover);
  const before = await readBounds(stored, plan);
  const attempts = attemptsOf(paper, plan, product, resource, product);
  const places = [...attempts.free, ...attempts.open];
  const listed = isEmptied ? await listFor(stored, plan, mover.source) : undefined;
  const answers = await tryBookings(stored, plan, places, mover.person);
  const after = await readBounds(stored, plan);
  const isCompared = comparedIn(before, after);
  Object.assign(paper, before);
  const tries = places.map((place, index) => ({ place, answer: answers[index]! }));
  const disagreements = disagreementsIn(tries, isCompared, (place, rules) => verdictOfMove(paper, mover, place, rules));
  expect(disagreements, `move in ${about}`).toEqual([]);
  if (listed === undefined) return;
  const free = attempts.free.filter(
    (place, index) =>
      isCompared(place.start) && answers[index]!.error === undefined && verdictOfMove(paper, mover, place) === 'made',
  );
  const lines = free.map(({ timeslot, start }) => `${textOf(start)} ${timeslot.reference}`);
  const listedLines = listed
    .filter(({ slot: { startsAt, timeslotReference } }) => {
      const timeslot = paper.timeslots.find(({ reference }) => reference === timeslotReference);
      return isCompared(startsAt) && !isSkipped(timeslot!, startsAt);
    })
    .map(({ slot }) => `${textOf(slot.startsAt)} ${slot.timeslotReference}`)
    // Where it is: that is no move.
    .filter((line) => lines.includes(line) || !line.startsWith(textOf(mover.source.start)));
  expect(listedLines.toSorted(), `free for the move in ${about}`).toEqual(lines.toSorted());
}

const endsWith = ({ person, source }: { person: Person; source: Appointment }): boolean =>
  source.whenEmpty !== null &&
  source.people.every((other) => other === person || !['BOOKED', 'REQUESTED', 'RESERVED'].includes(other.state));

/** The free places for somebody who leaves an appointment that ends. */
async function listFor({ provider, from, to }: Stored, plan: Plan, source: Appointment): Promise<CutSlot[]> {
  const providers = { get: () => provider, refresh: () => Promise.resolve(provider) };
  const dependencies = { database: calendar.database, providers } as unknown as CalendarDependencies;
  const { id } = await calendar.database.kysely
    .selectFrom('appointment')
    .select('id')
    .where('reference', '=', source.reference)
    .executeTakeFirstOrThrow();
  const query = {
    crmId: provider.crmId,
    providerReference: provider.reference,
    from: textOf(from.getTime()),
    to: textOf(to.getTime()),
    resourceReference: source.resource,
    duration: plan.duration,
    ignoreNotice: plan.ignoreNotice,
    leaving: id,
  };
  const cuts = (await Array.fromAsync(readSlots(dependencies, query))).flat();
  return cuts.filter(
    ({ slot }) => (JSON.parse(slot.details) as { appointmentReference: unknown }).appointmentReference === null,
  );
}

interface Bounds {
  earliest: number;
  latest: number;
}

/** The first and the last bookable moment move with the clock: what they passed in the meantime is not compared. */
function comparedIn(before: Bounds, after: Bounds): (time: number) => boolean {
  return (time) =>
    !(time >= before.earliest && time < after.earliest) && !(time > before.latest && time <= after.latest);
}

async function readBounds({ provider: { crmId, id } }: Stored, { ignoreNotice }: Plan): Promise<Bounds> {
  const { rows } = await sql<{ earliest: Date; latest: Date | number }>`
    SELECT earliest, latest FROM booking_bounds(${crmId}, ${id}, scheduling_now(), ${ignoreNotice})`.execute(
    calendar.database.kysely,
  );
  return { earliest: rows[0]!.earliest.getTime(), latest: Number(rows[0]!.latest) };
}

/** Only what a booking made has to be offered by a timeslot. */
function isOffered({ timeslots, appointments }: Paper, { appointmentReference }: Entry): boolean {
  const appointment = appointments.find(({ reference }) => reference === appointmentReference);
  if (appointment === undefined || appointment.whenEmpty === null) return true;
  return timeslots.some((timeslot) => offers(timeslot, appointment));
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

type TimeslotPlace = Extract<Place, { timeslot: Timeslot }>;

interface Attempts {
  /** Places of a product that no appointment has. */
  free: TimeslotPlace[];
  open: { appointment: Appointment }[];
  /** In each timeslot, when an appointment begins. */
  named: (TimeslotPlace & { appointment?: never; of: Appointment })[];
}

function attemptsOf(
  paper: Paper,
  { duration: minutes }: Plan,
  product: string | undefined,
  resource: string | undefined,
  freeProduct = 'new',
): Attempts {
  const timeslots = paper.timeslots.filter((each) => (resource ?? each.resource) === each.resource);
  const appointments = paper.appointments.filter(
    (each) => (resource ?? each.resource) === each.resource && (product ?? each.product) === each.product,
  );
  return {
    free: timeslots.flatMap((timeslot) =>
      startsToTry(timeslot).map((start) => ({ timeslot, start, minutes, product: freeProduct })),
    ),
    open: appointments.map((appointment) => ({ appointment })),
    named: appointments.flatMap((appointment) =>
      timeslots.map((timeslot) => {
        const { start, product: its } = appointment;
        return { timeslot, start, minutes, product: its, of: appointment };
      }),
    ),
  };
}

/** What bookings that are tried one by one say the list must contain. */
function entriesOf({ free, open, named }: Attempts, answers: Answer[]): Entry[] {
  const answersOf = answers.values();
  const freeEntries = free.flatMap(({ timeslot }): Entry[] => {
    const { slot } = answersOf.next().value!;
    return slot === undefined ? [] : [entryOf(slot.startsAt, slot.endsAt, timeslot.reference, null)];
  });
  const openOnes = new Set(
    open.filter(() => answersOf.next().value!.slot !== undefined).map(({ appointment }) => appointment),
  );
  const namedEntries = named.flatMap(({ of: appointment, timeslot }): Entry[] => {
    const { slot } = answersOf.next().value!;
    // It joins the oldest one that has a seat; if that is exactly the slot, so is this one.
    const isStep =
      slot !== undefined &&
      slot.startsAt === appointment.start &&
      slot.endsAt === appointment.end &&
      (JSON.parse(slot.details) as Record<string, unknown>)['resourceReference'] === appointment.resource;
    return isStep && openOnes.has(appointment)
      ? [entryOf(slot.startsAt, slot.endsAt, timeslot.reference, appointment.reference)]
      : [];
  });
  const isNamed = new Set(namedEntries.map(({ appointmentReference }) => appointmentReference));
  const others = [...openOnes]
    .filter(({ reference }) => !isNamed.has(reference))
    .map(({ start, end, reference }) => entryOf(start, end, null, reference));
  return [...freeEntries, ...namedEntries, ...others];
}

interface Try {
  place: Place;
  answer: Answer;
}

/** Counts what wrong rules would have answered differently. */
function disagreementsIn(
  tries: Try[],
  isCompared: (time: number) => boolean,
  verdictBy: (place: Place, rules: Rules) => Verdict,
): unknown[] {
  const compared = tries.filter(({ place }) => isCompared('timeslot' in place ? place.start : place.appointment.start));
  for (const [fault, rules] of Object.entries(faults)) {
    const wrong = { ...theRules, ...rules };
    const times = compared.filter(({ place, answer }) => outcomeOf(verdictBy(place, wrong)) !== textOfAnswer(answer));
    noticed.set(fault, noticed.get(fault)! + times.length);
  }
  return compared
    .map(({ place, answer }) => ({ place, is: textOfAnswer(answer), should: outcomeOf(verdictBy(place, theRules)) }))
    .filter(({ is, should }) => is !== should);
}

/** See book-slot.sql. */
interface Answer {
  error?: { code: string; reason?: string };
  slot?: Slot;
}

function textOfAnswer({ error }: Answer): string {
  if (error === undefined) return 'done';
  return error.code === 'appointment.not_found' ? 'not_found' : error.reason!;
}

/**
 * Each by itself, none of which remains.
 *
 * @param person absent: bookings of somebody else
 */
async function tryBookings(
  { provider }: Stored,
  { ignoreNotice }: Plan,
  places: Place[],
  person?: Person,
): Promise<Answer[]> {
  const requests = places.map((place) => ({
    ...(person === undefined
      ? newBooking(provider, apiPlaceOf(place), ignoreNotice)
      : newMove(provider, apiPlaceOf(place), ignoreNotice, person)),
    crmId: provider.crmId,
    providerId: provider.id,
    providerVersion: provider.version,
  }));
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

function newBooking(provider: StoredProvider, place: NewBooking['place'], ignoreNotice: boolean) {
  const booking = {
    crmId: provider.crmId,
    providerReference: provider.reference,
    place,
    reference: randomUUID(),
    state: 'RESERVED' as const,
    ignoreNotice,
    sendMails: false,
  };
  return bookingCall(provider, randomUUIDv7(), booking).request;
}

function newMove({ timeZone }: StoredProvider, place: NewBooking['place'], ignoreNotice: boolean, person: Person) {
  const { reference: participationReference } = person;
  return { ...placeOf(place, timeZone), participationReference, ignoreNotice, sendMails: false, origin: {} };
}

function apiPlaceOf(place: Place): NewBooking['place'] {
  if (!('timeslot' in place)) return { appointmentReference: place.appointment.reference };
  const { timeslot, start, product: productReference, minutes: duration } = place;
  return { timeslotReference: timeslot.reference, start: textOf(start), productReference, duration };
}

/**
 * From before the timeslot begins until after it ends: every step of its raster but the skipped ones, and some starts
 * that are off the raster.
 */
function startsToTry(timeslot: Timeslot): number[] {
  const { start: first, end: last } = timeslot;
  const stepMs = timeslot.raster * minuteMs;
  const starts = [first - 5 * minuteMs, first + 5 * minuteMs, last - 5 * minuteMs];
  for (let time = first - stepMs; time <= last; time += stepMs) if (!isSkipped(timeslot, time)) starts.push(time);
  return starts;
}

/** In the middle of a timeslot that is longer than a day. */
function isSkipped({ start, end }: Timeslot, time: number): boolean {
  return end - start > dayMs && time > start + triedMs && time < end - triedMs;
}

const triedMs = 3 * 60 * minuteMs;

function entryOf(
  start: number,
  end: number,
  timeslotReference: string | null,
  appointmentReference: string | null,
): Entry {
  return { start: textOf(start), end: textOf(end), timeslotReference, appointmentReference };
}
