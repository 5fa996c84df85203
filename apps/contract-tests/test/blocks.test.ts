import { eventually } from '@scheduling/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Answer, path, type Problem, readPages } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  createTimeslot,
  newAppointment,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { apiInfo, type Booking, listSlots, noConflicts, type Slot } from './answers.ts';
import { readFeed } from './feed.ts';
import { type Block, type Blocked, blocksAt, createBlock, createBlocks, newBlock } from './blocks.ts';

/** A Monday, 7 o'clock in Berlin. */
const now = '2031-03-03T06:00:00Z';
const today = { from: '2031-03-03T00:00', to: '2031-03-04T00:00' };
/** From 9:00 to 10:15 in Berlin. */
const meeting = { start: '2031-03-03T09:00', end: '2031-03-03T10:15' };

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

const post = (fields: Record<string, unknown>, at = blocksAt(practice)): Promise<Answer<Blocked & Problem>> =>
  crm.post(at, fields);

const blockAt = (reference: string, { at, resource } = practice): string =>
  blocksAt({ at, resource }) + path`/${reference}`;

async function listBlocks(period: { from: string; to: string }): Promise<string[]> {
  const { status, body, text } = await crm.get<Block[]>(blocksAt(practice), { query: period });
  expect(status, text).toBe(200);
  return body.map(({ reference }) => reference);
}

function book(place: Record<string, unknown>): Promise<Answer<{ booking: Booking } & Problem>> {
  return crm.post(`${practice.at}/bookings`, {
    reference: `${unique('booking')}@test`,
    customerReference: practice.customer,
    state: 'BOOKED',
    ...place,
  });
}

/** A place of today. */
function inTimeslot(timeslotReference: string, time: string, fields: object = {}): Record<string, unknown> {
  return { timeslotReference, start: `2031-03-03T${time}`, productReference: practice.product, ...fields };
}

async function booked(place: Record<string, unknown>): Promise<Booking> {
  const { status, body, text } = await book(place);
  expect(status, text).toBe(201);
  return body.booking;
}

const change = (reference: string, fields: object): Promise<Answer<{ booking: Booking }>> =>
  crm.post(practice.at + path`/bookings/${reference}`, fields);

const unavailable = (reason: string) => ({ status: 409, body: { code: 'slot.unavailable', reason } });
const blocked = unavailable('blocked');

/** The times at which something can be booked today, in Berlin. */
async function offered(query: Record<string, string | number | boolean> = {}): Promise<string[]> {
  return timesOf(await listSlots(practice, query));
}

function timesOf(slots: Slot[]): string[] {
  return slots.map(({ start }) =>
    Temporal.Instant.from(start).toZonedDateTimeISO('Europe/Berlin').toPlainTime().toString({ smallestUnit: 'minute' }),
  );
}

async function createCustomer(): Promise<string> {
  const customerReference = `${unique('guest')}@test`;
  const customer = { customerReference, providerReference: practice.provider, userName: 'Ada Byron' };
  expect(await crm.post(`${practice.at}/customers`, customer)).toMatchObject({ status: 201 });
  return customerReference;
}

describe('a block (interface 15)', () => {
  it('is returned in full, also when it is created again, and its reference is taken by other content', async () => {
    const fields = newBlock(meeting);
    const created = await post(fields);
    expect(created.status, created.text).toBe(201);
    expect(created.body).toStrictEqual({
      'api-info': apiInfo,
      block: {
        ...fields,
        resourceReference: practice.resource,
        start: '2031-03-03T08:00:00Z',
        end: '2031-03-03T09:15:00Z',
      },
      conflicts: noConflicts,
    });
    for (const same of [{}, { start: '2031-03-03T08:00Z', end: '2031-03-03T14:15:00+05:00' }]) {
      const again = await post({ ...fields, ...same });
      expect([again.status, again.body]).toStrictEqual([200, created.body]);
    }

    const taken = { status: 409, body: { code: 'block.reference_taken' } };
    for (const other of [{ start: '2031-03-03T09:01' }, { end: '2031-03-03T10:16' }, { note: 'Other' }, { note: null }])
      expect(await post({ ...fields, ...other })).toMatchObject(taken);
    const [elsewhere, neighbour] = [{ ...practice, resource: 'elsewhere@test' }, await createPractice(crm)];
    for (const at of [elsewhere, { ...neighbour, resource: practice.resource }])
      expect(await post(fields, blocksAt(at))).toMatchObject(taken);
    expect((await crm.get<Block[]>(blocksAt(practice), { query: today })).body).toStrictEqual([created.body.block]);
  });

  it('needs neither a reference nor a note', async () => {
    const created = [];
    for (const fields of [{}, { reference: null, note: null }, { reference: '', note: '' }])
      created.push(
        (await createBlock(practice, { reference: undefined, note: undefined, ...meeting, ...fields })).block,
      );
    expect(created).toEqual(created.map(() => expect.objectContaining({ note: null }) as unknown));
    for (const { reference } of created) expect(reference).toMatch(/@scheduling$/);
    expect(new Set(created.map(({ reference }) => reference)).size).toBe(3);
  });

  it.each([
    ['ends when it starts', { end: meeting.start }],
    ['ends before it starts', { end: '2031-03-03T07:59:59Z' }],
  ])('is rejected if it %s', async (_, fields) => {
    const refused = await post(newBlock({ ...meeting, ...fields }));
    expect(refused).toMatchObject({ status: 400, body: { code: 'block.invalid', errors: [{ pointer: '/end' }] } });
    expect(refused.body.errors).toHaveLength(1);
    expect(await listBlocks(today)).toEqual([]);
  });

  it('is deleted only where it is, and once', async () => {
    const { block } = await createBlock(practice);
    const [neighbour, stranger] = [await createPractice(crm), await createPractice(await createCrm())];
    const missing = { status: 404, body: { code: 'block.not_found' } };
    const { at, resource } = practice;
    for (const place of [
      { at, resource: 'elsewhere@test' },
      { at: neighbour.at, resource },
    ])
      expect(await crm.delete(blocksAt(place) + path`/${block.reference}`)).toMatchObject(missing);
    expect(
      await stranger.crm.delete(blocksAt({ at: stranger.at, resource }) + path`/${block.reference}`),
    ).toMatchObject(missing);
    const deleted = await crm.delete(blockAt(block.reference));
    expect([deleted.status, deleted.text]).toEqual([204, '']);
    expect(await crm.delete(blockAt(block.reference))).toMatchObject(missing);
    // Its reference can be used again.
    await createBlock(practice, { reference: block.reference, note: 'Other' });
  });

  it('is 404 under a provider that does not exist', async () => {
    const nowhere = blocksAt({ at: '/provider/nothing%40test', resource: practice.resource });
    for (const answer of [
      await crm.post(nowhere, newBlock()),
      await crm.get(nowhere, { query: today }),
      await crm.delete(`${nowhere}/block%40test`),
    ])
      expect(answer).toMatchObject({ status: 404, body: { code: 'provider.not_found' } });
  });

  it('is one of at most 1,000 of a resource that are not over', async () => {
    // Those that are over do not count, and neither do those of other resources.
    await createBlock(practice, { start: '2031-03-02T09:00', end: now });
    const reference = await createBlocks(practice, 1_000);
    const limit = { status: 409, body: { code: 'block.limit_reached' } };
    expect(await post(newBlock())).toMatchObject(limit);
    await createBlock(practice, { start: '2031-03-01T09:00', end: now });
    expect((await post(newBlock({ reference }))).status).toBe(200);
    await createBlock({ ...practice, resource: 'elsewhere@test' });
    expect(await crm.delete(blockAt(reference))).toMatchObject({ status: 204 });
    await createBlock(practice);
    expect(await post(newBlock())).toMatchObject(limit);
    await setClock('2031-09-01T17:00:00Z');
    await createBlock(practice, { start: '2031-09-02T09:00', end: '2031-09-02T10:00' });
  });
});

describe('the list of blocks (interface 15)', () => {
  it('has those that overlap the period, by start', async () => {
    const [first, long, last] = [
      { start: '2031-03-03T08:00', end: '2031-03-03T09:00' },
      { start: '2031-03-01T00:00', end: '2031-03-10T00:00' },
      { start: '2031-03-03T10:00', end: '2031-03-03T11:00' },
    ];
    const references = [];
    for (const fields of [last, first, long]) references.push((await createBlock(practice, fields)).block.reference);
    await createBlock({ ...practice, resource: 'elsewhere@test' }, first);
    const [lastReference, firstReference, longReference] = references;
    expect(await listBlocks(today)).toEqual([longReference, firstReference, lastReference]);
    expect(await listBlocks({ from: '2031-03-03T09:00', to: '2031-03-03T10:00' })).toEqual([longReference]);
    expect(await listBlocks({ from: '2031-03-03T08:59', to: '2031-03-03T10:01' })).toEqual([
      longReference,
      firstReference,
      lastReference,
    ]);
    expect(await listBlocks({ from: '2031-03-10T00:00', to: '2031-03-11T00:00' })).toEqual([]);
    await crm.delete(blockAt(longReference!));
    expect(await listBlocks(today)).toEqual([firstReference, lastReference]);
  });

  it('comes in pages, also where several start at once', async () => {
    for (let count = 0; count < 4; count += 1) await createBlock(practice, meeting);
    for (let count = 0; count < 3; count += 1) await createBlock(practice, { ...meeting, start: '2031-03-03T10:00' });
    const complete = await listBlocks(today);
    expect(complete).toHaveLength(7);
    const pages = await readPages<Block>(crm, blocksAt(practice), { ...today, limit: '3' });
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1]);
    expect(pages.flat().map(({ reference }) => reference)).toEqual(complete);
  });

  it('needs both ends of the period, and an end after its start', async () => {
    const incomplete = await crm.get<Problem>(blocksAt(practice));
    expect(incomplete).toMatchObject({ status: 400, body: { code: 'request.invalid' } });
    expect(incomplete.body.errors?.map(({ parameter }) => parameter).sort()).toEqual(['from', 'to']);
    for (const to of [today.from, '2031-03-02T00:00']) {
      const refused = await crm.get<Problem>(blocksAt(practice), { query: { ...today, to } });
      expect(refused).toMatchObject({ status: 400, body: { code: 'block.invalid', errors: [{ parameter: 'to' }] } });
    }
  });
});

describe('the conflicts of a block (interface 15)', () => {
  it('are the active appointments that overlap it and are not over, however they were made, by start', async () => {
    const timeslot = await createTimeslot(practice, { defaultCapacity: 2 });
    const at = (start: string, end: string, fields: object = {}): Promise<string> =>
      createAppointment(practice, { start: `2031-03-03T${start}`, end: `2031-03-03T${end}`, ...fields });
    const { appointmentReference: byBooking } = (await booked(inTimeslot(timeslot, '09:30'))).participation;
    const left = (await booked(inTimeslot(timeslot, '09:00'))).participation;
    expect(await crm.post(practice.at + path`/participations/${left.reference}`, { state: 'CANCELED' })).toMatchObject({
      status: 200,
    });
    const late = await at('10:00', '11:00');
    const around = await at('06:30', '12:00');
    const cancelled = await at('09:00', '10:00');
    await crm.delete(`${practice.at}/appointments`, { appointmentReference: cancelled });
    // Before, after, over, and elsewhere.
    await at('08:00', '09:00');
    await at('10:15', '11:00');
    await createAppointment(practice, { start: '2031-03-03T05:00', end: now });
    await at('09:00', '10:00', { resourceReference: 'elsewhere@test' });
    const fields = newBlock({ start: '2031-03-03T09:00', end: '2031-03-03T10:15' });
    const conflicts = { appointmentReferences: [around, byBooking, late], total: 3 };
    expect((await post(fields)).body.conflicts).toStrictEqual(conflicts);

    await crm.delete(`${practice.at}/appointments`, { appointmentReference: around });
    const again = await post(fields);
    expect(again).toMatchObject({ status: 200 });
    expect(again.body.conflicts).toStrictEqual({ appointmentReferences: [byBooking, late], total: 2 });
    await setClock('2031-03-03T09:00:00Z');
    expect((await post(fields)).body.conflicts).toStrictEqual({ appointmentReferences: [late], total: 1 });
  });

  it('are none if the block is over', async () => {
    await createAppointment(practice, { start: '2031-03-03T06:00', end: '2031-03-03T07:00' });
    const { conflicts } = await createBlock(practice, { start: '2031-03-03T06:00', end: '2031-03-03T07:00' });
    expect(conflicts).toStrictEqual(noConflicts);
  });

  it('name whatever is booked at the moment at which the block is made, and nothing is booked later', async () => {
    for (const before of [0, 1, 2, 3]) {
      const own = { ...practice, resource: `${unique('room')}@test` };
      const timeslotReference = await createTimeslot(own, { defaultCapacity: 2 });
      const places = ['09:00', '09:30', '10:00'].map((time) => inTimeslot(timeslotReference, time));
      const first = places.slice(0, before).map(book);
      const blocking = createBlock(own, meeting);
      const last = places.slice(before).map(book);
      const { conflicts } = await blocking;
      const answers = await Promise.all([...first, ...last]);
      const [made, refused] = [201, 409].map((status) => answers.filter((answer) => answer.status === status));
      expect([...made!, ...refused!]).toHaveLength(places.length);
      for (const answer of refused!) expect(answer).toMatchObject(blocked);
      expect(conflicts.appointmentReferences.toSorted()).toEqual(
        made!.map(({ body }) => body.booking.participation.appointmentReference).toSorted(),
      );
      for (const place of places) expect(await book(place)).toMatchObject(blocked);
    }
  });
});

describe('what overlaps a block (interface 10.1, 14)', () => {
  it('is a free place that is neither listed nor booked until the block is deleted', async () => {
    const timeslot = await createTimeslot(practice);
    const free = ['08:00', '08:30', '09:00', '09:30', '10:00', '10:30', '11:00', '11:30'];
    expect(await offered()).toEqual(free);
    const { block } = await createBlock(practice, meeting);
    expect(await offered()).toEqual(['08:00', '08:30', '10:30', '11:00', '11:30']);
    expect(await offered({ duration: 60 })).toEqual(['08:00', '10:30', '11:00']);
    for (const time of ['09:00', '10:00']) expect(await book(inTimeslot(timeslot, time))).toMatchObject(blocked);
    expect(await book(inTimeslot(timeslot, '08:30', { duration: 60 }))).toMatchObject(blocked);
    // It ends when the block begins.
    await booked(inTimeslot(timeslot, '08:30'));
    expect(await crm.delete(blockAt(block.reference))).toMatchObject({ status: 204 });
    expect(await offered()).toEqual(free.filter((time) => time !== '08:30'));
    await booked(inTimeslot(timeslot, '10:00'));
    await createBlock(practice, { start: '2000-01-01T00:00', end: '2100-01-01T00:00' });
    expect(await offered()).toEqual([]);
    expect(await book(inTimeslot(timeslot, '11:00'))).toMatchObject(blocked);
  });

  it('is not what belongs to another resource, or to another provider', async () => {
    const timeslot = await createTimeslot(practice, { start: '2031-03-03T09:00', end: '2031-03-03T10:00' });
    await createBlock({ ...practice, resource: 'elsewhere@test' }, meeting);
    await createBlock({ ...(await createPractice(crm)), resource: practice.resource }, meeting);
    expect(await offered()).toEqual(['09:00', '09:30']);
    await booked(inTimeslot(timeslot, '09:00'));
  });

  it('is a class of the CRM, which is neither listed nor booked', async () => {
    const fields = { start: '2031-03-03T09:00', end: '2031-03-03T10:00', capacity: 5, acceptBookings: true };
    const appointmentReference = await createAppointment(practice, fields);
    expect(await offered()).toEqual(['09:00']);
    const { block, conflicts } = await createBlock(practice, { ...meeting, start: '2031-03-03T09:59' });
    expect(conflicts.appointmentReferences).toEqual([appointmentReference]);
    expect(await offered()).toEqual([]);
    expect(await book({ appointmentReference })).toMatchObject(blocked);
    await crm.delete(blockAt(block.reference));
    await booked({ appointmentReference });
  });

  it('is an appointment that a booking has made, in which nobody else can book', async () => {
    const timeslot = await createTimeslot(practice, { defaultCapacity: 2 });
    const place = inTimeslot(timeslot, '09:30');
    const { appointmentReference } = (await booked(place)).participation;
    await createBlock(practice, meeting);
    expect(await offered()).toEqual(['08:00', '08:30', '10:30', '11:00', '11:30']);
    const customerReference = await createCustomer();
    for (const seat of [place, { appointmentReference }])
      expect(await book({ ...seat, customerReference })).toMatchObject(blocked);
  });

  it('is no target of a move, and what is there can move away', async () => {
    const timeslot = await createTimeslot(practice, { defaultCapacity: 1 });
    const appointmentReference = await createAppointment(practice, {
      start: '2031-03-03T09:00',
      end: '2031-03-03T09:30',
      capacity: 5,
      acceptBookings: true,
    });
    const { reference: outside } = (await booked(inTimeslot(timeslot, '08:00'))).participation;
    const { reference: inside } = (await booked(inTimeslot(timeslot, '09:30'))).participation;
    await createBlock(practice, meeting);
    for (const target of [inTimeslot(timeslot, '10:00'), { appointmentReference }])
      expect(await change(outside, target)).toMatchObject(blocked);
    expect(await change(inside, inTimeslot(timeslot, '10:00'))).toMatchObject(blocked);
    expect(await change(inside, inTimeslot(timeslot, '10:30'))).toMatchObject({
      status: 200,
      body: { booking: { slot: { start: '2031-03-03T09:30:00Z' } } },
    });
  });

  it('is in hours and timeslots that do not change', async () => {
    await createTimeslot(practice);
    const timeslots = practice.at + path`/resource/${practice.resource}/timeslots`;
    const before = await crm.get(timeslots, { query: today });
    await createBlock(practice, meeting);
    expect((await crm.get(timeslots, { query: today })).body).toStrictEqual(before.body);
  });
});

describe('what a block does not change (interface 15)', () => {
  it('is what has been booked: it stays, holds and requests are confirmed, and a repetition returns it', async () => {
    const timeslot = await createTimeslot(practice);
    const request = { reference: `${unique('booking')}@test`, ...inTimeslot(timeslot, '09:00') };
    await booked(request);
    const { reference: hold } = (await booked(inTimeslot(timeslot, '09:30', { state: 'RESERVED' }))).participation;
    const { reference: asked } = (await booked(inTimeslot(timeslot, '10:00', { state: 'REQUESTED' }))).participation;
    const { conflicts } = await createBlock(practice, meeting);
    expect(conflicts.total).toBe(3);
    expect(await book(request)).toMatchObject({
      status: 200,
      body: { booking: { participation: { state: 'BOOKED' } } },
    });
    expect(await change(hold, { state: 'BOOKED' })).toMatchObject({ status: 200 });
    const participation = (reference: string): string => practice.at + path`/participations/${reference}`;
    expect(await crm.post(participation(asked), { state: 'BOOKED' })).toMatchObject({ status: 200 });
    expect(await crm.post(participation(asked), { state: 'CANCELED' })).toMatchObject({ status: 200 });
    expect(await book(inTimeslot(timeslot, '10:00'))).toMatchObject(blocked);
  });

  it('is the feed of events', async () => {
    const { block } = await createBlock(practice, meeting);
    expect(await crm.delete(blockAt(block.reference))).toMatchObject({ status: 204 });
    const appointment = await createAppointment(practice);
    const feed = await eventually(async () => {
      const events = await readFeed(crm);
      expect(JSON.stringify(events)).toContain(appointment);
      return events;
    });
    expect(feed.filter((event) => JSON.stringify(event).includes('block'))).toEqual([]);
  });

  it('is what the CRM creates and changes itself', async () => {
    await createBlock(practice, meeting);
    const appointment = await createAppointment(practice, { ...meeting, acceptBookings: true });
    await createParticipation(practice, appointment);
    const over = { reference: `${unique('more')}@test`, appointmentReference: appointment, state: 'BOOKED' };
    expect(
      await crm.post(
        `${practice.at}/participations`,
        { ...over, customerReference: await createCustomer() },
        { query: { ignoreCapacity: true } },
      ),
    ).toMatchObject({ status: 201 });
    const { reference: _reference, start: _start, end: _end, ...series } = newAppointment(practice);
    const answer = await crm.post(`${practice.at}/appointments`, {
      ...series,
      series_data: { from: '2031-03-03T09:00', to: '2031-03-03T10:00', raster: 30 },
    });
    expect(answer.status).toBe(201);
    const other = await createAppointment(practice, { start: '2031-03-03T11:00', end: '2031-03-03T12:00' });
    expect(await crm.put(practice.at + path`/appointments/${other}`, meeting)).toMatchObject({ status: 200 });
    await createTimeslot(practice);
  });
});

describe('slot.unavailable says blocked (interface 10.2)', () => {
  it('after closed, off_raster, too_soon and too_late', async () => {
    const hidden = await createTimeslot(practice, { state: 'CREATED' });
    const timeslot = await createTimeslot(practice);
    await createBlock(practice, meeting);
    expect(await book(inTimeslot(hidden, '09:00'))).toMatchObject(unavailable('closed'));
    expect(await book(inTimeslot(timeslot, '09:05'))).toMatchObject(unavailable('off_raster'));
    const rules = `${practice.at}/booking-rules`;
    expect((await crm.put(rules, { minimumNotice: 170 })).status).toBe(200);
    expect(await book(inTimeslot(timeslot, '09:30'))).toMatchObject(unavailable('too_soon'));
    expect(await book(inTimeslot(timeslot, '10:00'))).toMatchObject(blocked);
    await setClock('2031-03-01T06:00:00Z');
    expect((await crm.put(rules, { minimumNotice: 0, horizon: 1 })).status).toBe(200);
    expect(await book(inTimeslot(timeslot, '10:00'))).toMatchObject(unavailable('too_late'));
  });

  it('after private, and before taken and full', async () => {
    const timeslot = await createTimeslot(practice);
    const ofCrm = { start: '2031-03-03T09:00', end: '2031-03-03T10:00' };
    const secret = await createAppointment(practice, { ...ofCrm, acceptBookings: false });
    const full = await createAppointment(practice, { ...ofCrm, acceptBookings: true, capacity: 1 });
    await createParticipation(practice, full);
    await createBlock(practice, meeting);
    const customerReference = await createCustomer();
    expect(await book({ appointmentReference: secret, customerReference })).toMatchObject(unavailable('private'));
    expect(await book({ appointmentReference: full, customerReference })).toMatchObject(blocked);
    expect(await book(inTimeslot(timeslot, '09:00', { customerReference }))).toMatchObject(blocked);
  });
});
