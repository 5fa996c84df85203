import { beforeEach, describe, expect, it } from 'vitest';
import { path, untilServed } from '@scheduling/test-stack/client';
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
import { query } from '@scheduling/test-stack/databases';
import { type FeedEvent, readFeed, readFeedPage, waitForFeed } from './feed.ts';

let crm: TestCrm;
let practice: Practice;
beforeEach(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

const typesOf = (events: FeedEvent[]): string[] => events.map(({ type }) => type);

describe('the events of a CRM (interface 6.1)', () => {
  it('say what happened to bookings, appointments and customers, in order', async () => {
    const { provider: providerReference, customer: customerReference } = practice;
    const [first, second] = [
      await createTimeslot(practice),
      await createTimeslot(practice, { start: '2031-03-10T14:00', end: '2031-03-10T15:00' }),
    ];
    const reference = `${unique('b')}@test`;
    const booking = {
      reference,
      timeslotReference: first,
      start: '2031-03-03T08:00',
      productReference: practice.product,
      state: 'RESERVED',
    };
    expect(await crm.post(`${practice.at}/bookings`, booking)).toMatchObject({ status: 201 });
    // Nothing says whether the customer or the appointment was created first.
    const [opened, reserved] = (await waitForFeed(crm, 3)).filter(({ type }) => type !== 'customer.created');
    const actor = `crm:${crm.key.slice(0, 12)}`;
    const common = { actor, providerReference };
    expect(opened).toEqual({
      ...common,
      id: expect.any(String) as string,
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
      type: 'appointment.created',
      data: {
        id: expect.any(String) as string,
        reference: expect.any(String) as string,
        appointmentId: null,
        appointmentReference: null,
        previousAppointmentId: null,
        customerReference: null,
        state: 'ACTIVE',
        previousState: null,
        version: 1,
        capacity: 1,
        ignoreCapacity: null,
        start: '2031-03-03T07:00:00Z',
        expiresAt: null,
      },
    });
    expect(Math.abs(Date.parse(opened!.timestamp) - Date.now())).toBeLessThan(60_000);
    expect(reserved).toMatchObject({
      ...common,
      type: 'participation.created',
      data: {
        reference,
        appointmentReference: opened!.data.reference,
        customerReference: null,
        state: 'RESERVED',
        previousState: null,
        version: 1,
        start: '2031-03-03T07:00:00Z',
      },
    });
    expect(Date.parse(reserved!.data.expiresAt!)).toBeGreaterThan(Date.parse(reserved!.timestamp));

    const at = practice.at + path`/bookings/${reference}`;
    expect(await crm.post(at, { state: 'BOOKED', customerReference })).toMatchObject({ status: 200 });
    expect(await crm.post(at, { timeslotReference: second, start: '2031-03-10T14:30' })).toMatchObject({ status: 200 });
    expect(await crm.post(practice.at + path`/participations/${reference}`, { state: 'CANCELED' })).toMatchObject({
      status: 200,
    });
    const events = await waitForFeed(crm, 9);
    const ofBooking = events.filter(({ data }) => data.reference === reference);
    const [created, confirmed, moved, canceled] = ofBooking;
    expect(typesOf(ofBooking)).toEqual([
      'participation.created',
      'participation.changed',
      'participation.moved',
      'participation.changed',
    ]);
    expect(new Set(ofBooking.map(({ data }) => data.id)).size).toBe(1);
    expect(ofBooking.map(({ data }) => data.version)).toEqual([1, 2, 3, 4]);
    expect(created!.data).toMatchObject({ state: 'RESERVED', expiresAt: null });
    expect(confirmed).toMatchObject({
      ...common,
      data: { state: 'BOOKED', previousState: 'RESERVED', customerReference },
    });
    expect(moved).toMatchObject({
      ...common,
      data: { state: 'BOOKED', previousState: 'BOOKED', customerReference, start: '2031-03-10T13:30:00Z' },
    });
    expect(canceled).toMatchObject({
      ...common,
      data: { state: 'CANCELED', previousState: 'BOOKED', customerReference },
    });
    expect(typesOf(events).filter((type) => type === 'appointment.created')).toHaveLength(2);
    expect(events.findIndex(({ type }) => type === 'customer.created')).toBeLessThan(events.indexOf(confirmed!));
    const appointment = events.find(
      ({ type, data }) => type === 'appointment.created' && data.reference === moved!.data.appointmentReference,
    );
    expect(events.indexOf(appointment!)).toBeLessThan(events.indexOf(moved!));
  });

  it('include what is done to an appointment as a whole', async () => {
    const reference = await createAppointment(practice);
    await createParticipation(practice, reference);
    await createParticipation(practice, reference, { state: 'REQUESTED' });
    expect(await crm.delete(`${practice.at}/appointments`, { appointmentReference: reference })).toMatchObject({
      status: 200,
    });
    expect(
      await crm.delete(`${practice.at}/appointments/withoutNotification`, { appointmentReference: reference }),
    ).toMatchObject({ status: 204 });
    const events = await waitForFeed(crm, 10);
    const ofParticipations = events.filter(({ type }) => type === 'participation.created');
    expect(ofParticipations).toHaveLength(2);
    const [{ data: appointment }] = events.filter(({ type }) => type === 'appointment.created') as [FeedEvent];
    expect(events.filter(({ data }) => data.id === appointment.id)).toMatchObject([
      { type: 'appointment.created', data: { state: 'ACTIVE', previousState: null } },
      { type: 'appointment.cancelled', data: { state: 'CANCELLED', previousState: 'ACTIVE' } },
      { type: 'appointment.deleted', data: { state: null, previousState: 'CANCELLED', reference: null, start: null } },
    ]);
    for (const { data } of ofParticipations) {
      expect(events.filter((event) => event.data.id === data.id)).toMatchObject([
        { type: 'participation.created' },
        { type: 'participation.changed', data: { state: 'CANCELED' } },
        {
          type: 'participation.removed',
          data: { state: null, previousState: 'CANCELED', reference: null, appointmentReference: null },
        },
      ]);
    }
  });

  it('include every update of an appointment that changes something, also if nobody takes part', async () => {
    const reference = await createAppointment(practice);
    const update = async (change: object): Promise<void> => {
      expect(await crm.put(practice.at + path`/appointments/${reference}`, change)).toMatchObject({ status: 200 });
    };
    await update({ capacity: 7 });
    await update({ capacity: 7 });
    await createParticipation(practice, reference);
    await update({ start: '2031-03-03T15:00', end: '2031-03-03T16:00' });
    expect(await crm.delete(`${practice.at}/appointments`, { appointmentReference: reference })).toMatchObject({
      status: 200,
    });
    expect(
      await crm.delete(`${practice.at}/appointments/withoutNotification`, { appointmentReference: reference }),
    ).toMatchObject({ status: 204 });
    const events = await waitForFeed(crm, 10);
    const ofAppointment = events.filter(({ type }) => type.startsWith('appointment.'));
    const active = { state: 'ACTIVE', previousState: 'ACTIVE' };
    expect(ofAppointment).toMatchObject([
      { type: 'appointment.created', data: { version: 1 } },
      {
        type: 'appointment.changed',
        actor: `crm:${crm.key.slice(0, 12)}`,
        providerReference: practice.provider,
        data: { version: 2, ...active },
      },
      { type: 'appointment.changed', data: { version: 3, ...active } },
      { type: 'appointment.cancelled', data: { version: 4, state: 'CANCELLED', previousState: 'ACTIVE' } },
      { type: 'appointment.deleted', data: { version: 5, state: null, previousState: 'CANCELLED' } },
    ]);
    expect(typesOf(events.filter(({ type }) => type.startsWith('participation.')))).toEqual([
      'participation.created',
      'participation.changed',
      'participation.changed',
      'participation.removed',
    ]);
  });

  it('no longer lead to a person who was erased', async () => {
    const reference = await createAppointment(practice, { start: '2020-03-03T09:00', end: '2020-03-03T10:00' });
    await createParticipation(practice, reference);
    const before = await waitForFeed(crm, 3);
    expect(before.find(({ type }) => type === 'participation.created')!.data).toMatchObject({
      customerReference: practice.customer,
    });
    expect(await crm.delete(practice.at + path`/customers/${practice.customer}`)).toMatchObject({ status: 204 });
    const after = await waitForFeed(crm, 4);
    expect(after.map(({ id }) => id).slice(0, 3)).toEqual(before.map(({ id }) => id));
    expect(after.find(({ type }) => type === 'participation.created')!.data).toMatchObject({
      reference: null,
      appointmentReference: reference,
      customerReference: null,
      state: 'BOOKED',
    });
    expect(after.filter(({ type }) => type.startsWith('customer.'))).toMatchObject([
      { type: 'customer.created', data: { reference: null, version: 1 } },
      { type: 'customer.deleted', data: { reference: null, version: 2 } },
    ]);
    expect(JSON.stringify(after)).not.toContain(practice.customer);
  });
});

describe('the position in the feed', () => {
  const rename = async (text: string): Promise<void> => {
    expect(await crm.put(practice.at + path`/customers/${practice.customer}`, { userName: text })).toMatchObject({
      status: 200,
    });
  };

  it('is in the link, also at the end, from which new events are read', async () => {
    const [created] = await waitForFeed(crm, 1);
    const page = await readFeedPage(crm, { after: 'end' });
    expect(page).toEqual({ events: [], next: { after: created!.id } });
    expect(await readFeedPage(crm, page.next)).toEqual(page);
    await rename('New');
    const [changed] = await waitForFeed(crm, 1, page.next);
    expect(changed).toMatchObject({ type: 'customer.changed', data: { reference: practice.customer, version: 2 } });
    expect(await readFeed(crm)).toEqual([created, changed]);
  });

  it('is the beginning in a CRM in which nothing has happened', async () => {
    const empty = await createCrm();
    for (const position of [{ after: 'end', limit: '5' }, { limit: '5' }])
      expect(await readFeedPage(empty, position as Record<string, string>)).toEqual({
        events: [],
        next: { limit: '5' },
      });
  });

  it('goes on behind what the filters leave out, with pages of any length', async () => {
    const other = await createPractice(crm);
    for (const text of ['A', 'B', 'C']) await rename(text);
    const all = await waitForFeed(crm, 5);
    const ofPractice = all.filter(({ providerReference }) => providerReference === practice.provider);
    const changes = all.filter(({ type }) => type === 'customer.changed');
    for (const limit of ['1', '2', '1000']) {
      expect(await readFeed(crm, { limit })).toEqual(all);
      expect(await readFeed(crm, { limit, providerRef: practice.provider })).toEqual(ofPractice);
      expect(await readFeed(crm, { limit, types: 'customer.changed' })).toEqual(changes);
      expect(
        await readFeed(crm, { limit, types: 'customer.created,customer.changed', providerRef: other.provider }),
      ).toMatchObject([{ type: 'customer.created' }]);
    }
    const nothing = await readFeedPage(crm, { types: 'mail.failed' });
    expect(nothing).toEqual({ events: [], next: { types: 'mail.failed', after: all.at(-1)!.id } });
  });

  it('is refused if it is not an event of this CRM, and gone if it is older than what is kept', async () => {
    const foreign = await createCrm();
    await createPractice(foreign);
    const [event] = await waitForFeed(foreign, 1);
    const refused = {
      status: 400,
      body: { code: 'events.invalid', errors: [{ parameter: 'after', detail: 'is not an event of this CRM' }] },
    };
    for (const after of [event!.id, 'nonsense', event!.id.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))]) {
      expect(await crm.get('/events', { query: { after } })).toMatchObject(refused);
    }
    expect(await crm.get('/events', { query: { after: '018f0000-0000-7000-8000-000000000000' } })).toMatchObject({
      status: 410,
      body: { code: 'events.expired' },
    });
  });

  it('is not found with filters that name nothing', async () => {
    const types = {
      parameter: 'types',
      detail: expect.stringMatching(/^customer is not an event type: one of participation.created, /) as string,
    };
    expect(await crm.get('/events', { query: { types: 'customer.changed,customer' } })).toMatchObject({
      status: 400,
      body: { code: 'events.invalid', errors: [types] },
    });
    expect(await crm.get('/events', { query: { types: 'customer.changed,' } })).toMatchObject({
      status: 400,
      body: { errors: [{ detail: expect.stringMatching(/^an empty name is not an event type/) as string }] },
    });
    expect(await crm.get('/events', { query: { providerRef: 'nobody@test' } })).toMatchObject({
      status: 404,
      body: { code: 'provider.not_found' },
    });
  });
});

it('no event is missing, and none waited for its predecessor to be given up', async () => {
  const appointmentReference = await createAppointment(practice, { capacity: 1_000 });
  const bookings = Array.from({ length: 100 }, () => ({
    reference: `${unique('participation')}@test`,
    appointmentReference,
    customerReference: practice.customer,
    state: 'BOOKED',
  }));
  const answers = await Promise.all(
    bookings.map((booking) => untilServed(() => crm.post(`${practice.at}/participations`, booking))),
  );
  // 200 if an attempt that was not answered in time had an effect.
  for (const { status } of answers) expect([200, 201]).toContain(status);
  const events = await waitForFeed(crm, 102);
  expect(events).toHaveLength(102);
  // These two are independent of each other.
  expect(typesOf(events).slice(0, 2).toSorted()).toEqual(['appointment.created', 'customer.created']);
  expect(await query('webhook', 'SELECT 1 FROM incoming_event WHERE crm_id = $1', [crm.crmId])).toEqual([]);
});
