import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { eventually, patiently, startTestNats } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  eventsOf,
  freshReference,
  listAppointments,
  newParticipation,
  owned,
  refusal,
  seatsOf,
  startCalendarBeside,
} from './calendar-under-test.ts';
import { type Neighbours, startNeighbours } from './neighbours.ts';

const stack = new AsyncDisposableStack();
let neighbours: Neighbours;
let calendar: CalendarUnderTest;

/** With its own identity and customer services: it waits for their events, and stops one of them. */
beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  neighbours = stack.use(await startNeighbours(nats.url));
  calendar = stack.use(
    await startCalendarBeside(
      { identity: neighbours.identity.address, customer: neighbours.customer.address },
      nats.url('calendar'),
    ),
  );
}, 180_000);
afterAll(() => stack.disposeAsync());

describe('a booking', () => {
  it('takes a seat and publishes an event, for a customer created just before', async () => {
    const appointmentReference = await createAppointment(calendar);
    const customerReference = await createCustomer(calendar);
    const request = newParticipation({ appointmentReference, customerReference }, { message: 'Welcome' });
    const { participation, created } = await calendar.participations.createParticipation(request);
    expect(created).toBe(true);
    expect(participation).toEqual({
      reference: request.reference,
      appointmentReference,
      customerReference,
      name: `Name of ${customerReference}`,
      email: 'person@example.com',
      mobile: undefined,
      note: undefined,
      state: ParticipationState.BOOKED,
      messages: ['Welcome'],
      expiresAt: undefined,
      metadata: undefined,
      noShow: false,
    });
    expect(await seatsOf(calendar, appointmentReference)).toBe(1);
    expect(await eventsOf(calendar, request.reference)).toMatchObject([
      { version: 1, toState: ParticipationState.BOOKED, notify: true, silent: false },
    ]);
  });

  it('is rejected when all seats are taken, while repeating the first one still succeeds', async () => {
    const appointmentReference = await createAppointment(calendar);
    const customerReference = await createCustomer(calendar);
    const first = newParticipation({ appointmentReference, customerReference });
    await calendar.participations.createParticipation(first);
    const second = newParticipation({ appointmentReference, customerReference });
    expect(await refusal(calendar.participations.createParticipation(second))).toMatchObject({
      category: 'conflict',
      code: 'participation.capacity_exhausted',
      message: 'All seats of the appointment are taken.',
    });
    expect(await calendar.participations.createParticipation(first)).toMatchObject({ created: false });
    expect(await eventsOf(calendar, first.reference)).toHaveLength(1);
    await calendar.participations.createParticipation({ ...second, ignoreCapacity: true });
    expect(await seatsOf(calendar, appointmentReference)).toBe(2);
  });

  it('needs capacity: an appointment has none by default', async () => {
    const appointmentReference = await createAppointment(calendar, { capacity: 0 });
    const customerReference = await createCustomer(calendar);
    const request = newParticipation({ appointmentReference, customerReference });
    const noSeats = {
      code: 'participation.capacity_exhausted',
      message: 'The appointment has a capacity of 0: it has no seats.',
    };
    expect(await refusal(calendar.participations.createParticipation(request))).toMatchObject(noSeats);
    await calendar.participations.createParticipation({ ...request, state: ParticipationState.REQUESTED });
    const booked = {
      ...owned,
      participationReference: request.reference,
      state: ParticipationState.BOOKED,
      ignoreCapacity: false,
      sendMails: false,
    };
    expect(await refusal(calendar.participations.updateParticipation(booked))).toMatchObject(noSeats);
  });

  it('of one reference happens once for twenty concurrent requests', async () => {
    const customerReference = await createCustomer(calendar);
    const appointmentReference = await createAppointment(calendar, { capacity: 20 });
    const request = newParticipation({ appointmentReference, customerReference });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => patiently(() => calendar.participations.createParticipation(request))),
    );
    expect(answers.filter((answer) => answer.created)).toHaveLength(1);
    expect(await seatsOf(calendar, appointmentReference)).toBe(1);
    expect(await eventsOf(calendar, request.reference)).toHaveLength(1);
  });

  it('of one reference in twenty appointments concurrently happens in one of them', async () => {
    const customerReference = await createCustomer(calendar);
    const reference = freshReference('participation');
    const appointments = await Promise.all(Array.from({ length: 20 }, () => createAppointment(calendar)));
    const answers = await Promise.all(
      appointments.map((appointmentReference) => {
        const request = newParticipation({ appointmentReference, customerReference }, { reference });
        return patiently(() => calendar.participations.createParticipation(request)).then(
          () => 'created',
          (error: { code: string }) => error.code,
        );
      }),
    );
    expect(answers.toSorted()).toEqual([
      'created',
      ...Array.from({ length: 19 }, () => 'participation.reference_taken'),
    ]);
    const seats = await Promise.all(appointments.map((appointment) => seatsOf(calendar, appointment)));
    expect(seats.reduce((sum, taken) => sum + taken)).toBe(1);
  });

  it('of a known reference is rejected with onDuplicateRaise, and for another appointment or customer', async () => {
    const [appointmentReference, otherAppointment] = [
      await createAppointment(calendar),
      await createAppointment(calendar),
    ];
    const [customerReference, otherCustomer] = [await createCustomer(calendar), await createCustomer(calendar)];
    const request = newParticipation({ appointmentReference, customerReference });
    await calendar.participations.createParticipation(request);
    for (const change of [
      { onDuplicateRaise: true },
      { appointmentReference: otherAppointment },
      { customerReference: otherCustomer },
    ]) {
      expect(await refusal(calendar.participations.createParticipation({ ...request, ...change }))).toMatchObject({
        category: 'conflict',
        code: 'participation.reference_taken',
      });
    }
    expect(await seatsOf(calendar, otherAppointment)).toBe(0);
  });

  it.each(['CANCELED', 'DELETED'] as const)(
    'can start as %s, without a seat or a mail, even when the appointment is cancelled',
    async (state) => {
      const appointmentReference = await createAppointment(calendar);
      const customerReference = await createCustomer(calendar);
      await calendar.appointments.cancelAppointment({ ...owned, appointmentReference });
      const request = newParticipation(
        { appointmentReference, customerReference },
        { state: ParticipationState[state] },
      );
      expect(await calendar.participations.createParticipation(request)).toMatchObject({ created: true });
      expect(await seatsOf(calendar, appointmentReference)).toBe(0);
      expect(await eventsOf(calendar, request.reference)).toMatchObject([{ notify: false, silent: true }]);
    },
  );

  it.each(['RESERVED', 'REQUESTED', 'BOOKED'] as const)(
    'as %s is rejected in a cancelled appointment',
    async (state) => {
      const appointmentReference = await createAppointment(calendar);
      const customerReference = await createCustomer(calendar);
      await calendar.appointments.cancelAppointment({ ...owned, appointmentReference });
      const request = newParticipation(
        { appointmentReference, customerReference },
        { state: ParticipationState[state], ignoreCapacity: true },
      );
      expect(await refusal(calendar.participations.createParticipation(request))).toMatchObject({
        category: 'conflict',
        code: 'appointment.cancelled',
      });
    },
  );

  it('never affects another provider or CRM', async () => {
    const appointmentReference = await createAppointment(calendar);
    const customerReference = await createCustomer(calendar);
    const customerOfOther = await createCustomer(calendar, { crmId: 'one', providerReference: 'p2' });
    await createCustomer(calendar, { crmId: 'two', providerReference: 'p1' });
    const book = (changes: object) =>
      refusal(
        calendar.participations.createParticipation(
          newParticipation({ appointmentReference, customerReference }, changes),
        ),
      );
    const noAppointment = await book({ appointmentReference: freshReference('absent') });
    expect(noAppointment).toMatchObject({ category: 'not_found', code: 'appointment.not_found' });
    expect(await book({ providerReference: 'p2' })).toEqual(noAppointment);
    expect(await book({ crmId: 'two' })).toEqual(noAppointment);
    const noCustomer = await book({ customerReference: freshReference('absent') });
    expect(noCustomer).toMatchObject({ category: 'not_found', code: 'customer.not_found' });
    expect(await book({ customerReference: customerOfOther })).toEqual(noCustomer);
    const noProvider = await book({ providerReference: 'absent' });
    expect(noProvider).toMatchObject({ category: 'not_found', code: 'provider.not_found' });
    expect(await seatsOf(calendar, appointmentReference)).toBe(0);
  });

  it('names the invalid field when there is no such state', async () => {
    const request = newParticipation(
      { appointmentReference: 'a', customerReference: 'c' },
      { state: ParticipationState.UNSPECIFIED },
    );
    expect(await refusal(calendar.participations.createParticipation(request))).toMatchObject({
      category: 'invalid',
      code: 'participation.invalid',
      errors: [{ pointer: '/state' }],
    });
  });
});

describe('the copies of customers', () => {
  it('are updated when the name changes', async () => {
    const appointmentReference = await createAppointment(calendar, { capacity: 2 });
    const customerReference = await createCustomer(calendar);
    await calendar.participations.createParticipation(newParticipation({ appointmentReference, customerReference }));
    await calendar.customers.updateCustomer({ ...owned, customerReference, userName: 'New Name' });

    await calendar.participations.createParticipation(newParticipation({ appointmentReference, customerReference }));
    await eventually(async () => {
      const appointments = await listAppointments(calendar, { ...owned, includeArchived: false });
      const listed = appointments.find((appointment) => appointment.reference === appointmentReference);
      expect(listed!.participations.map((participation) => participation.name)).toEqual(['New Name', 'New Name']);
    });
  });

  it('are created from events, so that a booking needs no other service', async () => {
    const appointmentReference = await createAppointment(calendar);
    const customerReference = await createCustomer(calendar);
    await eventually(async () => {
      const known = await calendar.database.kysely
        .selectFrom('customer')
        .select('id')
        .where('reference', '=', customerReference)
        .execute();
      expect(known).toHaveLength(1);
    });
    await neighbours.customer[Symbol.asyncDispose]();
    const request = newParticipation({ appointmentReference, customerReference });
    expect(await calendar.participations.createParticipation(request)).toMatchObject({ created: true });
    const unknown = newParticipation({ appointmentReference, customerReference: freshReference('customer') });
    expect(await refusal(calendar.participations.createParticipation(unknown))).toMatchObject({
      category: 'unavailable',
    });
  });
});

it('causes no deadlock', async () => {
  expect(await calendar.countDeadlocks()).toBe(0);
});
