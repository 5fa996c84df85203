import {
  type Conflicts,
  type Hours,
  type HoursException,
  type HoursWindow,
  type Location,
  ParticipationState,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import { eventually, patiently } from '@scheduling/testing';
import type { Random } from '@scheduling/testing/random';
import { expect } from 'vitest';
import { type CalendarUnderTest, createAppointment, refusal } from './calendar-under-test.ts';
import {
  day,
  grid,
  hour,
  keyOf,
  liesIn,
  minuteMs,
  minuteOf,
  onGrid,
  type Provider,
  type Room,
  textOf,
} from './hours-model.ts';
import { dateOf, type Opening } from './hours-reader.ts';
import { hoursRecord, listTimeslots, newHours, newWindow, putHours, type TimeslotJson } from './hours-under-test.ts';
import { customerOf, newBooking, newTimeslot } from './slots-under-test.ts';

/** How often it was done. */
export const counts = new Map<string, number>();
const count = (what: string): void => {
  counts.set(what, (counts.get(what) ?? 0) + 1);
};

/** Does something to a room of the provider. */
export async function act(calendar: CalendarUnderTest, provider: Provider, now: number, during: string): Promise<void> {
  const { random, rooms } = provider;
  const action = random.pick(mixture);
  const about = `${during}: ${action}`;
  const room = random.chance(0.8) ? rooms[0]! : rooms[1]!;
  await actions[action](calendar, room, now, about);
  await Promise.all((action === 'putBoth' ? rooms : [room]).map((each) => expectTimeslots(calendar, each, now, about)));
}

async function put(calendar: CalendarUnderTest, room: Room, hours: Hours, now: number, about: string): Promise<void> {
  const { hours: record, conflicts } = await putHours(calendar, room.key, hours);
  room.setHours(hours, now);
  expect(record, about).toMatchObject(hoursRecord(room.key, hours));
  const { json } = await calendar.hours.getHours(room.key);
  expect(JSON.parse(json.toString()), about).toEqual(record);
  expectConflicts(conflicts, [room], now, about);
}

const cancelled = { state: ParticipationState.CANCELED, ignoreCapacity: false, sendMails: false };

export const actions = {
  async put(calendar: CalendarUnderTest, room: Room, now: number, about: string) {
    await put(calendar, room, randomHours(room.provider, now), now, about);
    count('put');
  },

  async putBoth(calendar: CalendarUnderTest, { provider }: Room, now: number, about: string) {
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

  /** A timeslot with other buffers is another one. */
  async changeDistances(calendar: CalendarUnderTest, room: Room, now: number, about: string) {
    const { hours, provider } = room;
    if (hours === undefined || hours.weekly.length === 0) return;
    const changed = provider.random.pick(hours.weekly);
    const weekly = hours.weekly.map((window) => (window === changed ? withOthers(provider.random, window) : window));
    await put(calendar, room, { ...hours, weekly }, now, about);
    count('changeDistances');
  },

  async repeat(calendar: CalendarUnderTest, room: Room, now: number, about: string) {
    if (room.hours === undefined) return;
    await put(calendar, room, room.hours, now, about);
    count('repeat');
  },

  async remove(calendar: CalendarUnderTest, room: Room, now: number, about: string) {
    const { conflicts } = await calendar.hours.deleteHours(room.key);
    room.setHours(undefined, now);
    expectConflicts(conflicts!, [room], now, about);
    expect(await refusal(calendar.hours.getHours(room.key)), about).toMatchObject({ code: 'hours.not_found' });
    count('remove');
  },

  /** From then on it is the CRM's. */
  async change(calendar: CalendarUnderTest, { key, provider: { random }, entries }: Room, now: number) {
    const entry = random.shuffled(entries).find(({ fromHours, opening }) => fromHours && opening.end > now);
    if (entry === undefined) return;
    const { opening } = entry;
    const change = random.pick([
      { opening: { ...opening, defaultCapacity: opening.defaultCapacity + 1 }, state: entry.state },
      { opening: { ...opening, defaultAcceptBookings: !opening.defaultAcceptBookings }, state: entry.state },
      { opening: { ...opening, end: opening.end + 3 * grid }, state: entry.state },
      { opening: { ...opening, bufferBefore: 20, bufferAfter: 0 }, state: entry.state },
      { opening, state: 'CREATED' as const },
      { opening, state: 'BOOKABLE' as const },
    ]);
    const { defaultCapacity, defaultAcceptBookings, end, bufferBefore, bufferAfter } = change.opening;
    await calendar.timeslots.updateTimeslot({
      ...key,
      timeslotReference: entry.reference!,
      end: textOf(end),
      defaultCapacity,
      defaultAcceptBookings,
      bufferBefore,
      bufferAfter,
      state: TimeslotState[change.state],
    });
    Object.assign(entry, change, { fromHours: false, origin: keyOf(opening) });
    count('change');
  },

  async delete(calendar: CalendarUnderTest, room: Room, now: number, about: string) {
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
  async createBeside(calendar: CalendarUnderTest, { key, provider: { random }, entries }: Room, now: number) {
    const start = onGrid(now + random.integer(0, 20 * day));
    const { raster, defaultCapacity, defaultAcceptBookings, resourceReference: _, ...others } = newTimeslot();
    const offer = { raster, defaultCapacity, defaultAcceptBookings };
    const like = random.shuffled(entries).find(({ fromHours, opening }) => fromHours && opening.address === null);
    const opening =
      like !== undefined && random.chance(0.5)
        ? like.opening
        : { ...offer, start, end: start + 2 * hour, address: null, bufferBefore: random.pick([0, 15]), bufferAfter: 0 };
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

  async book(calendar: CalendarUnderTest, room: Room, now: number, about: string) {
    const { random } = room.provider;
    const entry = random.shuffled(room.present(now)).find(({ state }) => state === 'BOOKABLE');
    if (entry === undefined) return;
    const { opening, reference } = entry;
    const { raster, bufferBefore, bufferAfter } = opening;
    const start = opening.start + raster * random.integer(0, Math.floor((opening.end - opening.start) / raster) - 1);
    const span = { start, end: start + raster };
    const isTooNear = room.isTooNear(span, opening);
    if (start < now + grid || isTooNear === undefined) return;
    const booking = book(calendar, room, reference!, start);
    if (isTooNear) {
      expect(await refusal(booking), about).toMatchObject({ code: 'slot.unavailable', reason: 'taken' });
      count('book too near');
      return;
    }
    const { participation } = await booking;
    const { appointmentReference, reference: participationReference } = participation;
    const visit = { ...span, bufferBefore, bufferAfter, isActive: true };
    room.visits.push({ ...visit, reference: appointmentReference, participationReference });
    count('book');
  },

  /** Neither its timeslot nor the appointment takes anybody else. */
  async bookHidden(calendar: CalendarUnderTest, room: Room, now: number, about: string) {
    const entry = room.provider.random
      .shuffled(room.entries)
      .find(({ opening, state, fromHours }) => fromHours && state === 'CREATED' && opening.start > now);
    if (entry === undefined) return;
    const closed = { code: 'slot.unavailable', reason: 'closed' };
    const { opening, reference } = entry;
    expect(await refusal(book(calendar, room, reference!, opening.start)), about).toMatchObject(closed);
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

  async cancel(calendar: CalendarUnderTest, { key, provider: { random }, visits }: Room, now: number) {
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
  async appoint(calendar: CalendarUnderTest, { key, provider: { random }, visits, entries }: Room, now: number) {
    const entry = random.shuffled(entries).find(({ opening }) => opening.start > now);
    const start =
      entry !== undefined && random.chance(0.5) ? entry.opening.start : onGrid(now + random.integer(0, 40 * day));
    const end = start + random.pick([grid, 30, 2 * hour]);
    const reference = await createAppointment(calendar, { ...key, start: textOf(start), end: textOf(end) });
    visits.push({ reference, start, end, isActive: true, bufferBefore: 0, bufferAfter: 0 });
    count('appoint');
  },
};

/** How often each is done in relation to the others. */
const mixture = (
  Object.entries({
    put: 3,
    putBoth: 1,
    changeDistances: 1,
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

function book(calendar: CalendarUnderTest, room: Room, timeslotReference: string, start: number) {
  const value = { timeslotReference, start: textOf(start), productReference: 'product@test' };
  const request = newBooking(
    { $case: 'timeslot', value },
    { ...room.key, ...customerOf(room.provider.customerReference) },
  );
  return calendar.bookings.bookSlot(request);
}

/** What is listed of a timeslot, as a text. */
function lineOf(opening: Opening, state: string, fromHours: boolean, reference: string | undefined): string {
  const { start, end, ...others } = opening;
  return `${textOf(start)} ${textOf(end)} ${JSON.stringify(others)} ${state} ${fromHours ? 'of hours' : 'by hand'} ${reference ?? 'new'}`;
}

export function openingOf(timeslot: TimeslotJson): Opening {
  const { start, end, raster, defaultCapacity, defaultAcceptBookings, address, bufferBefore, bufferAfter } = timeslot;
  const offer = { raster, defaultCapacity, defaultAcceptBookings, address, bufferBefore, bufferAfter };
  return { start: minuteOf(start), end: minuteOf(end), ...offer };
}

/** Waits until the timeslots are those that have to be there, and learns the references of new ones. */
export async function expectTimeslots(
  calendar: CalendarUnderTest,
  room: Room,
  now: number,
  about: string,
): Promise<void> {
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
    ...random.pick(distances),
  });
}

/** A window without any is the same whether or not it says so. */
const distances: Pick<HoursWindow, 'bufferBefore' | 'bufferAfter'>[] = [
  {},
  {},
  { bufferBefore: 0, bufferAfter: 0 },
  { bufferAfter: 10 },
  { bufferBefore: 45 },
  { bufferBefore: 7, bufferAfter: 1_440 },
];
const withOthers = (random: Random, window: HoursWindow): HoursWindow => ({
  ...window,
  bufferBefore: undefined,
  bufferAfter: undefined,
  ...random.pick(distances),
});

function randomHours({ random, reader }: Provider, now: number): Hours {
  const today = reader.dayAt(now);
  const list = <T>(most: number, make: () => T): T[] => Array.from({ length: random.integer(0, most) }, make);
  const weekdays = (): string[] =>
    random.shuffled(['1', '2', '3', '4', '5', '6', '7']).slice(random.integer(0, 6)).toSorted();
  const weekly = list(4, () => randomWindow(random, weekdays()));
  // The same window on other days as well.
  if (weekly.length > 0 && random.chance(0.2)) weekly.push({ ...random.pick(weekly), weekdays: weekdays() });
  // The same window with other buffers.
  if (weekly.length > 0 && random.chance(0.2)) weekly.push(withOthers(random, random.pick(weekly)));
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

function expectConflicts({ appointmentReferences, total }: Conflicts, rooms: Room[], now: number, about: string): void {
  const expected = rooms.flatMap((room) => room.conflicts(now));
  expect(appointmentReferences.toSorted(), about).toEqual(expected.toSorted());
  expect(total, about).toBe(expected.length);
  const visits = new Map(rooms.flatMap((room) => room.visits).map((visit) => [visit.reference, visit]));
  const starts = appointmentReferences.map((reference) => visits.get(reference)!.start);
  expect(starts, about).toEqual(starts.toSorted((a, b) => a - b));
}
