import { events } from '@scheduling/events';
import { eventually } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, path, type SendOptions, untilServed } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createPractice,
  newAppointment,
  newTimeslot,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import { waitForMails } from '@scheduling/test-stack/inbox';
import { blocksAt, newBlock } from './blocks.ts';
import { invitationsAt, newInvitation, openBookingPage } from './invitations.ts';
import { loseAnswer, withLockedRow } from './lost-answers.ts';

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
  await openBookingPage(practice);
});

const withKey = (key: string) => ({ headers: { 'idempotency-key': key } });

interface Operation {
  name: string;
  path: () => string;
  /** A new request, and one with different content. */
  body: () => Promise<Record<string, unknown>>;
  change: Record<string, unknown>;
  status?: number;
}

const span = { from: '2031-03-03T09:00', to: '2031-03-03T12:00', raster: 60 };
const newUser = () => {
  const name = unique('user');
  return { reference: `${name}@test`, email: `${name}@test.example`, username: name, lastName: 'Name' };
};

/**
 * Every POST of the interface that has a body, except the request of an erasure: its key can be reused as soon as it is
 * complete.
 */
const operations: Operation[] = [
  { name: 'a user', path: () => '/user', body: async () => newUser(), change: { lastName: 'Other' } },
  {
    name: 'an account',
    path: () => '/account',
    body: async () => ({
      ownerReference: practice.owner,
      accountReference: `${unique('account')}@test`,
      branch: 'misc',
    }),
    change: { branch: 'handyman' },
  },
  {
    name: 'a provider',
    path: () => '/provider',
    body: async () => ({
      reference: `${unique('provider')}@test`,
      ownerReference: practice.owner,
      accountReference: practice.account,
      name: 'Name',
    }),
    change: { name: 'Other' },
  },
  {
    name: 'staff',
    path: () => `${practice.at}/staff`,
    body: async () => {
      const { reference: _reference, ...person } = newUser();
      return person;
    },
    change: { lastName: 'Other' },
  },
  {
    name: 'a customer',
    path: () => `${practice.at}/customers`,
    body: async () => ({
      customerReference: `${unique('customer')}@test`,
      providerReference: practice.provider,
      userName: 'Name',
    }),
    change: { userName: 'Other' },
  },
  {
    name: 'an invitation',
    path: () => invitationsAt(practice),
    body: async () => newInvitation(practice),
    change: { bookings: 7 },
  },
  {
    name: 'timeslots without a reference',
    path: () => `${practice.at}/timeslots`,
    body: async () => ({ timeslots: [newTimeslot(practice, { reference: undefined })] }),
    change: {
      timeslots: [
        {
          ...span,
          resourceReference: 'r',
          end: '2031-03-03T12:00',
          defaultCapacity: 1,
          defaultAcceptBookings: true,
          state: 'CREATED',
        },
      ],
    },
  },
  {
    name: 'a block without a reference',
    path: () => blocksAt(practice),
    body: async () => newBlock({ reference: undefined }),
    change: { note: 'Other' },
  },
  {
    name: 'an appointment',
    path: () => `${practice.at}/appointments`,
    body: async () => newAppointment(practice),
    change: { capacity: 7 },
  },
  {
    name: 'a series',
    path: () => `${practice.at}/appointments`,
    body: async () => ({ resourceReference: practice.resource, productReference: practice.product, series_data: span }),
    change: { series_data: { ...span, raster: 30 } },
  },
  {
    name: 'a participation',
    path: () => `${practice.at}/participations`,
    body: async () => newBooking(await createAppointment(practice)),
    change: { message: 'Other' },
  },
  {
    name: 'a booking',
    path: () => `${practice.at}/bookings`,
    body: async () => {
      const timeslot = newTimeslot(practice, { resourceReference: unique('room') });
      expect((await crm.post(`${practice.at}/timeslots`, { timeslots: [timeslot] })).status).toBe(201);
      const slot = {
        timeslotReference: timeslot['reference'],
        start: timeslot['start'],
        productReference: practice.product,
      };
      return {
        ...slot,
        reference: `${unique('booking')}@test`,
        customer: { customerReference: `${unique('customer')}@test`, userName: 'Name' },
        state: 'BOOKED',
      };
    },
    change: { message: 'Other' },
  },
  {
    name: 'a move of a participation',
    path: () => `${practice.at}/participations/${encodeURIComponent(moved)}`,
    body: async () => {
      const booking = newBooking(await createAppointment(practice));
      moved = booking.reference;
      expect((await crm.post(`${practice.at}/participations`, booking)).status).toBe(201);
      return { state: 'CANCELED' };
    },
    change: { state: 'DELETED' },
    status: 200,
  },
];
let moved = '';

const newBooking = (appointmentReference: string) => ({
  reference: `${unique('participation')}@test`,
  appointmentReference,
  customerReference: practice.customer,
  state: 'BOOKED',
});

describe('with an Idempotency-Key (interface 1)', () => {
  it.each(operations)(
    '$name gets the same status and content when repeated, and different content is rejected',
    async (operation) => {
      const [key, body, status = 201] = [randomUUID(), await operation.body(), operation.status];
      const first = await crm.post(operation.path(), body, withKey(key));
      expect(first.status, first.text).toBe(status);
      expect(first.headers.get('idempotency-replayed')).toBeNull();
      const again = await crm.post(operation.path(), body, withKey(key));
      expect([again.status, again.body]).toStrictEqual([status, first.body]);
      expect(again.headers.get('idempotency-replayed')).toBe('true');
      const other = await crm.post(operation.path(), { ...body, ...operation.change }, withKey(key));
      expect(other).toMatchObject({ status: 422, body: { code: 'idempotency_key.reused' } });
      expect(other.headers.get('idempotency-replayed')).toBeNull();
    },
  );

  it('a verification mail, whose request has no body, is sent once, and a different address is rejected', async () => {
    const [user, other] = [newUser(), newUser()];
    for (const each of [user, other]) expect((await crm.post('/user', each)).status).toBe(201);
    const request = (reference: string) =>
      crm.send('POST', path`/user/${reference}/verification`, undefined, withKey(`verification-${user.reference}`));
    for (const replayed of [null, 'true', 'true']) {
      const answer = await request(user.reference);
      expect([answer.status, answer.text, answer.headers.get('idempotency-replayed')]).toEqual([204, '', replayed]);
    }
    expect(await request(other.reference)).toMatchObject({ status: 422, body: { code: 'idempotency_key.reused' } });
    const requests = `SELECT 1 FROM outbox WHERE subject = $1 AND data ->> 'crmId' = $2`;
    expect(await query('identity', requests, [events.emailVerificationRequested.subject, crm.crmId])).toHaveLength(1);
  });

  it('each CRM has its own keys', async () => {
    const other = await createPractice(await createCrm());
    const body = (own: Practice) => ({
      customerReference: 'same@test',
      providerReference: own.provider,
      userName: 'Name',
    });
    for (const own of [practice, other]) {
      expect((await own.crm.post(`${own.at}/customers`, body(own), withKey('same'))).status).toBe(201);
    }
  });

  it('a series is created once by twenty concurrent requests', async () => {
    const key = randomUUID();
    const product = unique('course');
    const body = { resourceReference: practice.resource, productReference: product, series_data: span };
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => untilServed(() => crm.post(`${practice.at}/appointments`, body, withKey(key)))),
    );
    const refused = answers.filter(({ status }) => status !== 201);
    for (const answer of refused) expectInFlight(answer);
    expect(new Set(answers.filter(({ status }) => status === 201).map(({ text }) => text)).size).toBe(1);
    expect(
      (await crm.get<unknown[]>(`${practice.at}/appointments`, { query: { productRef: product } })).body,
    ).toHaveLength(3);
  });

  it('a repetition is rejected while the first request is in progress; a failed attempt leaves nothing behind', async () => {
    const appointmentReference = await createAppointment(practice);
    const booking = newBooking(appointmentReference);
    const key = randomUUID();
    const book = () =>
      crm.post(`${practice.at}/participations`, booking, { ...withKey(key), query: { onDuplicateRaise: true } });
    await withLockedRow('appointment', appointmentReference, async () => {
      // One of the two waits for the lock, and times out after two seconds; the other is told immediately that it is in
      // progress.
      await eventually(async () => {
        const answers = (await Promise.all([book(), book()])).toSorted((a, b) => a.status - b.status);
        expect(answers.map(({ status }) => status)).toEqual([409, 503]);
        expectInFlight(answers[0]!);
      });
    });
    const booked = await eventually(async () => expectStatus(201, await book()));
    expect((await book()).body).toStrictEqual(booked.body);
  });

  it('a client that timed out gets the response of its first request when it retries, and there is one mail', async () => {
    const own = await createPractice(await createCrm());
    const appointmentReference = await createAppointment(own);
    const booking = { ...newBooking(appointmentReference), customerReference: own.customer };
    const key = randomUUID();
    const book = (options: SendOptions) =>
      own.crm.post(`${own.at}/participations`, booking, { ...options, query: { onDuplicateRaise: true } });
    await withLockedRow('appointment', appointmentReference, async (isWaitedFor) => {
      await loseAnswer(own.crm, `${own.at}/participations?onDuplicateRaise=true`, booking, {
        isWaitedFor,
        ...withKey(key),
      });
    });
    await eventually(async () => expectStatus(201, await book(withKey(key))));
    expect((await book({})).status).toBe(409);
    await waitForMails(own.customerEmail, 1);
    expect(
      await query('notification', `SELECT 1 FROM mail WHERE crm_id = $1 AND template = 'booking-confirmed'`, [
        own.crm.crmId,
      ]),
    ).toHaveLength(1);
  });

  it('the keys of a deleted customer are deleted, those of others are not', async () => {
    const own = await createPractice(await createCrm());
    const customerReference = `${unique('customer')}@test`;
    const customer = { customerReference, providerReference: own.provider, userName: 'Name' };
    const appointmentReference = await createAppointment(own, { capacity: 2 });
    await own.crm.post(`${own.at}/customers`, customer, withKey('customer'));
    for (const person of [customerReference, own.customer]) {
      const booking = { ...newBooking(appointmentReference), customerReference: person };
      expect((await own.crm.post(`${own.at}/participations`, booking, withKey(`booking-${person}`))).status).toBe(201);
    }
    const keysIn = async (service: 'calendar' | 'customer') =>
      (await query(service, 'SELECT 1 FROM idempotency_key WHERE crm_id = $1', [own.crm.crmId])).length;
    expect([await keysIn('calendar'), await keysIn('customer')]).toEqual([2, 1]);
    const deletion = own.at + path`/customers/${customerReference}?ignoreFutureAppointments`;
    expect((await own.crm.delete(deletion)).status).toBe(204);
    expect([await keysIn('calendar'), await keysIn('customer')]).toEqual([1, 0]);
  });
});

function expectInFlight(answer: Answer): void {
  expect(answer).toMatchObject({ status: 409, body: { code: 'idempotency_key.in_flight' } });
  expect(answer.headers.get('retry-after')).toBe('1');
}

function expectStatus(status: number, answer: Answer): Answer {
  expect(answer.status, answer.text).toBe(status);
  return answer;
}
