import { beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '@scheduling/testing';
import { type Answer, path, type Problem } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  createTimeslot,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { apiInfo, type Booking, type Conflicts, listSlots, noConflicts, type Timeslot } from './answers.ts';
import { type Hours, hoursAt, newWeeklyWindow, newWindow, setHours } from './hours.ts';

/** A Monday, 7 o'clock in Berlin. */
const now = '2031-03-03T06:00:00Z';
const weekend = ['6', '7'];

let crm: TestCrm;
let practice: Practice;
beforeEach(async () => {
  crm = await createCrm({ sandbox: true });
  await setClock(now);
  practice = await createPractice(crm);
});

async function setClock(time: string): Promise<void> {
  expect(await crm.put('/sandbox/clock', { now: time })).toMatchObject({ status: 200 });
}

/** Of seven days, as if they had been given in a request. */
function week(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { weekly: [newWeeklyWindow(fields)], aheadDays: 7 };
}

/** The hours of today in the morning, and in the afternoon. */
const [morning, afternoon] = [
  { ...week(), aheadDays: 1 },
  { ...week({ from: '13:00', to: '17:00' }), aheadDays: 1 },
];

async function timeslotsOf({ at, resource }: Pick<Practice, 'at' | 'resource'> = practice): Promise<Timeslot[]> {
  const { status, body, text } = await crm.get<Timeslot[]>(at + path`/resource/${resource}/timeslots`, {
    query: { from: '2030-01-01T00:00', to: '2040-01-01T00:00' },
  });
  expect(status, text).toBe(200);
  return body;
}

const startsOf = (timeslots: Timeslot[]): string[] => timeslots.map(({ start }) => start);

async function onlyTimeslot(): Promise<Timeslot> {
  const [timeslot, ...others] = await timeslotsOf();
  expect(others).toEqual([]);
  return timeslot!;
}

const timeslotAt = (reference: string): string => practice.at + path`/timeslots/${reference}`;

function book(place: Record<string, unknown>): Promise<Answer<{ booking: Booking }>> {
  return crm.post(`${practice.at}/bookings`, {
    reference: `${unique('booking')}@test`,
    customerReference: practice.customer,
    state: 'BOOKED',
    ...place,
  });
}

/** A place in the morning of today. */
function inTimeslot(timeslotReference: string, start = '2031-03-03T09:00'): Record<string, unknown> {
  return { timeslotReference, start, productReference: practice.product };
}

/** Books in the morning of today, and returns the reference of the appointment. */
async function bookMorning(timeslotReference: string): Promise<string> {
  const { status, body, text } = await book(inTimeslot(timeslotReference));
  expect(status, text).toBe(201);
  return body.booking.participation.appointmentReference;
}

const closed = { status: 409, body: { code: 'slot.unavailable', reason: 'closed' } };

async function bookedAppointment(start: string, end: string, resourceReference = practice.resource): Promise<string> {
  const appointment = await createAppointment(practice, { start, end, resourceReference });
  await createParticipation(practice, appointment);
  return appointment;
}

describe('opening hours (interface 14)', () => {
  it('make bookable timeslots, and are returned as they were set', async () => {
    const address = { city: 'Berlin', zip: '10115', countryCode: 'DE', street: 'Ufer', number: '1' };
    const weekdays = ['1', '2', '3', '4', '5'];
    const [open, long] = [newWindow({ address }), newWindow({ from: '13:00', to: '15:00', raster: 60 })];
    const night = newWeeklyWindow({ weekdays: ['6'], from: '22:00', to: '02:00', address: 'https://video.example/1' });
    const answer = await crm.put(hoursAt(practice), {
      weekly: [{ weekdays, ...open }, night],
      exceptions: [
        { from: '2031-03-05', to: '2031-03-06', windows: [], note: 'Closed' },
        { from: '2031-03-06', to: '2031-03-06', windows: [long] },
      ],
      aheadDays: 7,
    });
    const noBuffers = { bufferBefore: 0, bufferAfter: 0 };
    const hours = {
      resourceReference: practice.resource,
      weekly: [
        { weekdays, ...open, ...noBuffers },
        { ...night, ...noBuffers },
      ],
      exceptions: [
        { from: '2031-03-05', to: '2031-03-06', windows: [], note: 'Closed' },
        { from: '2031-03-06', to: '2031-03-06', windows: [{ ...long, ...noBuffers, address: null }], note: null },
      ],
      validFrom: null,
      validUntil: null,
      aheadDays: 7,
      madeUntil: '2031-03-09',
    };
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toStrictEqual({ 'api-info': apiInfo, hours, conflicts: noConflicts });
    expect((await crm.get(hoursAt(practice))).body).toStrictEqual({ 'api-info': apiInfo, hours });

    const made = {
      reference: expect.any(String) as string,
      resourceReference: practice.resource,
      raster: 30,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
      ...noBuffers,
      address,
      state: 'BOOKABLE',
      fromHours: true,
      appointments: [],
    };
    const timeslots = await timeslotsOf();
    expect(timeslots).toStrictEqual([
      { ...made, start: '2031-03-03T08:00:00Z', end: '2031-03-03T11:00:00Z' },
      { ...made, start: '2031-03-04T08:00:00Z', end: '2031-03-04T11:00:00Z' },
      { ...made, start: '2031-03-06T12:00:00Z', end: '2031-03-06T14:00:00Z', raster: 60, address: null },
      { ...made, start: '2031-03-07T08:00:00Z', end: '2031-03-07T11:00:00Z' },
      { ...made, start: '2031-03-08T21:00:00Z', end: '2031-03-09T01:00:00Z', address: night['address'] },
    ]);
    expect((await listSlots(practice)).map(({ start }) => start.slice(11, 16))).toEqual([
      '08:00',
      '08:30',
      '09:00',
      '09:30',
      '10:00',
      '10:30',
    ]);
    await bookMorning(timeslots[0]!.reference);
  });

  it('stay as they are when they are set again, with their timeslots', async () => {
    const first = await setHours(practice, week());
    const timeslots = await timeslotsOf();
    expect(timeslots).toHaveLength(7);
    expect(await setHours(practice, week())).toStrictEqual(first);
    expect(await timeslotsOf()).toStrictEqual(timeslots);
  });

  it('have defaults for what is not given', async () => {
    const { hours } = await setHours(practice, { weekly: [] });
    expect(hours).toStrictEqual({
      resourceReference: practice.resource,
      weekly: [],
      exceptions: [],
      validFrom: null,
      validUntil: null,
      aheadDays: 92,
      madeUntil: '2031-06-02',
    });
    const nothing = { exceptions: null, validFrom: null, validUntil: '', aheadDays: null };
    expect((await setHours(practice, { weekly: [], ...nothing })).hours).toStrictEqual(hours);
    expect(await timeslotsOf()).toEqual([]);
  });

  it('are valid from one day until another, both included', async () => {
    await setHours(practice, { ...week(), validFrom: '2031-03-05', validUntil: '2031-03-06' });
    expect(startsOf(await timeslotsOf())).toEqual(['2031-03-05T08:00:00Z', '2031-03-06T08:00:00Z']);
  });

  it('make what has begun, also yesterday, and nothing that is over', async () => {
    await setClock('2031-03-03T00:30:00Z');
    const over = { weekdays: ['1'], from: '00:00', to: '01:30' };
    const begun = { weekdays: ['7'], from: '22:00', to: '02:00' };
    await setHours(practice, { weekly: [newWeeklyWindow(over), newWeeklyWindow(begun)], aheadDays: 1 });
    expect(startsOf(await timeslotsOf())).toEqual(['2031-03-02T21:00:00Z']);
  });

  it.each([
    ['starts in an hour that is skipped', '2031-03-29T12:00:00Z', ['02:30', '04:00'], '01:30 – 02:00'],
    ['lies in an hour that is skipped', '2031-03-29T12:00:00Z', ['02:00', '03:00'], undefined],
    ['starts in an hour that there is twice', '2031-10-25T12:00:00Z', ['02:30', '03:30'], '00:30 – 02:30'],
  ])('keep to the clock on the wall: a window that %s', async (_, before, [from, to], expected) => {
    await setClock(before);
    await setHours(practice, { ...week({ weekdays: ['7'], from, to }), aheadDays: 2 });
    expect((await timeslotsOf()).map(({ start, end }) => `${start.slice(11, 16)} – ${end.slice(11, 16)}`)).toEqual(
      expected === undefined ? [] : [expected],
    );
  });

  it('are 404 for a resource that has none, and under a provider that does not exist', async () => {
    expect(await crm.get(hoursAt(practice))).toMatchObject({ status: 404, body: { code: 'hours.not_found' } });
    const nowhere = { at: '/provider/nothing%40test', resource: practice.resource };
    for (const answer of [
      await crm.put(hoursAt(nowhere), week()),
      await crm.get(hoursAt(nowhere)),
      await crm.delete(hoursAt(nowhere)),
      await crm.put(`${nowhere.at}/hours`, { ...week(), resourceReferences: ['r@test'] }),
    ])
      expect(answer).toMatchObject({ status: 404, body: { code: 'provider.not_found' } });
  });
});

describe('opening hours that change (interface 14)', () => {
  it('replace the timeslots that they do not have, and keep the others', async () => {
    await setHours(practice, week());
    const before = await timeslotsOf();
    const weekdays = ['1', '2', '3', '4', '5'];
    await setHours(practice, {
      weekly: [newWeeklyWindow({ weekdays }), newWeeklyWindow({ weekdays: weekend, from: '10:00' })],
      aheadDays: 7,
    });
    const after = await timeslotsOf();
    expect(after.slice(0, 5)).toStrictEqual(before.slice(0, 5));
    expect(startsOf(after.slice(5))).toEqual(['2031-03-08T09:00:00Z', '2031-03-09T09:00:00Z']);
  });

  it('hide a timeslot with an appointment, until they have its window again or the appointment is cancelled', async () => {
    const window = { defaultCapacity: 2 };
    const roomyMorning = { ...week(window), aheadDays: 1 };
    await setHours(practice, roomyMorning);
    const { reference } = await onlyTimeslot();
    const appointmentReference = await bookMorning(reference);
    const openAppointment = { appointmentReference };
    expect(await listSlots(practice)).toContainEqual(expect.objectContaining({ appointmentReference, seats: 1 }));

    const conflicts = { appointmentReferences: [appointmentReference], total: 1 };
    expect((await setHours(practice, afternoon)).conflicts).toStrictEqual(conflicts);
    const [hidden, shown, ...others] = await timeslotsOf();
    expect(others).toEqual([]);
    expect(hidden).toMatchObject({ reference, state: 'CREATED', fromHours: true });
    expect(hidden!.appointments).toMatchObject([{ reference: appointmentReference, state: 'ACTIVE' }]);
    expect(shown).toMatchObject({ start: '2031-03-03T12:00:00Z', state: 'BOOKABLE' });
    for (const place of [inTimeslot(reference, '2031-03-03T10:00'), openAppointment])
      expect(await book({ ...place, customerReference: await createCustomer() })).toMatchObject(closed);
    expect(new Set((await listSlots(practice)).map(({ timeslotReference }) => timeslotReference))).toEqual(
      new Set([shown!.reference]),
    );

    expect((await setHours(practice, roomyMorning)).conflicts).toStrictEqual(noConflicts);
    expect(await onlyTimeslot()).toMatchObject({ reference, state: 'BOOKABLE', fromHours: true });
    expect(await book({ ...openAppointment, customerReference: await createCustomer() })).toMatchObject({
      status: 201,
    });

    await setHours(practice, afternoon);
    await crm.delete(`${practice.at}/appointments`, { appointmentReference });
    expect((await setHours(practice, afternoon)).conflicts).toStrictEqual(noConflicts);
    expect(await onlyTimeslot()).toMatchObject({ start: '2031-03-03T12:00:00Z', state: 'BOOKABLE' });
  });

  it('list the appointments outside of them, however they were made, by start', async () => {
    const late = await bookedAppointment('2031-03-06T16:30', '2031-03-06T17:30');
    const early = await bookedAppointment('2031-03-04T08:00', '2031-03-04T09:00');
    const across = await bookedAppointment('2031-03-05T11:00', '2031-03-05T14:00');
    const cancelled = await bookedAppointment('2031-03-04T06:00', '2031-03-04T07:00');
    await crm.delete(`${practice.at}/appointments`, { appointmentReference: cancelled });
    // Without participants, a class for example.
    const empty = await createAppointment(practice, { start: '2031-03-04T07:00', end: '2031-03-04T08:00' });
    // Over, elsewhere, and far away.
    await bookedAppointment('2031-03-03T05:00', '2031-03-03T06:30');
    await bookedAppointment('2031-03-04T06:00', '2031-03-04T07:00', 'elsewhere@test');
    await bookedAppointment('2033-03-04T06:00', '2033-03-04T07:00');
    const { conflicts } = await setHours(practice, week({ to: '17:00' }));
    expect(conflicts).toStrictEqual({ appointmentReferences: [empty, early, late], total: 3 });
    const weekly = [newWeeklyWindow(), newWeeklyWindow({ from: '12:00', to: '18:00', raster: 60 })];
    expect((await setHours(practice, { weekly })).conflicts).toStrictEqual({
      appointmentReferences: [empty, early],
      total: 2,
    });
    expect((await setHours(practice, { weekly: [newWeeklyWindow()] })).conflicts).toStrictEqual({
      appointmentReferences: [empty, early, across, late],
      total: 4,
    });
  });

  it('are gone once they are deleted, with the timeslots in which nobody has booked', async () => {
    await setHours(practice, week());
    const [booked] = await timeslotsOf();
    const appointmentReference = await bookMorning(booked!.reference);
    const deleted = await crm.delete(hoursAt(practice));
    expect(deleted.status).toBe(200);
    expect(deleted.body).toStrictEqual({
      'api-info': apiInfo,
      conflicts: { appointmentReferences: [appointmentReference], total: 1 },
    });
    expect(await onlyTimeslot()).toMatchObject({ reference: booked!.reference, state: 'CREATED', fromHours: true });
    expect(await crm.get(hoursAt(practice))).toMatchObject({ status: 404, body: { code: 'hours.not_found' } });
    expect(await crm.delete(hoursAt(practice))).toMatchObject({ status: 200, body: deleted.body });
    await setHours(practice, week());
    expect((await timeslotsOf())[0]).toMatchObject({ reference: booked!.reference, state: 'BOOKABLE' });
  });

  it('leave alone a timeslot of theirs that was changed, and do not make its window again while they have it', async () => {
    await setHours(practice, morning);
    const { reference } = await onlyTimeslot();
    expect(await crm.put(timeslotAt(reference), { defaultCapacity: 5 })).toMatchObject({
      status: 200,
      body: { timeslot: { reference, defaultCapacity: 5, state: 'BOOKABLE', fromHours: false } },
    });
    const changed = await onlyTimeslot();
    await setHours(practice, morning);
    expect(await onlyTimeslot()).toStrictEqual(changed);
    await setHours(practice, afternoon);
    const [first, second] = await timeslotsOf();
    expect([first, second!.start]).toStrictEqual([changed, '2031-03-03T12:00:00Z']);
    expect((await crm.delete(hoursAt(practice))).status).toBe(200);
    expect(await onlyTimeslot()).toStrictEqual(changed);
  });

  it('make a timeslot that was deleted only when they are set again', async () => {
    await setHours(practice, morning);
    const { reference } = await onlyTimeslot();
    expect(await crm.delete(timeslotAt(reference))).toMatchObject({ status: 204 });
    expect(await timeslotsOf()).toEqual([]);
    await setHours(practice, morning);
    expect(await onlyTimeslot()).toMatchObject({ start: '2031-03-03T08:00:00Z', fromHours: true });
  });

  it('leave alone timeslots that were not made from them', async () => {
    const reference = await createTimeslot(practice);
    const byHand = await onlyTimeslot();
    expect(byHand).toMatchObject({ reference, fromHours: false });
    await setHours(practice, afternoon);
    expect((await timeslotsOf())[0]).toStrictEqual(byHand);
    expect((await crm.delete(hoursAt(practice))).status).toBe(200);
    expect(await onlyTimeslot()).toStrictEqual(byHand);
  });

  it('are those of one of two concurrent requests as a whole', async () => {
    for (let times = 0; times < 5; times += 1) {
      await Promise.all([setHours(practice, morning), setHours(practice, afternoon)]);
      const { body } = await crm.get<{ hours: Hours }>(hoursAt(practice));
      const { start } = await onlyTimeslot();
      expect([
        ['09:00', '2031-03-03T08:00:00Z'],
        ['13:00', '2031-03-03T12:00:00Z'],
      ]).toContainEqual([body.hours.weekly[0]!.from, start]);
    }
  });

  async function createCustomer(): Promise<string> {
    const customerReference = `${unique('guest')}@test`;
    const customer = { customerReference, providerReference: practice.provider, userName: 'Ada Byron' };
    expect(await crm.post(`${practice.at}/customers`, customer)).toMatchObject({ status: 201 });
    return customerReference;
  }
});

describe('opening hours of several resources (interface 14)', () => {
  const setAll = (resourceReferences: string[], fields: Record<string, unknown>) =>
    crm.put<{ hours: Hours[]; conflicts: Conflicts } & Problem>(`${practice.at}/hours`, {
      resourceReferences,
      ...fields,
    });

  it('are set together, and answered in the order of the request, with the conflicts of all of them', async () => {
    const resources = ['b@test', 'a@test', 'c@test'];
    const appointments = [];
    for (const [index, resourceReference] of resources.entries()) {
      const day = `2031-03-0${6 - index}`;
      appointments.push(await bookedAppointment(`${day}T12:00`, `${day}T13:00`, resourceReference));
    }
    const answer = await setAll(resources, week());
    expect(answer.status, answer.text).toBe(200);
    const { hours, conflicts } = answer.body;
    expect(hours.map(({ resourceReference }) => resourceReference)).toEqual(resources);
    expect(conflicts).toStrictEqual({ appointmentReferences: appointments.toReversed(), total: 3 });
    for (const [index, resource] of resources.entries()) {
      const own = { at: practice.at, resource };
      expect((await crm.get(hoursAt(own))).body).toStrictEqual({ 'api-info': apiInfo, hours: hours[index] });
      expect(await timeslotsOf(own)).toHaveLength(7);
    }
    const before = await timeslotsOf({ at: practice.at, resource: 'a@test' });
    expect((await setAll(['a@test'], week())).body.hours).toStrictEqual([hours[1]]);
    expect(await timeslotsOf({ at: practice.at, resource: 'a@test' })).toStrictEqual(before);
  });

  it('are set for all or none', async () => {
    expect(await setAll(['a@test', 'b@test'], week({ raster: 181 }))).toMatchObject({
      status: 400,
      body: { code: 'hours.invalid', errors: [{ pointer: '/weekly/0/raster' }] },
    });
    for (const resource of ['a@test', 'b@test'])
      expect((await crm.get(hoursAt({ at: practice.at, resource }))).status).toBe(404);
  });

  it.each([
    ['none', [], '/resourceReferences', 'must not be empty'],
    ['one twice', ['a@test', 'b@test', 'a@test'], '/resourceReferences', 'must not have the same element twice'],
    [
      'too many',
      Array.from({ length: 21 }, (_, index) => `${index}@test`),
      '/resourceReferences',
      'must not have more than 20 elements',
    ],
    ['an empty one', ['a@test', ''], '/resourceReferences/1', 'must not be empty'],
    [
      'one that nobody could address',
      ['..'],
      '/resourceReferences/0',
      'must not be . or .., and must not contain control characters',
    ],
  ])('are rejected for %s', async (_, resources, pointer, detail) => {
    expect(await setAll(resources, week())).toMatchObject({
      status: 400,
      body: { code: 'request.invalid', errors: [{ pointer, detail }] },
    });
  });
});

describe('opening hours that are malformed (interface 14)', () => {
  const day = { from: '2031-03-03', to: '2031-03-03', windows: [] };
  const inWeek = (fields: object) => ({ weekly: [newWeeklyWindow(), { ...newWeeklyWindow(), ...fields }] });
  const inException = (fields: object) => ({ weekly: [], exceptions: [day, { ...day, ...fields }] });
  const inWindow = (fields: object) => inException({ windows: [{ ...newWindow(), ...fields }] });
  const time = 'must be a time of day in the format HH:MM, from 00:00 to 23:59';
  const endTime = 'must be a time of day in the format HH:MM, from 00:00 to 24:00';
  const date = 'must be a date in the format YYYY-MM-DD, from 1900 to 9998';

  it.each<[what: string, body: object, pointer: string, detail: string]>([
    ['no windows', {}, '/weekly', 'is required'],
    ['windows that are null', { weekly: null }, '/weekly', 'must be an array'],
    [
      'too many windows',
      { weekly: Array.from({ length: 51 }, () => newWeeklyWindow()) },
      '/weekly',
      'must not have more than 50 elements',
    ],
    ['a window that is a text', { weekly: ['09:00'] }, '/weekly/0', 'must be an object'],
    ['no weekdays', inWeek({ weekdays: undefined }), '/weekly/1/weekdays', 'is required'],
    ['an empty list of weekdays', inWeek({ weekdays: [] }), '/weekly/1/weekdays', 'must not be empty'],
    ['a weekday twice', inWeek({ weekdays: ['1', '1'] }), '/weekly/1/weekdays', 'must not have the same element twice'],
    [
      'an unknown weekday',
      inWeek({ weekdays: ['1', '8'] }),
      '/weekly/1/weekdays/1',
      'must be one of 1, 2, 3, 4, 5, 6, 7',
    ],
    ['a weekday that is a number', inWeek({ weekdays: [1] }), '/weekly/1/weekdays/0', 'must be a string'],
    ['no start', inWeek({ from: undefined }), '/weekly/1/from', 'is required'],
    ['an empty start', inWeek({ from: '' }), '/weekly/1/from', 'must not be empty'],
    ['a start at 24:00', inWeek({ from: '24:00' }), '/weekly/1/from', time],
    ['a start with seconds', inWeek({ from: '09:00:00' }), '/weekly/1/from', time],
    ['a start without a leading zero', inWeek({ from: '9:00' }), '/weekly/1/from', time],
    ['no end', inWeek({ to: null }), '/weekly/1/to', 'must be a string'],
    ['an end after 24:00', inWeek({ to: '24:01' }), '/weekly/1/to', endTime],
    ['no raster', inWeek({ raster: undefined }), '/weekly/1/raster', 'is required'],
    ['a raster of 0', inWeek({ raster: 0 }), '/weekly/1/raster', 'must be at least 1'],
    ['too long a raster', inWeek({ raster: 525_601 }), '/weekly/1/raster', 'must be at most 525600'],
    ['a negative capacity', inWeek({ defaultCapacity: -1 }), '/weekly/1/defaultCapacity', 'must be at least 0'],
    [
      'a flag that is a text',
      inWeek({ defaultAcceptBookings: 'true' }),
      '/weekly/1/defaultAcceptBookings',
      'must be true or false',
    ],
    ['an address that is a number', inWeek({ address: 5 }), '/weekly/1/address', 'must be an object, a string or null'],
    ['exceptions that are an object', { weekly: [], exceptions: {} }, '/exceptions', 'must be an array or null'],
    [
      'too many exceptions',
      { weekly: [], exceptions: Array.from({ length: 401 }, () => day) },
      '/exceptions',
      'must not have more than 400 elements',
    ],
    ['no first day', inException({ from: undefined }), '/exceptions/1/from', 'is required'],
    ['a first day that does not exist', inException({ from: '2031-02-29' }), '/exceptions/1/from', date],
    ['a last day with a time', inException({ to: '2031-03-03T00:00' }), '/exceptions/1/to', date],
    ['a last day in the year 9999', inException({ to: '9999-01-01' }), '/exceptions/1/to', date],
    ['an exception without windows', inException({ windows: undefined }), '/exceptions/1/windows', 'is required'],
    [
      'too many windows of an exception',
      inException({ windows: Array.from({ length: 51 }, () => newWindow()) }),
      '/exceptions/1/windows',
      'must not have more than 50 elements',
    ],
    ['a start in an exception', inWindow({ from: '25:00' }), '/exceptions/1/windows/0/from', time],
    ['an end in an exception', inWindow({ to: 'noon' }), '/exceptions/1/windows/0/to', endTime],
    [
      'too long a note',
      inException({ note: 'x'.repeat(1_024) }),
      '/exceptions/1/note',
      'must not be longer than 1023 characters',
    ],
    ['a first valid day that is no date', { weekly: [], validFrom: 'tomorrow' }, '/validFrom', date],
    ['a last valid day that does not exist', { weekly: [], validUntil: '2031-13-01' }, '/validUntil', date],
    ['no day ahead', { weekly: [], aheadDays: 0 }, '/aheadDays', 'must be at least 1'],
    ['too many days ahead', { weekly: [], aheadDays: 401 }, '/aheadDays', 'must be at most 400'],
    ['half a day ahead', { weekly: [], aheadDays: 1.5 }, '/aheadDays', 'must be an integer or null'],
  ])('are rejected for %s', async (_, body, pointer, detail) => {
    const refused = await crm.put<Problem>(hoursAt(practice), body);
    expect(refused).toMatchObject({ status: 400, body: { code: 'request.invalid', errors: [{ pointer, detail }] } });
    expect(refused.body.errors).toHaveLength(1);
  });

  it.each([
    ['a window that ends when it starts', inWeek({ to: '09:00' }), '/weekly/1/to'],
    ['a raster that does not fit', inWeek({ raster: 181 }), '/weekly/1/raster'],
    ['a window of an exception that ends when it starts', inWindow({ to: '09:00' }), '/exceptions/1/windows/0/to'],
    [
      'a raster that does not fit over midnight',
      inWindow({ from: '23:00', to: '01:00', raster: 121 }),
      '/exceptions/1/windows/0/raster',
    ],
    ['an exception that ends before it starts', inException({ to: '2031-03-02' }), '/exceptions/1/to'],
    ['an end before the beginning', { weekly: [], validFrom: '2031-03-03', validUntil: '2031-03-02' }, '/validUntil'],
  ])('are rejected for %s', async (_, body, pointer) => {
    const refused = await crm.put<Problem>(hoursAt(practice), body);
    expect(refused).toMatchObject({ status: 400, body: { code: 'hours.invalid', errors: [{ pointer }] } });
    expect(refused.body.errors).toHaveLength(1);
    expect((await crm.get(hoursAt(practice))).status).toBe(404);
  });
});

describe('the timeslots of opening hours (interface 14)', () => {
  it('are made for each day as it comes into reach, and those of the days before stay', async () => {
    await setHours(practice, { ...week(), aheadDays: 2 });
    const [monday, tuesday] = await timeslotsOf();
    await setClock('2031-03-04T06:00:00Z');
    const timeslots = await eventually(async () => {
      const made = await timeslotsOf();
      expect(startsOf(made)).toContain('2031-03-05T08:00:00Z');
      return made;
    });
    expect(timeslots).toStrictEqual([monday, tuesday, expect.anything()]);
    await expectMadeUntil('2031-03-05');
  });

  it('are made for the new present when the clock of the sandbox is set two years ahead', async () => {
    await setHours(practice, { ...week(), aheadDays: 2 });
    await setClock('2033-03-07T06:00:00Z');
    await eventually(async () =>
      expect(startsOf(await timeslotsOf()).slice(2)).toEqual(['2033-03-07T08:00:00Z', '2033-03-08T08:00:00Z']),
    );
    await expectMadeUntil('2033-03-08');
  });

  it('are made anew in another time zone of the provider', async () => {
    await setHours(practice, { ...week(), aheadDays: 2 });
    expect(startsOf(await timeslotsOf())).toEqual(['2031-03-03T08:00:00Z', '2031-03-04T08:00:00Z']);
    expect(await crm.put(practice.at, { timeZone: 'America/New_York' })).toMatchObject({ status: 200 });
    await eventually(async () =>
      expect(startsOf(await timeslotsOf())).toEqual(['2031-03-03T14:00:00Z', '2031-03-04T14:00:00Z']),
    );
    expect((await timeslotsOf()).map(({ fromHours }) => fromHours)).toEqual([true, true]);
  });

  async function expectMadeUntil(madeUntil: string): Promise<void> {
    const { body } = await crm.get<{ hours: Hours }>(hoursAt(practice));
    expect(body.hours.madeUntil).toBe(madeUntil);
  }
});
