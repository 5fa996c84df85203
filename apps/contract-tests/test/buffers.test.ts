import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, path, type Problem } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createPractice,
  createTimeslot,
  newTimeslot,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { type Booking, listSlots, readAppointment, type Timeslot } from './answers.ts';
import { createBlock } from './blocks.ts';
import { newWeeklyWindow, newWindow, setHours } from './hours.ts';

const day = { from: '2031-03-03T00:00', to: '2031-03-04T00:00' };
/** For an appointment from 9:30 to 9:45, places end at 9:00 or begin at 10:15: the larger of two buffers counts. */
const buffers = { bufferBefore: 15, bufferAfter: 30 };
const all = everyQuarter('08:00', '11:45');

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
});
beforeEach(async () => {
  practice = await createPractice(crm);
});

/** From one time to another, both included. */
function everyQuarter(from: string, to: string): string[] {
  const times = Array.from({ length: 96 }, (_, quarter) => clock(quarter * 15));
  return times.slice(times.indexOf(from), times.indexOf(to) + 1);
}

function clock(minutes: number): string {
  return new Temporal.PlainTime().add({ minutes }).toString({ smallestUnit: 'minute' });
}

/** From 8:00 to 12:00, a quarter of an hour each. */
const createQuarters = (fields: object = buffers): Promise<string> =>
  createTimeslot(practice, { raster: 15, ...fields });

function inTimeslot(timeslotReference: string, time: string, fields: object = {}): Record<string, unknown> {
  return { timeslotReference, start: `2031-03-03T${time}`, productReference: practice.product, ...fields };
}

function book(place: Record<string, unknown>): Promise<Answer<{ booking: Booking } & Problem>> {
  return crm.post(`${practice.at}/bookings`, {
    reference: `${unique('booking')}@test`,
    customerReference: practice.customer,
    state: 'BOOKED',
    ...place,
  });
}

async function booked(place: Record<string, unknown>): Promise<Booking['participation']> {
  const { status, body, text } = await book(place);
  expect(status, text).toBe(201);
  return body.booking.participation;
}

const move = (reference: string, place: Record<string, unknown>): Promise<Answer> =>
  crm.post(practice.at + path`/bookings/${reference}`, place);

const ofCrm = (start: string, end: string, fields: object = {}): Promise<string> =>
  createAppointment(practice, { start: `2031-03-03T${start}`, end: `2031-03-03T${end}`, ...fields });

/** When the places are that are offered, in Berlin. */
async function offered(query: Record<string, string> = {}): Promise<string[]> {
  return (await listSlots(practice, query)).map(({ start }) =>
    Temporal.Instant.from(start).toZonedDateTimeISO('Europe/Berlin').toPlainTime().toString({ smallestUnit: 'minute' }),
  );
}

const taken = { status: 409, body: { code: 'slot.unavailable', reason: 'taken' } };
const except = (from: string, to: string): string[] => {
  const excluded = everyQuarter(from, to);
  return all.filter((time) => !excluded.includes(time));
};

async function timeslotsOf({ at, resource } = practice): Promise<Timeslot[]> {
  return (await crm.get<Timeslot[]>(at + path`/resource/${resource}/timeslots`, { query: day })).body;
}

describe('the buffers of a timeslot (interface 2.4)', () => {
  it('are returned, are none by default, and are part of its content', async () => {
    const timeslots = [{}, { bufferBefore: null, bufferAfter: null }, buffers].map((fields) =>
      newTimeslot(practice, fields),
    );
    const create = (list: object[]): Promise<Answer<Timeslot[]>> =>
      crm.post(`${practice.at}/timeslots`, { timeslots: list });
    const created = await create(timeslots);
    expect(created.status).toBe(201);
    const none = { bufferBefore: 0, bufferAfter: 0 };
    expect(created.body).toMatchObject([none, none, buffers]);
    const again = await create([{ ...timeslots[0], ...none }, timeslots[1]!, timeslots[2]!]);
    expect([again.status, again.body]).toStrictEqual([200, created.body]);
    for (const fields of [{ bufferBefore: 1 }, { bufferAfter: 1 }])
      expect(await create([{ ...timeslots[0], ...fields }])).toMatchObject({
        status: 409,
        body: { code: 'timeslot.reference_taken' },
      });
    const listed = await timeslotsOf();
    expect(listed).toHaveLength(3);
    expect(listed).toEqual(expect.arrayContaining(created.body));
  });

  it('change only if they are given', async () => {
    const reference = await createTimeslot(practice, buffers);
    const change = (fields: object): Promise<Answer<{ timeslot: Timeslot }>> =>
      crm.put(practice.at + path`/timeslots/${reference}`, fields);
    expect(await change({ defaultCapacity: 2 })).toMatchObject({ status: 200, body: { timeslot: buffers } });
    expect(await change({ bufferAfter: 0 })).toMatchObject({
      status: 200,
      body: { timeslot: { bufferBefore: 15, bufferAfter: 0 } },
    });
    expect(await change({ bufferBefore: 1_440 })).toMatchObject({
      status: 200,
      body: { timeslot: { bufferBefore: 1_440, bufferAfter: 0 } },
    });
  });

  it('are those of the opening hours from which it was made: others make another one', async () => {
    const sandbox = await createCrm({ sandbox: true });
    expect(await sandbox.put('/sandbox/clock', { now: '2031-03-03T06:00:00Z' })).toMatchObject({ status: 200 });
    const own = await createPractice(sandbox);
    const hoursOf = (fields: object) => ({ weekly: [newWeeklyWindow({ ...fields })], aheadDays: 1 });
    const madeBy = async (body: Record<string, unknown>): Promise<Timeslot> => {
      await setHours(own, body);
      const { body: list } = await sandbox.get<Timeslot[]>(own.at + path`/resource/${own.resource}/timeslots`, {
        query: day,
      });
      expect(list).toHaveLength(1);
      return list[0]!;
    };
    const plain = await madeBy(hoursOf({}));
    expect(plain).toMatchObject({ bufferBefore: 0, bufferAfter: 0 });
    expect(await madeBy(hoursOf({ bufferBefore: 0, bufferAfter: null }))).toStrictEqual(plain);
    const { hours } = await setHours(own, hoursOf(buffers));
    expect(hours.weekly).toMatchObject([buffers]);
    const buffered = await madeBy(hoursOf(buffers));
    expect(buffered).toMatchObject(buffers);
    expect(buffered.reference).not.toBe(plain.reference);
    const exception = { from: '2031-03-03', to: '2031-03-03', windows: [newWindow({ bufferAfter: 10 })] };
    expect(await madeBy({ ...hoursOf(buffers), exceptions: [exception] })).toMatchObject({
      bufferBefore: 0,
      bufferAfter: 10,
      fromHours: true,
    });
  });
});

describe('the distance between appointments (interface 10.1)', () => {
  it('is the larger one of two buffers, and what is nearer is taken', async () => {
    const timeslot = await createQuarters();
    expect(await offered()).toEqual(all);
    const { appointmentReference } = await booked(inTimeslot(timeslot, '09:30'));
    expect(Object.keys(await readAppointment(practice, appointmentReference)).join()).not.toMatch(/buffer/i);
    expect(await offered()).toEqual(except('09:00', '10:00'));
    for (const time of ['09:00', '09:15', '09:45', '10:00'])
      expect(await book(inTimeslot(timeslot, time))).toMatchObject(taken);
    for (const time of ['08:45', '10:15']) await booked(inTimeslot(timeslot, time));
  });

  it('is that of the place next to an appointment of the CRM, which has none and is never refused', async () => {
    const timeslot = await createQuarters();
    await ofCrm('09:30', '09:45');
    expect(await offered()).toEqual(except('09:00', '09:45'));
    expect(await book(inTimeslot(timeslot, '09:45'))).toMatchObject(taken);
    await booked(inTimeslot(timeslot, '10:00'));
    // However near to the others.
    const appointment = await ofCrm('10:15', '10:30');
    const times = { start: '2031-03-03T10:20', end: '2031-03-03T10:30' };
    expect(await crm.put(practice.at + path`/appointments/${appointment}`, times)).toMatchObject({ status: 200 });
  });

  it('is that of the timeslot at the time of the booking, whatever becomes of the timeslot and the appointment', async () => {
    const timeslot = await createQuarters();
    const { appointmentReference } = await booked(inTimeslot(timeslot, '09:30'));
    const none = { bufferBefore: 0, bufferAfter: 0 };
    expect(await crm.put(practice.at + path`/timeslots/${timeslot}`, none)).toMatchObject({ status: 200 });
    expect(await offered()).toEqual(except('09:15', '10:00'));
    const at = practice.at + path`/appointments/${appointmentReference}`;
    const times = { start: '2031-03-03T09:45', end: '2031-03-03T10:00' };
    expect(await crm.put(at, times)).toMatchObject({ status: 200 });
    expect(await offered()).toEqual(except('09:30', '10:15'));
    expect(await crm.delete(`${practice.at}/appointments`, { appointmentReference })).toMatchObject({ status: 200 });
    expect(await offered()).toEqual(all);
  });

  it('does not matter for another seat in an appointment, and reaches into a block', async () => {
    const timeslot = await createQuarters({ ...buffers, defaultCapacity: 3 });
    const { appointmentReference } = await booked(inTimeslot(timeslot, '09:30'));
    await ofCrm('09:45', '10:00');
    await createBlock(practice, { start: '2031-03-03T09:00', end: '2031-03-03T09:30' });
    expect(await listSlots(practice)).toContainEqual(expect.objectContaining({ appointmentReference, seats: 2 }));
    for (const place of [inTimeslot(timeslot, '09:30'), { appointmentReference }])
      await booked({ ...place, customerReference: await createCustomer() });
    // Its own buffer would end in the block.
    await createBlock(practice, { start: '2031-03-03T11:30', end: '2031-03-03T12:00' });
    await booked(inTimeslot(timeslot, '11:15'));
  });

  it('reaches into other timeslots of the resource, but not into those of others', async () => {
    const early = await createTimeslot(practice, { end: '2031-03-03T09:00', bufferAfter: 60 });
    await createTimeslot(practice, { start: '2031-03-03T09:00', end: '2031-03-03T11:00' });
    const other = { ...practice, resource: 'elsewhere@test' };
    await createTimeslot(other, { start: '2031-03-03T09:00', end: '2031-03-03T10:00' });
    await booked(inTimeslot(early, '08:30'));
    expect(await offered({ resourceRef: practice.resource })).toEqual(['10:00', '10:30']);
    expect(await offered({ resourceRef: other.resource })).toEqual(['09:00', '09:30']);
  });

  it('is kept by a move at its target, where the appointment that ends does not count', async () => {
    const timeslot = await createQuarters();
    const { reference } = await booked(inTimeslot(timeslot, '09:30'));
    await ofCrm('11:00', '11:15');
    for (const time of ['10:30', '11:15'])
      expect(await move(reference, inTimeslot(timeslot, time))).toMatchObject(taken);
    for (const time of ['09:45', '10:15'])
      expect(await move(reference, inTimeslot(timeslot, time))).toMatchObject({ status: 200 });
    expect(await offered()).toEqual(['08:00', '08:15', '08:30', '08:45', '09:00', '09:15', '09:30', '11:30', '11:45']);
  });

  it('is that of the timeslot into which a booking moves', async () => {
    const [plain, wide] = [await createQuarters({}), await createQuarters({ bufferBefore: 60, bufferAfter: 60 })];
    const { reference } = await booked(inTimeslot(plain, '08:00'));
    const places = async (timeslotReference: string): Promise<number> =>
      (await listSlots(practice)).filter((slot) => slot.timeslotReference === timeslotReference).length;
    expect(await places(plain)).toBe(15);
    expect(await move(reference, inTimeslot(wide, '10:00'))).toMatchObject({ status: 200 });
    // From 9:00 to 11:15, those of an hour before and after.
    expect(await places(plain)).toBe(16 - 9);
    expect(await move(reference, inTimeslot(plain, '10:00'))).toMatchObject({ status: 200 });
  });

  it('is kept if two book too near to each other at once: one of them wins', async () => {
    const timeslot = await createQuarters();
    const next = { start: '2031-03-03T12:00', end: '2031-03-03T13:00' };
    const [plain, wide] = [await createTimeslot(practice, next), await createTimeslot(practice, { bufferAfter: 45 })];
    for (const [one, other] of [
      [inTimeslot(timeslot, '08:00'), inTimeslot(timeslot, '08:30')],
      [inTimeslot(timeslot, '09:45'), inTimeslot(timeslot, '09:30')],
      [inTimeslot(wide, '11:30'), inTimeslot(plain, '12:00')],
    ] as const) {
      const answers = await Promise.all([book(one), book(other)]);
      const [winner, loser] = answers.toSorted((a, b) => a.status - b.status);
      expect(winner!.status, winner!.text).toBe(201);
      expect(loser).toMatchObject(taken);
    }
  });

  async function createCustomer(): Promise<string> {
    const customerReference = `${unique('guest')}@test`;
    const customer = { customerReference, providerReference: practice.provider, userName: 'Ada Byron' };
    expect(await crm.post(`${practice.at}/customers`, customer)).toMatchObject({ status: 201 });
    return customerReference;
  }
});
