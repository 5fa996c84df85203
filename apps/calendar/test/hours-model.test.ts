import { sql } from 'kysely';
import {
  type Hours,
  type HoursConflicts,
  type HoursException,
  type HoursWindow,
  type Location,
  ParticipationState,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import { eventually, patiently, startTestNats } from '@scheduling/testing';
import { createRandom, type Random } from '@scheduling/testing/random';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  freshReference,
  readAppointments,
  refusal,
  startCalendarBeside,
} from './calendar-under-test.ts';
import { dateOf, dayOf, HoursReader, type Opening } from './hours-reader.ts';
import {
  hoursRecord,
  listTimeslots,
  newHours,
  newWindow,
  putHours,
  type RoomKey,
  type TimeslotJson,
} from './hours-under-test.ts';
import { createCrm, startNeighbours } from './neighbours.ts';
import { customerOf, newBooking, newTimeslot } from './slots-under-test.ts';

const seed = Number(process.env['HOURS_SEED'] ?? Math.floor(Math.random() * 1_000_000));
const steps = Number(process.env['HOURS_STEPS'] ?? 40);

/** Times in this file are minutes since 1970. */
const minuteMs = 60_000;
const hour = 60;
const day = 24 * hour;
/** Everything begins and ends at a multiple of this. The clock is set to a minute later, and reaches none of them meanwhile. */
const grid = 5;
const onGrid = (minute: number): number => Math.floor(minute / grid) * grid;
const textOf = (minute: number): string => new Date(minute * minuteMs).toISOString();
const minuteOf = (text: string): number => Date.parse(text) / minuteMs;

/** Where the clock is changed at night, at midnight, by half an hour, for a month, in the south, or never. */
const zones = [
  'Europe/Berlin',
  'America/Santiago',
  'Asia/Beirut',
  'Africa/Cairo',
  'Australia/Lord_Howe',
  'America/New_York',
  'Asia/Kolkata',
  'Pacific/Apia',
  'America/St_Johns',
  'Asia/Tehran',
  'Africa/Casablanca',
  'Pacific/Chatham',
];
const readers = new Map(zones.map((zone) => [zone, new HoursReader(zone)]));
const crmId = 'hours';

const stack = new AsyncDisposableStack();
let calendar: CalendarUnderTest;

/** With its own identity service: providers move to other zones. */
beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  const neighbours = stack.use(await startNeighbours(nats.url));
  await createCrm(neighbours.identity, { crmId, sandbox: true }, []);
  calendar = stack.use(
    await startCalendarBeside(
      { identity: neighbours.identity.address, customer: neighbours.customer.address },
      nats.url('calendar'),
    ),
  );
}, 180_000);
afterAll(() => stack.disposeAsync());

const setClock = (minute: number) => calendar.clocks.setSandboxClock({ crmId, now: new Date(minute * minuteMs) });

async function createProvider(timeZone: string): Promise<Owner> {
  const providerReference = freshReference('provider');
  await calendar.identity.createProvider({
    crmId,
    reference: providerReference,
    ownerReference: 'owner@crm',
    accountReference: 'account@crm',
    name: 'Provider',
    timeZone,
  });
  return { crmId, providerReference };
}

type Owner = Pick<RoomKey, 'crmId' | 'providerReference'>;

interface Entry {
  opening: Opening;
  state: TimeslotJson['state'];
  fromHours: boolean;
  /** Absent until it was listed. */
  reference?: string;
  /** As hours made it, if the CRM has changed it. */
  origin?: string;
}

interface Visit {
  reference: string;
  start: number;
  end: number;
  isActive: boolean;
  /** Of one that a booking made. */
  participationReference?: string;
}

const keyOf = (opening: Opening): string => JSON.stringify(opening);
const liesIn = (inner: { start: number; end: number }, outer: { start: number; end: number }): boolean =>
  inner.start >= outer.start && inner.end <= outer.end;

class Provider {
  readonly owner: Owner;
  readonly customerReference: string;
  readonly random: Random;
  readonly rooms: Room[];
  timeZone: string;

  constructor(owner: Owner, customerReference: string, timeZone: string, random: Random) {
    this.owner = owner;
    this.customerReference = customerReference;
    this.timeZone = timeZone;
    this.random = random;
    this.rooms = ['room', 'chair'].map((resourceReference) => new Room(this, resourceReference));
  }

  get reader(): HoursReader {
    return readers.get(this.timeZone)!;
  }
}

/** A resource, and what has to be there after all that has happened to it. */
class Room {
  readonly provider: Provider;
  readonly key: RoomKey;
  hours: Hours | undefined;
  entries: Entry[] = [];
  readonly visits: Visit[] = [];
  /** What hours had made and somebody deleted since they were set. */
  readonly #deleted = new Set<string>();

  constructor(provider: Provider, resourceReference: string) {
    this.provider = provider;
    this.key = { ...provider.owner, resourceReference };
  }

  /** The timeslots that are not over. */
  present(now: number): Entry[] {
    return this.entries.filter(({ opening }) => opening.end > now);
  }

  isKept({ opening }: Entry): boolean {
    return this.visits.some((visit) => visit.isActive && liesIn(visit, opening));
  }

  /** Hours are set, removed, or read in another zone or, because the clock was set back, at an earlier time. */
  setHours(hours: Hours | undefined, now: number): void {
    this.hours = hours;
    this.#deleted.clear();
    const wanted = new Set(this.#wanted(now).map(keyOf));
    this.entries = this.entries.filter(
      (entry) => !entry.fromHours || entry.opening.end <= now || wanted.has(keyOf(entry.opening)) || this.isKept(entry),
    );
    // What the CRM has changed stands for a window only as long as the hours have it.
    for (const entry of this.entries) if (entry.origin !== undefined && !wanted.has(entry.origin)) delete entry.origin;
    for (const entry of this.present(now))
      if (entry.fromHours) entry.state = wanted.has(keyOf(entry.opening)) ? 'BOOKABLE' : 'CREATED';
    this.makeDays(now);
  }

  makeDays(now: number): void {
    for (const opening of this.#wanted(now)) {
      const key = keyOf(opening);
      const made = this.entries.find((entry) => entry.fromHours && keyOf(entry.opening) === key);
      const isClaimed = this.entries.some(({ origin }) => origin === key);
      if (made !== undefined) made.state = 'BOOKABLE';
      else if (!isClaimed && !this.#deleted.has(key))
        this.entries.push({ opening, state: 'BOOKABLE', fromHours: true });
    }
  }

  /** One of a day that has not come within reach is made when it does. */
  delete(entry: Entry, now: number): void {
    this.entries.splice(this.entries.indexOf(entry), 1);
    const key = entry.origin ?? keyOf(entry.opening);
    if (this.#wanted(now).some((opening) => keyOf(opening) === key)) this.#deleted.add(key);
  }

  /** The references of the active appointments that do not lie in the hours from now on. */
  conflicts(now: number): string[] {
    const { hours, provider } = this;
    const minutesOf = ({ start, end }: Visit) => {
      const from = Math.max(start, onGrid(now));
      return Array.from({ length: (end - from) / grid }, (_, index) => from + index * grid);
    };
    return this.visits
      .filter(({ isActive, start, end }) => isActive && end > now && start < now + 400 * day)
      .filter(
        (visit) => hours === undefined || !minutesOf(visit).every((minute) => provider.reader.isOpen(hours, minute)),
      )
      .map(({ reference }) => reference);
  }

  /** What the hours have on the days for which timeslots are made, and on the day before if that is not over. */
  #wanted(now: number): Opening[] {
    const { hours } = this;
    if (hours === undefined) return [];
    const { reader } = this.provider;
    const today = reader.dayAt(now);
    return Array.from({ length: hours.aheadDays + 1 }, (_, index) => today - 1 + index)
      .flatMap((each) => reader.openingsOn(hours, each))
      .filter(({ end }) => end > now);
  }
}

/** What is listed of a timeslot, as a text. */
function lineOf(opening: Opening, state: string, fromHours: boolean, reference: string | undefined): string {
  const { start, end, ...others } = opening;
  return `${textOf(start)} ${textOf(end)} ${JSON.stringify(others)} ${state} ${fromHours ? 'of hours' : 'by hand'} ${reference ?? 'new'}`;
}

function openingOf({ start, end, raster, defaultCapacity, defaultAcceptBookings, address }: TimeslotJson): Opening {
  return { start: minuteOf(start), end: minuteOf(end), raster, defaultCapacity, defaultAcceptBookings, address };
}

/** Waits until the timeslots are those that have to be there, and learns the references of new ones. */
async function expectTimeslots(room: Room, now: number, about: string): Promise<void> {
  const period = { start: now - 10 * day, end: now + 420 * day };
  const entries = room.entries.filter(({ opening }) => opening.start < period.end && opening.end > period.start);
  const expected = entries.map(({ opening, state, fromHours, reference }) =>
    lineOf(opening, state, fromHours, reference),
  );
  const known = new Set(room.entries.map(({ reference }) => reference));
  const [from, to] = [new Date(period.start * minuteMs), new Date(period.end * minuteMs)];
  const listed = await eventually(async () => {
    const timeslots = await listTimeslots(calendar, room.key, from, to);
    const lines = timeslots.map((timeslot) => {
      const { reference, state, fromHours } = timeslot;
      return lineOf(openingOf(timeslot), state, fromHours, known.has(reference) ? reference : undefined);
    });
    expect(lines.toSorted(), about).toEqual(expected.toSorted());
    return timeslots;
  });
  for (const entry of entries) {
    entry.reference ??= listed.find(
      (timeslot) =>
        !known.has(timeslot.reference) && timeslot.fromHours && keyOf(openingOf(timeslot)) === keyOf(entry.opening),
    )!.reference;
  }
}

const clockText = (minutes: number): string =>
  `${String(Math.floor(minutes / hour)).padStart(2, '0')}:${String(minutes % hour).padStart(2, '0')}`;

const addresses: (Location | undefined)[] = [
  undefined,
  undefined,
  { kind: { $case: 'text', value: 'Room 1' } },
  { kind: { $case: 'address', value: { city: 'Bonn', countryCode: 'DE' } } },
];

function randomWindow(random: Random, weekdays: string[]): HoursWindow {
  // Clocks are changed between 23:00 and 4:00.
  const from = onGrid(random.chance(0.5) ? random.integer(0, 4 * hour) : random.integer(0, day - 1));
  const minutes = onGrid(random.chance(0.4) ? random.integer(15, 90) : random.integer(15, 12 * hour));
  const to = from + minutes;
  const untilMidnight = random.pick(['24:00', '00:00']);
  const isWholeDay = from === 0 && random.chance(0.2);
  return newWindow({
    weekdays,
    from: clockText(from),
    to: isWholeDay ? '24:00' : to === day ? untilMidnight : clockText(to % day),
    raster: random.pick([minutes, 5, 15, 30, 45, 90].filter((raster) => raster <= minutes)),
    defaultCapacity: random.integer(1, 2),
    defaultAcceptBookings: random.chance(0.8),
    address: random.pick(addresses),
  });
}

function randomHours({ random, reader }: Provider, now: number): Hours {
  const today = reader.dayAt(now);
  const list = <T>(most: number, make: () => T): T[] => Array.from({ length: random.integer(0, most) }, make);
  const weekdays = (): string[] =>
    random.shuffled(['1', '2', '3', '4', '5', '6', '7']).slice(random.integer(0, 6)).toSorted();
  const weekly = list(4, () => randomWindow(random, weekdays()));
  // The same window on other days as well.
  if (weekly.length > 0 && random.chance(0.2)) weekly.push({ ...random.pick(weekly), weekdays: weekdays() });
  const exceptions = list(4, (): HoursException => {
    const from = today + random.integer(-3, 30);
    return {
      from: dateOf(from),
      to: dateOf(from + random.pick([0, 0, 1, 3, 10])),
      windows: list(2, () => randomWindow(random, [])),
      note: random.pick([undefined, 'Holidays']),
    };
  });
  const validFrom = random.chance(0.2) ? today + random.integer(-5, 20) : undefined;
  const validUntil = random.chance(0.2)
    ? (validFrom ?? today) + random.integer(validFrom === undefined ? -5 : 0, 60)
    : undefined;
  return newHours({
    weekly,
    exceptions,
    validFrom: validFrom === undefined ? undefined : dateOf(validFrom),
    validUntil: validUntil === undefined ? undefined : dateOf(validUntil),
    aheadDays: random.chance(0.01) ? 400 : random.pick([1, 2, 7, 7, 7, 30, 30, 60]),
  });
}

function expectConflicts(
  { appointmentReferences, total }: HoursConflicts,
  rooms: Room[],
  now: number,
  about: string,
): void {
  const expected = rooms.flatMap((room) => room.conflicts(now));
  expect(appointmentReferences.toSorted(), about).toEqual(expected.toSorted());
  expect(total, about).toBe(expected.length);
  const visits = new Map(rooms.flatMap((room) => room.visits).map((visit) => [visit.reference, visit]));
  const starts = appointmentReferences.map((reference) => visits.get(reference)!.start);
  expect(starts, about).toEqual(starts.toSorted((a, b) => a - b));
}

/** How often it was done. */
const counts = new Map<string, number>();
const count = (what: string): void => {
  counts.set(what, (counts.get(what) ?? 0) + 1);
};

async function act(provider: Provider, now: number, during: string): Promise<void> {
  const { random, rooms } = provider;
  const action = random.pick(mixture);
  const about = `${during}: ${action}`;
  const room = random.chance(0.8) ? rooms[0]! : rooms[1]!;
  await actions[action](room, now, about);
  await Promise.all((action === 'putBoth' ? rooms : [room]).map((each) => expectTimeslots(each, now, about)));
}

/** Waits until the calendar knows it. */
async function moveTo(provider: Provider, timeZone: string, now: number): Promise<void> {
  const { owner, rooms } = provider;
  await calendar.identity.updateProvider({ crmId, reference: owner.providerReference, timeZone });
  await eventually(async () => {
    const copy = await calendar.database.kysely
      .selectFrom('provider')
      .select('timeZone')
      .where('crmId', '=', crmId)
      .where('reference', '=', owner.providerReference)
      .executeTakeFirst();
    expect(copy?.timeZone).toBe(timeZone);
  });
  provider.timeZone = timeZone;
  for (const room of rooms) if (room.hours !== undefined) room.setHours(room.hours, now);
}

async function put(room: Room, hours: Hours, now: number, about: string): Promise<void> {
  const { hours: record, conflicts } = await putHours(calendar, room.key, hours);
  room.setHours(hours, now);
  expect(record, about).toMatchObject(hoursRecord(room.key, hours));
  const { json } = await calendar.hours.getHours(room.key);
  expect(JSON.parse(json.toString()), about).toEqual(record);
  expectConflicts(conflicts, [room], now, about);
}

const cancelled = { state: ParticipationState.CANCELED, ignoreCapacity: false, sendMails: false };

const actions = {
  async put(room: Room, now: number, about: string) {
    await put(room, randomHours(room.provider, now), now, about);
    count('put');
  },

  async putBoth({ provider }: Room, now: number, about: string) {
    const rooms = provider.random.shuffled(provider.rooms);
    const hours = randomHours(provider, now);
    const resourceReferences = rooms.map(({ key }) => key.resourceReference);
    const { json, conflicts } = await patiently(() =>
      calendar.hours.putHoursOfResources({ ...provider.owner, resourceReferences, hours }),
    );
    for (const room of rooms) room.setHours(hours, now);
    expect(JSON.parse(`[${json.toString()}]`), about).toMatchObject(
      resourceReferences.map((resourceReference) => hoursRecord({ resourceReference }, hours)),
    );
    expectConflicts(conflicts!, rooms, now, about);
    count('putBoth');
  },

  async repeat(room: Room, now: number, about: string) {
    if (room.hours === undefined) return;
    await put(room, room.hours, now, about);
    count('repeat');
  },

  async remove(room: Room, now: number, about: string) {
    const { conflicts } = await calendar.hours.deleteHours(room.key);
    room.setHours(undefined, now);
    expectConflicts(conflicts!, [room], now, about);
    expect(await refusal(calendar.hours.getHours(room.key)), about).toMatchObject({ code: 'hours.not_found' });
    count('remove');
  },

  /** From then on it is the CRM's. */
  async change({ key, provider: { random }, entries }: Room, now: number) {
    const entry = random.shuffled(entries).find(({ fromHours, opening }) => fromHours && opening.end > now);
    if (entry === undefined) return;
    const { opening } = entry;
    const change = random.pick([
      { opening: { ...opening, defaultCapacity: opening.defaultCapacity + 1 }, state: entry.state },
      { opening: { ...opening, defaultAcceptBookings: !opening.defaultAcceptBookings }, state: entry.state },
      { opening: { ...opening, end: opening.end + 3 * grid }, state: entry.state },
      { opening, state: 'CREATED' as const },
      { opening, state: 'BOOKABLE' as const },
    ]);
    const { defaultCapacity, defaultAcceptBookings, end } = change.opening;
    await calendar.timeslots.updateTimeslot({
      ...key,
      timeslotReference: entry.reference!,
      end: textOf(end),
      defaultCapacity,
      defaultAcceptBookings,
      state: TimeslotState[change.state],
    });
    Object.assign(entry, change, { fromHours: false, origin: keyOf(opening) });
    count('change');
  },

  async delete(room: Room, now: number, about: string) {
    const entry = room.provider.random
      .shuffled(room.present(now))
      .find(({ fromHours, origin }) => fromHours || origin !== undefined);
    if (entry === undefined) return;
    const call = calendar.timeslots.deleteTimeslot({ ...room.key, timeslotReference: entry.reference! });
    if (room.isKept(entry)) {
      expect(await refusal(call), about).toMatchObject({ code: 'timeslot.has_appointments' });
    } else {
      await call;
      room.delete(entry, now);
      count('delete');
    }
  },

  /** Some are like one that hours made. */
  async createBeside({ key, provider: { random }, entries }: Room, now: number) {
    const start = onGrid(now + random.integer(0, 20 * day));
    const { raster, defaultCapacity, defaultAcceptBookings, resourceReference: _, ...others } = newTimeslot();
    const like = random.shuffled(entries).find(({ fromHours, opening }) => fromHours && opening.address === null);
    const opening =
      like !== undefined && random.chance(0.5)
        ? like.opening
        : { start, end: start + 2 * hour, raster, defaultCapacity, defaultAcceptBookings, address: null };
    const state = random.pick(['BOOKABLE', 'CREATED'] as const);
    const timeslot = {
      ...others,
      ...opening,
      start: textOf(opening.start),
      end: textOf(opening.end),
      address: undefined,
    };
    await calendar.timeslots.createTimeslots({
      ...key,
      timeslots: [{ ...timeslot, resourceReference: key.resourceReference, state: TimeslotState[state] }],
    });
    entries.push({ opening, state, fromHours: false, reference: others.reference });
    count('createBeside');
  },

  async book(room: Room, now: number) {
    const { visits } = room;
    const { random } = room.provider;
    const entry = random.shuffled(room.present(now)).find(({ state }) => state === 'BOOKABLE');
    if (entry === undefined) return;
    const { opening, reference } = entry;
    const start =
      opening.start +
      opening.raster * random.integer(0, Math.floor((opening.end - opening.start) / opening.raster) - 1);
    const visit = { start, end: start + opening.raster };
    const isTaken = visits.some((each) => each.isActive && each.start < visit.end && each.end > visit.start);
    if (start < now + grid || isTaken) return;
    const { participation } = await book(room, reference!, start);
    visits.push({
      ...visit,
      isActive: true,
      reference: participation.appointmentReference,
      participationReference: participation.reference,
    });
    count('book');
  },

  /** Neither its timeslot nor the appointment takes anybody else. */
  async bookHidden(room: Room, now: number, about: string) {
    const entry = room.provider.random
      .shuffled(room.entries)
      .find(({ opening, state, fromHours }) => fromHours && state === 'CREATED' && opening.start > now);
    if (entry === undefined) return;
    const closed = { code: 'slot.unavailable', reason: 'closed' };
    const { opening, reference } = entry;
    expect(await refusal(book(room, reference!, opening.start)), about).toMatchObject(closed);
    const visit = room.visits.find(
      (each) =>
        each.isActive &&
        each.participationReference !== undefined &&
        liesIn(each, opening) &&
        !room.entries.some((other) => other.state === 'BOOKABLE' && liesIn(each, other.opening)),
    );
    if (visit !== undefined) {
      const place = { $case: 'appointmentReference' as const, value: visit.reference };
      const request = newBooking(place, { ...room.key, ...customerOf(room.provider.customerReference) });
      expect(await refusal(calendar.bookings.bookSlot(request)), about).toMatchObject(closed);
    }
    count('bookHidden');
  },

  async cancel({ key, provider: { random }, visits }: Room, now: number) {
    const visit = random.shuffled(visits).find(({ isActive, end }) => isActive && end > now);
    if (visit === undefined) return;
    const { reference: appointmentReference, participationReference } = visit;
    if (participationReference === undefined)
      await calendar.appointments.cancelAppointment({ ...key, appointmentReference });
    else await calendar.participations.updateParticipation({ ...key, participationReference, ...cancelled });
    visit.isActive = false;
    count('cancel');
  },

  /** Anywhere, or in a timeslot. */
  async appoint({ key, provider: { random }, visits, entries }: Room, now: number) {
    const entry = random.shuffled(entries).find(({ opening }) => opening.start > now);
    const start =
      entry !== undefined && random.chance(0.5) ? entry.opening.start : onGrid(now + random.integer(0, 40 * day));
    const end = start + random.pick([grid, 30, 2 * hour]);
    const reference = await createAppointment(calendar, { ...key, start: textOf(start), end: textOf(end) });
    visits.push({ reference, start, end, isActive: true });
    count('appoint');
  },
};

/** How often each is done in relation to the others. */
const mixture = (
  Object.entries({
    put: 3,
    putBoth: 1,
    repeat: 1,
    remove: 1,
    change: 1,
    delete: 1,
    createBeside: 1,
    book: 4,
    bookHidden: 2,
    cancel: 2,
    appoint: 1,
  }) as [keyof typeof actions, number][]
).flatMap(([action, weight]) => Array.from({ length: weight }, () => action));

function book(room: Room, timeslotReference: string, start: number) {
  const value = { timeslotReference, start: textOf(start), productReference: 'product@test' };
  const request = newBooking(
    { $case: 'timeslot', value },
    { ...room.key, ...customerOf(room.provider.customerReference) },
  );
  return calendar.bookings.bookSlot(request);
}

describe('a window', () => {
  it.each([
    // The clock goes from 2:00 to 3:00.
    ['Europe/Berlin', '2027-03-28', '02:30', '05:00', 30, '2027-03-28T01:30Z', '2027-03-28T03:00Z'],
    ['Europe/Berlin', '2027-03-28', '01:00', '02:30', 30, '2027-03-28T00:00Z', '2027-03-28T01:30Z'],
    ['Europe/Berlin', '2027-03-28', '01:30', '03:30', 60, '2027-03-28T00:30Z', '2027-03-28T01:30Z'],
    ['Europe/Berlin', '2027-03-27', '22:00', '04:00', 30, '2027-03-27T21:00Z', '2027-03-28T02:00Z'],
    // It goes from 3:00 to 2:00.
    ['Europe/Berlin', '2027-10-31', '02:30', '03:00', 30, '2027-10-31T00:30Z', '2027-10-31T02:00Z'],
    ['Europe/Berlin', '2027-10-31', '01:00', '02:30', 30, '2027-10-30T23:00Z', '2027-10-31T00:30Z'],
    // From 0:00 to 1:00.
    ['America/Santiago', '2027-09-04', '20:00', '24:00', 30, '2027-09-05T00:00Z', '2027-09-05T04:00Z'],
    ['America/Santiago', '2027-09-05', '00:30', '02:00', 30, '2027-09-05T04:30Z', '2027-09-05T05:00Z'],
    // From 24:00 to 23:00.
    ['Asia/Beirut', '2027-10-30', '23:00', '24:00', 30, '2027-10-30T20:00Z', '2027-10-30T22:00Z'],
    // From 2:00 to 2:30.
    ['Australia/Lord_Howe', '2027-10-03', '02:15', '03:00', 15, '2027-10-02T15:45Z', '2027-10-02T16:00Z'],
  ])(
    'in %s on %s from %s to %s in steps of %i minutes is from %s to %s',
    async (zone, date, from, to, raster, ...is) => {
      expect(await openingsOn(zone, date, { from, to, raster })).toEqual([
        { start: minuteOf(is[0]), end: minuteOf(is[1]) },
      ]);
    },
  );

  it.each([
    ['Europe/Berlin', '2027-03-28', '02:15', '02:45', 15],
    ['Europe/Berlin', '2027-03-28', '02:00', '03:00', 15],
    ['Europe/Berlin', '2027-03-28', '02:30', '03:15', 15],
    ['Europe/Berlin', '2027-03-28', '01:30', '03:30', 61],
    ['America/Santiago', '2027-09-05', '00:00', '00:30', 15],
  ])('in %s on %s from %s to %s in steps of %i minutes makes nothing', async (zone, date, from, to, raster) => {
    expect(await openingsOn(zone, date, { from, to, raster })).toEqual([]);
  });

  /** As they are listed, which is as the model reads them. */
  async function openingsOn(zone: string, date: string, window: Partial<HoursWindow>) {
    const midnight = minuteOf(`${date}T00:00Z`);
    await setClock(midnight - 2 * day);
    const key = { ...(await createProvider(zone)), resourceReference: 'room' };
    const windows = [newWindow({ weekdays: [], ...window })];
    const hours = newHours({ exceptions: [{ from: date, to: date, windows }], aheadDays: 5 });
    await putHours(calendar, key, hours);
    const [from, to] = [new Date((midnight - 5 * day) * minuteMs), new Date((midnight + 10 * day) * minuteMs)];
    const listed = (await listTimeslots(calendar, key, from, to)).map(openingOf);
    expect(listed).toEqual(readers.get(zone)!.openingsOn(hours, dayOf(date)));
    return listed.map(({ start, end }) => ({ start, end }));
  }
});

describe('conflicts', () => {
  it('are those of the next 400 days, of which the first 500 are named', async () => {
    const now = minuteOf('2028-01-01T12:00Z');
    await setClock(now);
    const key = { ...(await createProvider('Europe/Berlin')), resourceReference: 'room' };
    const at = (start: number) =>
      createAppointment(calendar, { ...key, start: textOf(start), end: textOf(start + hour) });
    const [near] = [await at(now + 399 * day), await at(now + 401 * day)];
    expect((await putHours(calendar, key, newHours())).conflicts).toEqual({ appointmentReferences: [near], total: 1 });
    // Every 5 minutes for two days.
    const { json } = await calendar.appointments.createSeries({
      ...key,
      spanFrom: '2028-02-01T00:00',
      spanTo: '2028-02-03T00:00',
      raster: 5,
      weekdays: [2, 3],
      windowFrom: '00:00',
      windowTo: '23:55',
      capacity: 1,
      acceptBookings: false,
      productReference: 'product@test',
    });
    const references = readAppointments(json).map(({ reference }) => reference);
    expect((await putHours(calendar, key, newHours())).conflicts).toEqual({
      appointmentReferences: references.slice(0, 500),
      total: references.length + 1,
    });
  });
});

describe('opening hours', () => {
  it(
    `are what is made of them in 12 zones for more than a year, whatever happens (seed ${seed})`,
    { timeout: 3_600_000 },
    async () => {
      const random = createRandom(seed, 0);
      const inZones = random.shuffled(zones);
      const begin = onGrid(minuteOf('2028-01-01T00:00Z') + random.integer(0, 365 * day)) + 1;
      await setClock(begin);
      const providers = await Promise.all(
        inZones.map(async (zone, index) => {
          const owner = await createProvider(zone);
          return new Provider(owner, await createCustomer(calendar, owner), zone, createRandom(seed, index + 1));
        }),
      );
      const rooms = providers.flatMap((provider) => provider.rooms);
      let now = begin;
      let latest = begin;
      const isEnough = (step: number): boolean =>
        step >= steps && latest > begin + 380 * day && Object.keys(actions).every((action) => counts.has(action));
      for (let step = 0; !isEnough(step) && step < 5 * steps; step += 1) {
        const kind = random.pick(['act', 'act', 'act', 'act', 'clock', 'clock', 'clock', 'zone'] as const);
        const about = `seed ${seed}, step ${step}: ${kind}, now ${textOf(now)}`;
        if (kind === 'act') {
          await Promise.all(providers.map((provider) => act(provider, now, `${about}, in ${provider.timeZone}`)));
          continue;
        }
        if (kind === 'clock') {
          const before = now;
          now = onGrid(randomTime(random, now)) + 1;
          latest = Math.max(latest, now);
          await setClock(now);
          for (const room of rooms) {
            if (now > before) room.makeDays(now);
            else if (room.hours !== undefined) room.setHours(room.hours, now);
          }
        } else {
          await swapZones(random, providers, now);
        }
        await untilMade();
        const compared = rooms.map((room) =>
          expectTimeslots(room, now, `${about}, in ${room.provider.timeZone}, then ${textOf(now)}`),
        );
        await Promise.all(compared);
      }
      for (const action of Object.keys(actions)) expect(counts.get(action), action).toBeGreaterThan(0);
    },
  );
});

/** Waits until nothing is due: what is made anew later brings back what was deleted meanwhile. */
async function untilMade(): Promise<void> {
  await eventually(async () => {
    const { rows } = await sql`SELECT FROM resource_hours WHERE due_at <= scheduling_now()`.execute(
      calendar.database.kysely,
    );
    expect(rows).toHaveLength(0);
  });
}

/** Of two providers, so that there is one in each zone. */
async function swapZones(random: Random, providers: Provider[], now: number): Promise<void> {
  // What the CRM has changed stands for a window that is elsewhere in another zone.
  const movable = providers.filter(({ rooms }) =>
    rooms.every((room) => room.present(now).every(({ origin }) => origin === undefined)),
  );
  const [one, other] = random.shuffled(movable);
  if (one === undefined || other === undefined) return;
  const [zone, otherZone] = [one.timeZone, other.timeZone];
  await Promise.all([moveTo(one, otherZone, now), moveTo(other, zone, now)]);
}

/** By hours, days, or months, sometimes back. */
function randomTime(random: Random, now: number): number {
  const by = random.pick(['hours', 'hours', 'days', 'days', 'months', 'months', 'months', 'back'] as const);
  if (by === 'hours') return now + random.integer(1, 30 * hour);
  if (by === 'days') return now + random.integer(1, 8) * day + random.integer(0, day);
  if (by === 'months') return now + random.integer(25, 60) * day;
  return now - random.pick([hour, 20 * hour, 3 * day, 15 * day]);
}
