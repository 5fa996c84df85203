import { type NewTimeslot, TimeslotState } from '@scheduling/contracts/calendar/v1';
import { patiently } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  allEnded,
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  freshReference,
  newParticipation,
  owned,
  readAppointments,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';

let calendar: CalendarUnderTest;

beforeAll(async () => {
  calendar = await startCalendar();
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

function newTimeslot(overrides: Partial<NewTimeslot> = {}): NewTimeslot {
  return {
    reference: freshReference('timeslot'),
    resourceReference: freshReference('resource'),
    start: '2099-06-01T08:00',
    end: '2099-06-01T12:00',
    raster: 30,
    defaultCapacity: 2,
    defaultAcceptBookings: true,
    state: TimeslotState.BOOKABLE,
    ...overrides,
  };
}

async function create(...timeslots: NewTimeslot[]) {
  return (await calendar.timeslots.createTimeslots({ ...owned, timeslots })).timeslots;
}

async function list(resourceReference: string, from = '2099-06-01T00:00', to = '2099-06-02T00:00') {
  return (await calendar.timeslots.listTimeslots({ ...owned, resourceReference, from, to })).timeslots;
}

const update = (timeslotReference: string, changes: object) =>
  calendar.timeslots.updateTimeslot({ ...owned, timeslotReference, ...changes }).then(({ timeslot }) => timeslot);

describe('creating timeslots', () => {
  it('returns the full records in the order of the request', async () => {
    const address = { kind: { $case: 'address' as const, value: { city: 'Bonn', countryCode: 'DE' } } };
    const requested = [
      newTimeslot({ reference: 'b@order', address }),
      newTimeslot({ reference: 'a@order', state: TimeslotState.CREATED, bufferBefore: 5, bufferAfter: 10 }),
    ];
    const created = await create(...requested);
    expect(created.map((timeslot) => timeslot.reference)).toEqual(['b@order', 'a@order']);
    expect(created[0]).toEqual({
      ...requested[0],
      start: new Date('2099-06-01T06:00:00Z'),
      end: new Date('2099-06-01T10:00:00Z'),
      address: { city: 'Bonn', countryCode: 'DE', street: null, number: null, zip: null },
      bufferBefore: 0,
      bufferAfter: 0,
      fromHours: false,
      appointmentsJson: Buffer.from(''),
      json: expect.any(Buffer) as Buffer,
    });
    expect(created[1]).toMatchObject({ state: TimeslotState.CREATED, bufferBefore: 5, bufferAfter: 10 });
  });

  it('reports every invalid field, and creates nothing', async () => {
    const good = newTimeslot();
    const timeslots = [good, newTimeslot({ raster: 241 }), newTimeslot({ end: '2099-06-01T08:00' })];
    const { category, code, errors } = await refusal(create(...timeslots, newTimeslot({ reference: good.reference! })));
    expect({ category, code }).toEqual({ category: 'invalid', code: 'timeslot.invalid' });
    expect(errors.map((error) => error.pointer)).toEqual([
      '/timeslots/1/raster',
      '/timeslots/2/end',
      '/timeslots/3/reference',
    ]);
    expect(await list(good.resourceReference)).toEqual([]);
  });

  it('names the one with an unknown state, and accepts 500 at once', async () => {
    const bad = [newTimeslot(), newTimeslot({ state: TimeslotState.UNSPECIFIED })];
    expect((await refusal(create(...bad))).errors).toMatchObject([{ pointer: '/timeslots/1/state' }]);
    const good = Array.from({ length: 500 }, () => newTimeslot());
    expect(await patiently(() => create(...good))).toHaveLength(500);
  });

  it('generates a missing reference; without a start it begins now, truncated to the minute', async () => {
    const before = Date.now();
    const [created] = await create(newTimeslot({ reference: undefined, start: undefined }));
    expect(created!.reference).toMatch(/^[^@]+@scheduling$/);
    expect(created!.start.getTime() % 60_000).toBe(0);
    expect(created!.start.getTime()).toBeGreaterThan(before - 60_000);
    expect(created!.start.getTime()).toBeLessThanOrEqual(Date.now());
  });

  it('again with the same content returns the existing ones, with other content creates nothing', async () => {
    const [first, second] = [newTimeslot(), newTimeslot()];
    await create(first);
    await update(first.reference!, { defaultCapacity: 9 });
    const again = await create({ ...first, start: '2099-06-01T06:00:00Z' }, second);
    expect(again.map((timeslot) => timeslot.defaultCapacity)).toEqual([9, 2]);

    const third = newTimeslot();
    expect(await refusal(create(third, { ...first, raster: 60 }))).toMatchObject({
      category: 'conflict',
      code: 'timeslot.reference_taken',
    });
    expect(await list(third.resourceReference)).toEqual([]);
  });

  it('of the same references by twenty concurrent requests in different orders creates each once', async () => {
    const timeslots = Array.from({ length: 300 }, () => newTimeslot());
    const answers = await allEnded(
      Array.from({ length: 20 }, (_, index) =>
        patiently(() => create(...(index % 2 === 0 ? timeslots : timeslots.toReversed()))),
      ),
    );
    for (const answer of answers) expect(answer).toHaveLength(300);
    expect(await list(timeslots[0]!.resourceReference)).toHaveLength(1);
  });
});

describe('the timeslots of a resource', () => {
  it('are those that overlap the period, by start', async () => {
    const resourceReference = freshReference('resource');
    const at = (start: string, end: string) =>
      newTimeslot({ resourceReference, reference: `${start}@list`, start, end });
    await create(
      at('2099-06-01T11:00', '2099-06-01T12:00'),
      at('2099-06-01T08:00', '2099-06-01T09:00'),
      at('2099-06-01T09:00', '2099-06-01T11:00'),
      at('2099-06-01T08:30', '2099-06-01T18:00'),
    );
    const found = await list(resourceReference, '2099-06-01T09:00', '2099-06-01T11:00');
    expect(found.map((timeslot) => timeslot.reference)).toEqual(['2099-06-01T08:30@list', '2099-06-01T09:00@list']);
  });

  it('are split into pages that together are the whole list', async () => {
    const resourceReference = freshReference('resource');
    await create(...Array.from({ length: 7 }, () => newTimeslot({ resourceReference })));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const query = { ...owned, resourceReference, from: '2099-06-01T00:00', to: '2099-06-02T00:00', limit: 3, cursor };
      const { timeslots, nextCursor } = await calendar.timeslots.listTimeslots(query);
      seen.push(...timeslots.map((timeslot) => timeslot.reference));
      cursor = nextCursor;
    } while (cursor !== undefined);
    expect(seen).toEqual((await list(resourceReference)).map((timeslot) => timeslot.reference));
    expect(new Set(seen).size).toBe(7);
  });

  it('include the appointments in their windows, even cancelled ones', async () => {
    const timeslot = newTimeslot();
    const { resourceReference } = timeslot;
    const overlapping = newTimeslot({ resourceReference, start: '2099-06-01T10:00' });
    await create(timeslot, overlapping);
    const inBoth = await createAppointment(calendar, { resourceReference });
    const early = await createAppointment(calendar, {
      resourceReference,
      start: '2099-06-01T08:00',
      end: '2099-06-01T08:30',
    });
    await createAppointment(calendar, { resourceReference, start: '2099-06-01T11:30', end: '2099-06-01T12:30' });
    await createAppointment(calendar);
    await calendar.appointments.cancelAppointment({ ...owned, appointmentReference: early });
    const customerReference = await createCustomer(calendar);
    await calendar.participations.createParticipation(
      newParticipation({ appointmentReference: inBoth, customerReference }),
    );
    const found = await list(resourceReference);
    const appointments = found.map((each) => readAppointments(each.appointmentsJson));
    expect(appointments.map((each) => each.map(({ reference }) => reference))).toEqual([[early, inBoth], [inBoth]]);
    expect(appointments[0]).toMatchObject([
      { state: 'CANCELLED' },
      { state: 'ACTIVE', participations: [{ state: 'BOOKED' }] },
    ]);
  });

  it('are rejected for a period that ends before it begins, and for an invalid cursor', async () => {
    expect((await refusal(list('r', '2099-06-02T00:00', '2099-06-01T00:00'))).errors).toMatchObject([
      { pointer: '/to' },
    ]);
    const query = { ...owned, resourceReference: 'r', from: '2099-06-01T00:00', to: '2099-06-02T00:00', cursor: 'x' };
    expect((await refusal(calendar.timeslots.listTimeslots(query))).errors).toMatchObject([{ pointer: '/cursor' }]);
  });
});

describe('updating a timeslot', () => {
  it('changes the given fields', async () => {
    const [before] = await create(newTimeslot());
    expect(await update(before!.reference, {})).toEqual(before);
    const changes = { end: '2099-06-01T13:00', defaultAcceptBookings: false, state: TimeslotState.CREATED };
    expect(await update(before!.reference, changes)).toEqual({
      ...before,
      ...changes,
      end: new Date('2099-06-01T11:00:00Z'),
      json: expect.any(Buffer) as Buffer,
    });
    expect(await update(before!.reference, { state: TimeslotState.BOOKABLE, defaultCapacity: 0 })).toMatchObject({
      defaultCapacity: 0,
    });
  });

  it('rejects a window that ends before it begins, and a raster that does not fit', async () => {
    const [{ reference } = { reference: '' }] = await create(newTimeslot());
    expect((await refusal(update(reference, { start: '2099-06-01T12:00' }))).errors).toMatchObject([
      { pointer: '/end' },
    ]);
    expect((await refusal(update(reference, { raster: 300 }))).errors).toMatchObject([{ pointer: '/raster' }]);
  });

  it('and deleting it are rejected if they would orphan an appointment that is not cancelled', async () => {
    const timeslot = newTimeslot();
    const reference = timeslot.reference!;
    await create(timeslot);
    const appointmentReference = await createAppointment(calendar, { resourceReference: timeslot.resourceReference });
    const orphaned = await refusal(update(reference, { end: '2099-06-01T10:30' }));
    expect(orphaned).toMatchObject({ category: 'conflict', code: 'timeslot.has_appointments' });
    expect(orphaned.message).toContain(appointmentReference);
    expect((await refusal(update(reference, { raster: 45 }))).code).toBe('timeslot.has_appointments');
    await update(reference, { raster: 60 });
    const remove = () => calendar.timeslots.deleteTimeslot({ ...owned, timeslotReference: reference });
    expect(await refusal(remove())).toMatchObject({ category: 'conflict', code: 'timeslot.has_appointments' });

    await calendar.appointments.cancelAppointment({ ...owned, appointmentReference });
    await update(reference, { end: '2099-06-01T10:30', raster: 45 });
    await remove();
    expect(await list(timeslot.resourceReference)).toEqual([]);
    expect((await refusal(remove())).code).toBe('timeslot.not_found');
  });

  it.each<[string, [string, string], { start?: string; end?: string; raster?: number }, boolean]>([
    ['keeps what still lies in the window', ['09:00', '09:30'], { start: '09:00', end: '10:00' }, false],
    ['orphans what begins before the new window', ['08:30', '09:00'], { start: '09:00' }, true],
    ['orphans what ends after the new window', ['11:30', '12:00'], { end: '11:45', raster: 15 }, true],
    ['keeps what is one slot of the new raster', ['09:00', '10:00'], { raster: 60 }, false],
    ['keeps what is several slots of the new raster', ['09:00', '10:00'], { raster: 15 }, false],
    ['orphans what does not begin on the new raster', ['08:30', '09:30'], { raster: 60 }, true],
    ['orphans what is shorter than the new raster', ['09:00', '09:30'], { raster: 60 }, true],
    ['orphans what a shifted start takes from the raster', ['09:00', '09:30'], { start: '07:50' }, true],
    ['leaves alone what never was on the raster', ['09:10', '09:25'], { raster: 60 }, false],
    ['leaves alone what never lay in the window', ['07:30', '08:30'], { start: '09:00' }, false],
  ])('%s', async (_, [start, end], { start: newStart, end: newEnd, raster }, isRefused) => {
    const at = (time: string): string => `2099-06-01T${time}`;
    const timeslot = newTimeslot();
    await create(timeslot);
    await createAppointment(calendar, {
      resourceReference: timeslot.resourceReference,
      start: at(start),
      end: at(end),
    });
    const changed = update(timeslot.reference!, { start: newStart && at(newStart), end: newEnd && at(newEnd), raster });
    const outcome = await changed.then(
      () => 'changed',
      async () => (await refusal(changed)).code,
    );
    expect(outcome).toBe(isRefused ? 'timeslot.has_appointments' : 'changed');
  });

  it('and deleting it never affect another provider or CRM', async () => {
    const [{ reference } = { reference: '' }] = await create(newTimeslot());
    for (const owner of [
      { crmId: 'one', providerReference: 'p2' },
      { crmId: 'two', providerReference: 'p1' },
    ]) {
      const key = { ...owner, timeslotReference: reference };
      expect((await refusal(calendar.timeslots.updateTimeslot({ ...key, raster: 10 }))).code).toBe(
        'timeslot.not_found',
      );
      expect((await refusal(calendar.timeslots.deleteTimeslot(key))).code).toBe('timeslot.not_found');
    }
    expect((await update(reference, {})).raster).toBe(30);
  });
});

it('causes no deadlock', async () => {
  expect(await calendar.countDeadlocks()).toBe(0);
});
