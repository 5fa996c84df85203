import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { isAddress } from '@scheduling/postgres';
import { eventually, patiently, withKey } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AppointmentJson } from './parsed-answers.ts';
import {
  allEnded,
  type CalendarUnderTest,
  countWaiting,
  createAppointment,
  createCustomer,
  freshReference,
  newAppointment,
  newParticipation,
  owned,
  readAppointments,
  refusal,
  seatsOf,
  startCalendar,
} from './calendar-under-test.ts';

const { BOOKED, REQUESTED, RESERVED } = ParticipationState;
const past = { start: '2020-06-01T10:00', end: '2020-06-01T11:00' };
let calendar: CalendarUnderTest;

beforeAll(async () => {
  calendar = await startCalendar();
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

async function customerIdOf(customerReference: string): Promise<string> {
  const { customer } = await calendar.customers.getCustomer({
    crmId: owned.crmId,
    key: { $case: 'reference', value: { providerReference: owned.providerReference, customerReference } },
  });
  return customer!.id;
}

const remove = async (customerReference: string, ignoreFutureAppointments: boolean) =>
  calendar.removals.removeCustomer({
    crmId: owned.crmId,
    customerId: await customerIdOf(customerReference),
    ignoreFutureAppointments,
  });

async function book(
  customerReference: string,
  appointmentReference: string,
  state: ParticipationState = BOOKED,
): Promise<string> {
  const request = newParticipation({ appointmentReference, customerReference }, { state, message: 'canary message' });
  await calendar.participations.createParticipation(request);
  return request.reference;
}

async function read(appointmentReference: string): Promise<AppointmentJson> {
  const { json } = await calendar.appointments.getAppointment({ ...owned, appointmentReference });
  return readAppointments(json)[0]!;
}

describe('removing a customer', () => {
  it.each([BOOKED, REQUESTED, RESERVED])(
    'who is %s in a future appointment is rejected, naming the appointment, and changes nothing',
    async (state) => {
      const customerReference = await createCustomer(calendar);
      const appointment = await createAppointment(calendar);
      const participation = await book(customerReference, appointment, state);
      expect(await refusal(remove(customerReference, false))).toMatchObject({
        category: 'conflict',
        code: 'customer.has_future_appointments',
        message: expect.stringContaining(appointment),
      });
      expect((await read(appointment)).participations).toMatchObject([
        { reference: participation, name: `Name of ${customerReference}` },
      ]);
      await book(customerReference, await createAppointment(calendar));
    },
  );

  it('removes future participations, frees the seats, and returns them on every call', async () => {
    const customerReference = await createCustomer(calendar);
    const appointment = await createAppointment(calendar, {
      description: 'Yoga',
      address: { kind: { $case: 'text', value: 'Room 1' } },
    });
    await book(customerReference, appointment);
    const answer = await remove(customerReference, true);
    expect(answer.removed).toMatchObject([{ version: 2, description: 'Yoga', address: { kind: { value: 'Room 1' } } }]);
    expect(await remove(customerReference, true)).toEqual(answer);
    expect((await read(appointment)).participations).toEqual([]);
    expect(await seatsOf(calendar, appointment)).toBe(0);
  });

  it('anonymises past participations', async () => {
    const customerReference = await createCustomer(calendar);
    const bygone = await createAppointment(calendar, past);
    const cancelled = await createAppointment(calendar, { capacity: 5 });
    await book(customerReference, bygone);
    await book(customerReference, cancelled);
    await calendar.appointments.cancelAppointment({
      ...owned,
      appointmentReference: cancelled,
      message: 'canary message',
    });
    expect(await remove(customerReference, false)).toEqual({ removed: [] });
    for (const [reference, state] of [
      [bygone, 'BOOKED'],
      [cancelled, 'CANCELED'],
    ] as const) {
      const [participation] = (await read(reference)).participations;
      expect(participation).toMatchObject({
        name: '',
        email: null,
        mobile: null,
        note: null,
        messages: null,
        metadata: null,
        noShow: false,
        state,
      });
      expect(participation!.reference).toMatch(/^anonymous-/);
    }
    expect(await seatsOf(calendar, bygone)).toBe(1);
  });

  it('prevents further bookings, although the customer service still has the record', async () => {
    const [known, unknown] = [await createCustomer(calendar), await createCustomer(calendar)];
    await book(known, await createAppointment(calendar));
    for (const customerReference of [known, unknown]) {
      await remove(customerReference, true);
      const booking = book(customerReference, await createAppointment(calendar));
      expect(await refusal(booking)).toMatchObject({ category: 'not_found', code: 'customer.not_found' });
    }
  });

  it('includes a booking that has begun but is not committed yet', async () => {
    const customerReference = await createCustomer(calendar);
    const appointment = await createAppointment(calendar);
    let finished = 0;
    // A rejected call counts as well: there is nothing left to wait for.
    const counted = <T>(call: Promise<T>): Promise<T> => {
      const ending = call.finally(() => (finished += 1));
      ending.catch(() => undefined);
      return ending;
    };
    const { booking, removal } = await calendar.database.transaction(async (tx) => {
      // The last thing a booking writes is its event: it blocks there, holding all its locks.
      await sql`LOCK TABLE outbox IN EXCLUSIVE MODE`.execute(tx);
      await sql`SET LOCAL idle_in_transaction_session_timeout = 0`.execute(tx);
      const begun = counted(book(customerReference, appointment));
      await eventually(async () =>
        expect(finished + (await countWaiting(calendar, 'SELECT answer, %create_participation(%'))).toBe(1),
      );
      const waiting = counted(remove(customerReference, true));
      await eventually(async () =>
        expect(finished + (await countWaiting(calendar, 'select "id" from "customer" %'))).toBe(1),
      );
      return { booking: begun, removal: waiting };
    });
    await allEnded<unknown>([booking, removal]);
    // Not which answer arrives first: a transaction releases its locks before its result is sent.
    expect((await removal).removed).toHaveLength(1);
    expect((await read(appointment)).participations).toEqual([]);
    expect(await seatsOf(calendar, appointment)).toBe(0);
  });

  it('never leaves a concurrent booking', async () => {
    const people = await Promise.all(Array.from({ length: 8 }, () => createCustomer(calendar)));
    for (const customerReference of people) {
      const appointments = await Promise.all(
        Array.from({ length: 5 }, () => createAppointment(calendar, { capacity: 50 })),
      );
      const customerId = await customerIdOf(customerReference);
      const bookings = Array.from({ length: 25 }, (_, index) => {
        const request = newParticipation(
          { appointmentReference: appointments[index % 5]!, customerReference },
          { reference: freshReference('race') },
        );
        return patiently(() => calendar.participations.createParticipation(request)).then(
          () => 'booked',
          (error: { code: string }) => error.code,
        );
      });
      const removals = Array.from({ length: 5 }, () =>
        patiently(() =>
          calendar.removals.removeCustomer({ crmId: owned.crmId, customerId, ignoreFutureAppointments: true }),
        ),
      );
      await allEnded<unknown>([...bookings, ...removals]);
      const outcomes = await Promise.all(bookings);
      expect(outcomes.filter((outcome) => outcome !== 'booked' && outcome !== 'customer.not_found')).toEqual([]);
      for (const appointment of appointments) {
        expect((await read(appointment)).participations).toEqual([]);
        expect(await seatsOf(calendar, appointment)).toBe(0);
      }
    }
  });
});

describe('removing an embedded participant', () => {
  const embedded = (email: string, changes: object = {}) => ({
    reference: freshReference('embedded'),
    name: 'Canary',
    email,
    mobile: 'Canary',
    note: 'Canary',
    state: BOOKED,
    ...changes,
  });
  const find = async (email: string, crmId = owned.crmId): Promise<string[]> =>
    (await calendar.removals.findEmbeddedParticipations({ crmId, email })).participationIds;
  const removeAll = async (email: string): Promise<void> => {
    for (const customerId of await find(email))
      await calendar.removals.removeCustomer({ crmId: owned.crmId, customerId, ignoreFutureAppointments: true });
  };

  it('frees the seat in a future appointment, anonymises the past, and leaves others alone', async () => {
    const [bygone, coming] = [
      await createAppointment(calendar, { ...past, participations: [embedded('Ünal@example.com')] }),
      await createAppointment(calendar, {
        capacity: 3,
        participations: [
          embedded('ünal@EXAMPLE.com'),
          embedded('other@example.com'),
          embedded('ünal@example.com', { state: REQUESTED }),
        ],
      }),
    ];
    expect(await find('üNAL@example.com', 'two')).toEqual([]);
    expect(await find('üNAL@example.com')).toHaveLength(3);
    await removeAll('üNAL@example.com');
    expect(await find('ünal@example.com')).toEqual([]);
    const [participation, ...more] = (await read(bygone)).participations;
    expect(more).toEqual([]);
    expect(participation).toMatchObject({
      name: '',
      email: null,
      mobile: null,
      note: null,
      state: 'BOOKED',
    });
    expect(participation!.reference).toMatch(/^anonymous-/);
    expect((await read(coming)).participations).toMatchObject([{ email: 'other@example.com', name: 'Canary' }]);
    expect([await seatsOf(calendar, bygone), await seatsOf(calendar, coming)]).toEqual([1, 1]);
  });

  it('finds the address in either form of its domain', async () => {
    const participations = [
      'doppelt@straße.bücher.example',
      'Doppelt@xn--strae-oqa.xn--bcher-kva.example',
      'doppelt@Straße.xn--bcher-kva.example',
    ].map((email) => embedded(email));
    const appointment = await createAppointment(calendar, { capacity: 3, participations });
    expect(await find('doppelt@strasse.bücher.example')).toEqual([]);
    for (const { email } of participations) expect(await find(email)).toHaveLength(3);
    await removeAll('doppelt@xn--strae-oqa.bücher.example');
    expect((await read(appointment)).participations).toEqual([]);
  });

  it('without ignoring future appointments is rejected and changes nothing', async () => {
    const appointment = await createAppointment(calendar, { participations: [embedded('staying@example.com')] });
    const [customerId] = await find('staying@example.com');
    const removal = calendar.removals.removeCustomer({
      crmId: owned.crmId,
      customerId: customerId!,
      ignoreFutureAppointments: false,
    });
    expect(await refusal(removal)).toMatchObject({ code: 'customer.has_future_appointments' });
    expect((await read(appointment)).participations).toMatchObject([{ email: 'staying@example.com' }]);
  });

  it('forgets the request that created the appointment, and the key of that request', async () => {
    const requests = [past, {}].map((period) =>
      newAppointment({ ...period, participations: [embedded('keyed@example.com')] }),
    );
    for (const request of requests)
      await withKey(`key of ${request.reference}`, () => calendar.appointments.createAppointment(request));
    const stored = () =>
      calendar.database.kysely
        .selectFrom('appointment')
        .leftJoin('idempotencyKey', (join) => join.on(sql<boolean>`appointment.id = ANY (resource_ids)`))
        .select([sql<number>`length(content_digest)`.as('digest'), 'keyHash'])
        .where(
          'reference',
          'in',
          requests.map(({ reference }) => reference),
        )
        .execute();
    expect(await stored()).toEqual(requests.map(() => ({ digest: 32, keyHash: expect.any(Buffer) })));
    await removeAll('keyed@example.com');
    expect(await stored()).toEqual(requests.map(() => ({ digest: 0, keyHash: null })));
    for (const request of requests) {
      expect(await refusal(calendar.appointments.createAppointment(request))).toMatchObject({
        code: 'appointment.reference_taken',
      });
    }
  });

  it('finds them with an index', async () => {
    const query = sql`EXPLAIN SELECT id FROM participation WHERE crm_id = 'one' AND email IS NOT NULL AND ${isAddress(sql`email`, 'a@b.example')}`;
    const plan = await calendar.database.transaction(async (tx) => {
      await sql`SET LOCAL enable_seqscan = off`.execute(tx);
      return query.execute(tx);
    });
    expect(JSON.stringify(plan.rows)).toContain('participation_by_address');
  });
});

it('causes no deadlock', async () => {
  expect(await calendar.countDeadlocks()).toBe(0);
});
