import {
  Access,
  type BookSlotRequest,
  type ChangeBookingRequest,
  ParticipationState,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause } from '@scheduling/contracts/events/v1';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Calendar,
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  eventsOf,
  freshReference,
  listAppointments,
  newAppointment,
  newParticipation,
  owned,
  readAppointments,
  refusal,
  seatsOf,
  startCalendar,
} from './calendar-under-test.ts';
import { createTimeslot, customerOf, listSlots, newBooking, placeIn } from './slots-under-test.ts';

let calendar: CalendarUnderTest;
/** For it, the reservations of the others have expired. */
let late: Calendar;
let customerReference: string;

beforeAll(async () => {
  calendar = await startCalendar({ RESERVATION_SWEEPER: 'off' });
  late = await calendar.startReplicaAt('181 seconds', { RESERVATION_SWEEPER: 'off' });
  customerReference = await createCustomer(calendar);
}, 180_000);
afterAll(async () => {
  await late?.[Symbol.asyncDispose]();
  await calendar?.[Symbol.asyncDispose]();
});

const book = (request: BookSlotRequest, at: Calendar = calendar) => at.bookings.bookSlot(request);

/** The code, and the reason if there is one. */
async function reasonOf(call: Promise<unknown>): Promise<string> {
  const { code, reason } = await refusal(call);
  return reason === undefined ? code : `${code} ${reason}`;
}

const cancel = (participationReference: string) =>
  calendar.participations.updateParticipation({
    ...owned,
    participationReference,
    state: ParticipationState.CANCELED,
    ignoreCapacity: false,
    sendMails: true,
  });

type Change = Omit<ChangeBookingRequest, 'crmId' | 'providerReference' | 'participationReference'>;
const change = (participationReference: string, others: Partial<Change>, at: Calendar = calendar) =>
  at.bookings.changeBooking({ ...owned, participationReference, ignoreNotice: false, sendMails: true, ...others });

function appointmentAt(resourceReference: string, at: Calendar = calendar) {
  return listAppointments(at, { ...owned, resourceReference, includeArchived: true });
}

const startsOf = async (resourceReference: string, at?: Calendar) =>
  (await listSlots(at ?? calendar, { resourceReference })).map(({ start }) => start.slice(11, 16));

describe('a booking', () => {
  it('makes an appointment with the defaults of the timeslot', async () => {
    const address = { kind: { $case: 'text' as const, value: 'Room 1' } };
    const timeslot = await createTimeslot(calendar, { defaultCapacity: 2, address });
    const place = placeIn(timeslot, '10:30', { duration: 60 });
    Object.assign(place!.value, {
      description: 'Haircut',
      contactReference: 'staff@test',
      price: { value: 12.5, currency: 'CHF' },
    });
    const request = newBooking(place, { ...customerOf(customerReference), message: 'Welcome' });
    const { participation, slotJson, created } = await book(request);
    const [appointment] = await appointmentAt(timeslot.resourceReference);
    expect(created).toBe(true);
    expect(JSON.parse(slotJson.toString())).toEqual({
      start: '2099-06-01T08:30:00Z',
      end: '2099-06-01T09:30:00Z',
      resourceReference: timeslot.resourceReference,
      timeslotReference: timeslot.reference,
      appointmentReference: appointment!.reference,
      productReference: 'product@test',
      description: 'Haircut',
      capacity: 2,
      seats: 1,
      address: 'Room 1',
      price: { value: 12.5, currency: 'CHF' },
    });
    expect(appointment).toMatchObject({
      acceptBookings: true,
      capacity: 2,
      contactReference: 'staff@test',
      address: 'Room 1',
      participations: [{ reference: request.reference, customerReference, state: 'BOOKED', messages: ['Welcome'] }],
    });
    expect(participation).toMatchObject({
      reference: request.reference,
      customerReference,
      appointmentReference: appointment!.reference,
      messages: ['Welcome'],
    });
    expect(await eventsOf(calendar, request.reference)).toMatchObject([
      { cause: ParticipationChangeCause.CREATED, version: 1, notify: true, silent: false },
    ]);
    expect(
      (await calendar.participations.getParticipation({ ...owned, participationReference: request.reference }))
        .participation,
    ).toEqual(participation);
  });

  it('joins the open appointment of the same product, and no other', async () => {
    const timeslot = await createTimeslot(calendar, { defaultCapacity: 3 });
    const first = await book(newBooking(placeIn(timeslot, '10:30')));
    const second = await book(newBooking(placeIn(timeslot, '10:30')));
    expect(second.participation.appointmentReference).toBe(first.participation.appointmentReference);
    const third = await book(
      newBooking({ $case: 'appointmentReference', value: first.participation.appointmentReference }),
    );
    expect(JSON.parse(third.slotJson.toString())).toMatchObject({ seats: 0, timeslotReference: null });
    expect(await reasonOf(book(newBooking(placeIn(timeslot, '10:30', { productReference: 'other@test' }))))).toBe(
      'slot.unavailable taken',
    );
    expect(await reasonOf(book(newBooking(placeIn(timeslot, '10:30'))))).toBe('slot.unavailable full');
  });

  it('takes no seat while it is requested, but needs one that is free', async () => {
    const timeslot = await createTimeslot(calendar);
    const requested = newBooking(placeIn(timeslot, '10:30'), {
      ...customerOf(customerReference),
      state: ParticipationState.REQUESTED,
    });
    expect(JSON.parse((await book(requested)).slotJson.toString())).toMatchObject({ seats: 1 });
    await book(newBooking(placeIn(timeslot, '10:30')));
    expect(await reasonOf(book({ ...requested, reference: freshReference('booking') }))).toBe('slot.unavailable full');
  });

  it('shows no free seats where more are taken than the capacity has', async () => {
    const timeslot = await createTimeslot(calendar);
    const request = newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference));
    const appointmentReference = (await book(request)).participation.appointmentReference;
    const seats = async () => (JSON.parse((await book(request)).slotJson.toString()) as { seats: number }).seats;
    await calendar.participations.createParticipation(
      newParticipation({ appointmentReference, customerReference }, { ignoreCapacity: true }),
    );
    expect([await seats(), await seatsOf(calendar, appointmentReference)]).toEqual([0, 2]);
    await calendar.appointments.updateAppointment({
      ...owned,
      appointmentReference,
      capacity: 0,
      noAddress: false,
      sendMails: true,
    });
    expect(await seats()).toBe(0);
    await calendar.appointments.updateAppointment({
      ...owned,
      appointmentReference,
      capacity: 5,
      noAddress: false,
      sendMails: true,
    });
    expect(await seats()).toBe(3);
  });

  it('is returned as it is for the same reference, place and customer, and rejected for others', async () => {
    const timeslot = await createTimeslot(calendar, { defaultCapacity: 2 });
    const request = newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference));
    const first = await book(request);
    expect(await book(request)).toEqual({ ...first, created: false });
    const repeats: Partial<BookSlotRequest>[] = [
      { place: placeIn(timeslot, '11:00') },
      { place: placeIn(timeslot, '10:30', { productReference: 'other@test' }) },
      { place: placeIn(timeslot, '10:30', { duration: 60 }) },
      { place: { $case: 'appointmentReference', value: await createAppointment(calendar, { acceptBookings: true }) } },
      customerOf(await createCustomer(calendar)),
      { customer: undefined, state: ParticipationState.RESERVED },
    ];
    for (const other of repeats)
      expect(await reasonOf(book({ ...request, ...other }))).toBe('participation.reference_taken');
    await cancel(request.reference);
    expect(await book(request)).toMatchObject({
      created: false,
      participation: { state: ParticipationState.CANCELED },
    });
    expect(await eventsOf(calendar, request.reference)).toHaveLength(2);
  });

  it('creates its customer only after the place was found free', async () => {
    const timeslot = await createTimeslot(calendar);
    const known = freshReference('customer');
    const person = (reference: string, userName = 'Ada') => ({
      state: ParticipationState.BOOKED,
      customer: { $case: 'newCustomer' as const, value: { customerReference: reference, userName } },
    });
    expect(await book(newBooking(placeIn(timeslot, '10:30'), person(known)))).toMatchObject({
      participation: { name: 'Ada', customerReference: known },
    });
    expect(await book(newBooking(placeIn(timeslot, '11:00'), person(known, 'Eve')))).toMatchObject({
      participation: { name: 'Ada' },
    });
    const refused = freshReference('customer');
    expect(await reasonOf(book(newBooking(placeIn(timeslot, '10:30'), person(refused))))).toBe('slot.unavailable full');
    const key = { $case: 'reference' as const, value: { providerReference: 'p1', customerReference: refused } };
    expect(await reasonOf(calendar.customers.getCustomer({ crmId: 'one', key }))).toBe('customer.not_found');
    expect(await reasonOf(book(newBooking(placeIn(timeslot, '11:30'), customerOf(refused))))).toBe(
      'customer.not_found',
    );
  });

  it('is rejected with the reason', async () => {
    const timeslot = await createTimeslot(calendar);
    const isPrivate = await createAppointment(calendar, { capacity: 1 });
    const isCancelled = await createAppointment(calendar, { capacity: 1, acceptBookings: true });
    await calendar.appointments.cancelAppointment({ ...owned, appointmentReference: isCancelled });
    const isPast = await createAppointment(calendar, {
      capacity: 1,
      acceptBookings: true,
      start: '2020-01-01T10:00',
      end: '2020-01-01T11:00',
    });
    const hidden = await createTimeslot(calendar, { state: 'TIMESLOT_STATE_CREATED' });
    const appointment = (value: string) => ({ $case: 'appointmentReference' as const, value });
    const attempts: [BookSlotRequest['place'], string][] = [
      [placeIn(timeslot, '10:10'), 'slot.unavailable off_raster'],
      [placeIn(timeslot, '09:30'), 'slot.unavailable off_raster'],
      [placeIn(timeslot, '12:00'), 'slot.unavailable off_raster'],
      [placeIn(timeslot, '11:30', { duration: 60 }), 'slot.unavailable off_raster'],
      [placeIn(timeslot, '10:00', { duration: 45 }), 'slot.unavailable off_raster'],
      [placeIn(hidden, '10:00'), 'slot.unavailable closed'],
      [appointment(isCancelled), 'slot.unavailable closed'],
      [appointment(isPrivate), 'slot.unavailable private'],
      [appointment(isPast), 'slot.unavailable too_soon'],
      [appointment('unknown@test'), 'appointment.not_found'],
      [placeIn({ reference: 'unknown@test' }, '10:00'), 'timeslot.not_found'],
    ];
    for (const [place, expected] of attempts)
      expect([place, await reasonOf(book(newBooking(place)))]).toEqual([place, expected]);
    const nobody = newBooking(placeIn(timeslot, '10:00'), { state: ParticipationState.BOOKED });
    expect(await refusal(book(nobody))).toMatchObject({
      code: 'booking.invalid',
      errors: [{ pointer: '/customerReference' }],
    });
    expect(await refusal(book({ ...nobody, state: ParticipationState.CANCELED }))).toMatchObject({
      errors: [{ pointer: '/state' }, { pointer: '/customerReference' }],
    });
    expect(await reasonOf(book({ ...newBooking(placeIn(timeslot, '10:00')), providerReference: 'p2' }))).toBe(
      'timeslot.not_found',
    );
    expect(await reasonOf(book({ ...newBooking(placeIn(timeslot, '10:00')), crmId: 'two' }))).toBe(
      'timeslot.not_found',
    );
  });
});

describe('an appointment made by a booking', () => {
  it('is cancelled when its last participant leaves, and its place is free again', async () => {
    const timeslot = await createTimeslot(calendar, { defaultCapacity: 2 });
    const requests = [
      newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference)),
      newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference)),
    ];
    for (const request of requests) await book(request);
    await cancel(requests[0]!.reference);
    expect(await appointmentAt(timeslot.resourceReference)).toMatchObject([{ state: 'ACTIVE' }]);
    await cancel(requests[1]!.reference);
    expect(await appointmentAt(timeslot.resourceReference)).toMatchObject([
      { state: 'CANCELLED', participations: [{ state: 'CANCELED' }, {}] },
    ]);
    expect(await startsOf(timeslot.resourceReference)).toEqual(['08:00', '08:30', '09:00', '09:30']);
    await calendar.timeslots.deleteTimeslot({ ...owned, timeslotReference: timeslot.reference });
  });

  it('leaves no trace if nobody but an expired reservation was in it', async () => {
    const timeslot = await createTimeslot(calendar);
    const hold = newBooking(placeIn(timeslot, '10:30'));
    await book(hold);
    expect(await startsOf(timeslot.resourceReference)).toEqual(['08:00', '09:00', '09:30']);
    expect(await startsOf(timeslot.resourceReference, late)).toEqual(['08:00', '08:30', '09:00', '09:30']);
    const other = newBooking(placeIn(timeslot, '10:30', { productReference: 'other@test' }));
    const { participation } = await book(other, late);
    expect((await appointmentAt(timeslot.resourceReference, late)).map(({ reference }) => reference)).toEqual([
      participation.appointmentReference,
    ]);
  });

  it('is not shown any more once the only reservation that was ever in it has expired', async () => {
    const timeslot = await createTimeslot(calendar, { defaultCapacity: 2 });
    const { participation } = await book(newBooking(placeIn(timeslot, '10:30')));
    const appointmentReference = participation.appointmentReference;
    const canceled = newBooking(placeIn(timeslot, '11:00'), customerOf(customerReference));
    const others = [
      await book(canceled),
      await book(newBooking(placeIn(timeslot, '11:00'))),
      await book(newBooking(placeIn(timeslot, '11:30'), customerOf(customerReference))),
    ];
    await cancel(canceled.reference);
    // Somebody has been in one of the others, and is in the other one.
    const kept = [...new Set(others.map((other) => other.participation.appointmentReference))];
    for (const [at, shown] of [
      [calendar, [appointmentReference, ...kept]],
      [late, kept],
    ] as const) {
      expect((await appointmentAt(timeslot.resourceReference, at)).map(({ reference }) => reference)).toEqual(shown);
      const { timeslots } = await at.timeslots.listTimeslots({
        ...owned,
        resourceReference: timeslot.resourceReference,
        from: '2099-06-01T00:00',
        to: '2099-06-02T00:00',
      });
      const appointments = readAppointments(timeslots[0]!.appointmentsJson);
      expect(appointments.map(({ reference }) => reference)).toEqual(shown);
    }
    const key = { ...owned, appointmentReference };
    expect(await calendar.appointments.getAppointment(key)).toHaveProperty('json');
    expect(await reasonOf(late.appointments.getAppointment(key))).toBe('appointment.not_found');
    expect(
      await reasonOf(
        late.appointments.updateAppointment({ ...key, noAddress: false, sendMails: false, notes: 'late' }),
      ),
    ).toBe('appointment.not_found');
    for (const reference of kept)
      expect(await late.appointments.getAppointment({ ...owned, appointmentReference: reference })).toHaveProperty(
        'json',
      );
  });

  it('does not hold up the deletion of its timeslot, once it is abandoned', async () => {
    const timeslot = await createTimeslot(calendar);
    await book(newBooking(placeIn(timeslot, '10:30')));
    const key = { ...owned, timeslotReference: timeslot.reference };
    expect(await reasonOf(calendar.timeslots.deleteTimeslot(key))).toBe('timeslot.has_appointments');
    await late.timeslots.deleteTimeslot(key);
  });

  it('is not joined by a participation after it was abandoned', async () => {
    const timeslot = await createTimeslot(calendar);
    const { participation } = await book(newBooking(placeIn(timeslot, '10:30')));
    const request = newParticipation({ appointmentReference: participation.appointmentReference, customerReference });
    expect(await reasonOf(late.participations.createParticipation(request))).toBe('appointment.not_found');
  });

  it('is cancelled when its last participant is erased', async () => {
    const timeslot = await createTimeslot(calendar);
    const erased = await createCustomer(calendar);
    const { participation } = await book(newBooking(placeIn(timeslot, '10:30'), customerOf(erased)));
    const { customer } = await calendar.customers.getCustomer({
      crmId: 'one',
      key: { $case: 'reference', value: { providerReference: 'p1', customerReference: erased } },
    });
    const removal = { crmId: 'one', customerId: customer!.id, ignoreFutureAppointments: true };
    const { removed } = await calendar.removals.removeCustomer(removal);
    expect(removed).toHaveLength(1);
    expect(await appointmentAt(timeslot.resourceReference)).toMatchObject([
      { reference: participation.appointmentReference, state: 'CANCELLED', participations: [] },
    ]);
    expect(await startsOf(timeslot.resourceReference)).toHaveLength(4);
    expect(await calendar.removals.removeCustomer(removal)).toEqual({ removed });
  });

  it('is offered by the bookable timeslots in which it lies, and by no other', async () => {
    const timeslot = await createTimeslot(calendar, { defaultCapacity: 3 });
    const { resourceReference, reference } = timeslot;
    const booking = newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference));
    const appointmentReference = (await book(booking)).participation.appointmentReference;
    const hold = newBooking({ $case: 'appointmentReference', value: appointmentReference });
    await book(hold);
    const join = (others: Partial<BookSlotRequest> = {}) =>
      book(newBooking({ $case: 'appointmentReference', value: appointmentReference }, others));
    const setTimeslot = (changes: { state?: TimeslotState; defaultCapacity?: number }, timeslotReference = reference) =>
      calendar.timeslots.updateTimeslot({ ...owned, timeslotReference, ...changes });
    const openOnes = async () =>
      (await listSlots(calendar, { resourceReference }))
        .filter((slot) => slot.appointmentReference === appointmentReference)
        .map((slot) => slot.timeslotReference);
    expect(await openOnes()).toEqual([reference]);

    for (const changes of [{ state: TimeslotState.CREATED }, { state: TimeslotState.BOOKABLE, defaultCapacity: 0 }]) {
      await setTimeslot(changes);
      expect(await openOnes()).toEqual([]);
      expect(await reasonOf(join())).toBe('slot.unavailable closed');
      expect(await reasonOf(book(newBooking(placeIn(timeslot, '10:30'))))).toBe('slot.unavailable closed');
    }
    // What the CRM does itself, and what has a seat, is not affected.
    await calendar.participations.createParticipation(newParticipation({ appointmentReference, customerReference }));
    expect(
      (await change(hold.reference, { customer: { $case: 'customerReference', value: customerReference } }))
        .participation,
    ).toMatchObject({ state: ParticipationState.BOOKED });
    expect(await book(booking)).toMatchObject({ created: false });
    await cancel(hold.reference);

    // Others offer it, too, on their rasters or off them; one that it does not lie in does not.
    await createTimeslot(calendar, { resourceReference, start: '2099-06-01T10:45' });
    expect(await openOnes()).toEqual([]);
    const other = await createTimeslot(calendar, { resourceReference, start: '2099-06-01T10:15', raster: 60 });
    expect(await openOnes()).toEqual([null]);
    await join();
    expect(await reasonOf(join())).toBe('slot.unavailable full');
    await setTimeslot({ state: TimeslotState.CREATED }, other.reference);
    expect(await reasonOf(join())).toBe('slot.unavailable closed');
  });

  it('that was made otherwise is open whatever the timeslots are', async () => {
    const timeslot = await createTimeslot(calendar, { state: TimeslotState.CREATED });
    const { resourceReference } = timeslot;
    const appointmentReference = await createAppointment(calendar, { resourceReference, acceptBookings: true });
    expect(await listSlots(calendar, { resourceReference })).toMatchObject([
      { appointmentReference, timeslotReference: null },
    ]);
    await book(newBooking({ $case: 'appointmentReference', value: appointmentReference }));
  });

  it('that was made otherwise stays when its last participant leaves', async () => {
    const request = newAppointment({
      capacity: 1,
      acceptBookings: true,
      resourceReference: freshReference('resource'),
    });
    await calendar.appointments.createAppointment(request);
    const booking = newBooking(
      { $case: 'appointmentReference', value: request.reference },
      customerOf(customerReference),
    );
    await book(booking);
    await cancel(booking.reference);
    expect(await appointmentAt(request.resourceReference)).toMatchObject([{ state: 'ACTIVE' }]);
  });
});

describe('a booking that moves', () => {
  it('leaves its seat, takes one at the new place, and publishes one event', async () => {
    const [from, to] = [await createTimeslot(calendar), await createTimeslot(calendar, { defaultCapacity: 2 })];
    const place = placeIn(from, '10:30');
    Object.assign(place!.value, {
      description: 'Haircut',
      contactReference: 'staff@test',
      price: { value: 12.5, currency: 'CHF' },
    });
    const booking = newBooking(place, customerOf(customerReference));
    const before = await book(booking);
    const target = placeIn(to, '11:00', { productReference: undefined });
    const { participation, slotJson } = await change(booking.reference, { place: target, message: 'Sorry' });
    expect(JSON.parse(slotJson.toString())).toMatchObject({
      start: '2099-06-01T09:00:00Z',
      timeslotReference: to.reference,
      productReference: 'product@test',
      description: 'Haircut',
      capacity: 2,
      seats: 1,
      price: { value: 12.5, currency: 'CHF' },
    });
    expect(participation).toMatchObject({
      reference: booking.reference,
      state: ParticipationState.BOOKED,
      messages: ['Sorry'],
    });
    expect(participation.appointmentReference).not.toBe(before.participation.appointmentReference);
    expect(await appointmentAt(to.resourceReference)).toMatchObject([
      { contactReference: 'staff@test', participations: [{ reference: booking.reference, state: 'BOOKED' }] },
    ]);
    expect(await appointmentAt(from.resourceReference)).toMatchObject([{ state: 'CANCELLED', participations: [] }]);
    expect(await startsOf(from.resourceReference)).toHaveLength(4);
    expect(await seatsOf(calendar, participation.appointmentReference)).toBe(1);
    const moved = {
      cause: ParticipationChangeCause.MOVED,
      version: 2,
      fromState: ParticipationState.BOOKED,
      toState: ParticipationState.BOOKED,
      notify: true,
    };
    expect(await eventsOf(calendar, booking.reference)).toMatchObject([{ version: 1 }, moved]);
    // Where it is already.
    expect(await change(booking.reference, { place: target })).toMatchObject({ participation });
    expect(await eventsOf(calendar, booking.reference)).toHaveLength(2);
  });

  it('may overlap its present place if nobody else is there', async () => {
    const timeslot = await createTimeslot(calendar, { defaultCapacity: 2 });
    const [alone, together] = [
      newBooking(placeIn(timeslot, '10:00'), customerOf(customerReference)),
      newBooking(placeIn(timeslot, '11:00'), customerOf(customerReference)),
    ];
    await book(alone);
    await book(together);
    await book(newBooking(placeIn(timeslot, '11:00'), customerOf(customerReference)));
    await change(alone.reference, { place: placeIn(timeslot, '10:00', { duration: 60 }) });
    expect(await reasonOf(change(together.reference, { place: placeIn(timeslot, '11:00', { duration: 60 }) }))).toBe(
      'slot.unavailable taken',
    );
    expect(
      (await appointmentAt(timeslot.resourceReference))
        .filter(({ state }) => state === 'ACTIVE')
        .map(({ start, end }) => [start, end]),
    ).toEqual([
      ['2099-06-01T08:00:00Z', '2099-06-01T09:00:00Z'],
      ['2099-06-01T09:00:00Z', '2099-06-01T09:30:00Z'],
    ]);
  });

  it('stays as it is if the new place cannot be booked', async () => {
    const timeslot = await createTimeslot(calendar);
    const booking = newBooking(placeIn(timeslot, '10:00'), customerOf(customerReference));
    const { participation } = await book(booking);
    await book(newBooking(placeIn(timeslot, '11:00'), customerOf(customerReference)));
    expect(await reasonOf(change(booking.reference, { place: placeIn(timeslot, '11:00') }))).toBe(
      'slot.unavailable full',
    );
    expect(await reasonOf(change(booking.reference, { place: placeIn(timeslot, '11:10') }))).toBe(
      'slot.unavailable off_raster',
    );
    expect(
      await reasonOf(change(booking.reference, { place: { $case: 'appointmentReference', value: 'unknown@test' } })),
    ).toBe('appointment.not_found');
    const present = {
      participation: (
        await calendar.participations.getParticipation({ ...owned, participationReference: booking.reference })
      ).participation,
    };
    expect(present).toEqual({ participation });
    expect(await seatsOf(calendar, participation.appointmentReference)).toBe(1);
  });

  it('is rejected unless it is BOOKED or REQUESTED', async () => {
    const timeslot = await createTimeslot(calendar);
    const hold = newBooking(placeIn(timeslot, '10:00'));
    const requested = newBooking(placeIn(timeslot, '10:30'), {
      ...customerOf(customerReference),
      state: ParticipationState.REQUESTED,
    });
    await book(hold);
    await book(requested);
    expect(await reasonOf(change(hold.reference, { place: placeIn(timeslot, '11:00') }))).toBe(
      'participation.move_not_allowed',
    );
    const { participation } = await change(requested.reference, { place: placeIn(timeslot, '11:30') });
    expect(participation).toMatchObject({ state: ParticipationState.REQUESTED });
    expect(await seatsOf(calendar, participation.appointmentReference)).toBe(0);
    await cancel(requested.reference);
    expect(await reasonOf(change(requested.reference, { place: placeIn(timeslot, '11:00') }))).toBe(
      'participation.move_not_allowed',
    );
    expect(await reasonOf(change('unknown@test', { place: placeIn(timeslot, '11:00') }))).toBe(
      'participation.not_found',
    );
  });
});

describe('a hold', () => {
  it('is confirmed for the customer in the request, and by nobody without one', async () => {
    const timeslot = await createTimeslot(calendar);
    const hold = newBooking(placeIn(timeslot, '10:00'));
    await book(hold);
    expect(await reasonOf(change(hold.reference, {}))).toBe('booking.customer_missing');
    const move = {
      ...owned,
      participationReference: hold.reference,
      state: ParticipationState.BOOKED,
      ignoreCapacity: false,
      sendMails: true,
    };
    expect(await reasonOf(calendar.participations.updateParticipation(move))).toBe('booking.customer_missing');
    expect(
      await reasonOf(change(hold.reference, { customer: { $case: 'customerReference', value: 'unknown@test' } })),
    ).toBe('customer.not_found');
    const person = { customerReference: freshReference('customer'), userName: 'Ada', email: 'ada@example.com' };
    const { participation } = await change(hold.reference, { customer: { $case: 'newCustomer', value: person } });
    expect(participation).toMatchObject({
      state: ParticipationState.BOOKED,
      name: 'Ada',
      email: 'ada@example.com',
      customerReference: person.customerReference,
    });
    expect(await change(hold.reference, { customer: { $case: 'newCustomer', value: person } })).toMatchObject({
      participation,
    });
    expect(
      await reasonOf(change(hold.reference, { customer: { $case: 'customerReference', value: customerReference } })),
    ).toBe('participation.move_not_allowed');
    expect(await eventsOf(calendar, hold.reference)).toMatchObject([
      { notify: false },
      { notify: true, fromState: ParticipationState.RESERVED, toState: ParticipationState.BOOKED },
    ]);
  });

  it('is confirmed for one of two customers who confirm it at once', async () => {
    const customers = await Promise.all([createCustomer(calendar), createCustomer(calendar)]);
    const timeslot = await createTimeslot(calendar, { start: '2099-06-01T06:00' });
    for (const time of ['06:00', '06:30', '07:00', '07:30', '08:00', '08:30', '09:00', '09:30']) {
      const hold = newBooking(placeIn(timeslot, time));
      await book(hold);
      const outcomes = await Promise.all(
        customers.map((value) => {
          const confirmed = change(hold.reference, { customer: { $case: 'customerReference', value } });
          return confirmed.then(
            ({ participation }) => participation.customerReference === value,
            async () => reasonOf(confirmed),
          );
        }),
      );
      expect(outcomes.map(String).toSorted()).toEqual(['participation.move_not_allowed', 'true']);
    }
  });

  it('of somebody who was embedded in the appointment keeps nothing of them when it is confirmed for a customer', async () => {
    const email = `${freshReference('embedded').slice(0, -5)}@example.com`;
    const reference = freshReference('participation');
    const appointment = newAppointment({
      participations: [
        { reference, name: 'Embedded', email, mobile: '+49 151', note: 'Embedded', state: ParticipationState.RESERVED },
      ],
    });
    await calendar.appointments.createAppointment(appointment);
    expect(await calendar.appointments.createAppointment(appointment)).toMatchObject({ created: false });
    const findByAddress = async () =>
      (await calendar.removals.findEmbeddedParticipations({ crmId: owned.crmId, email })).participationIds;
    expect(await findByAddress()).toHaveLength(1);
    const nameOnly = { customerReference: freshReference('customer'), userName: 'Ada' };
    const { participation } = await change(reference, { customer: { $case: 'newCustomer', value: nameOnly } });
    expect(participation).toMatchObject({
      state: ParticipationState.BOOKED,
      name: 'Ada',
      email: undefined,
      mobile: undefined,
      note: undefined,
      customerReference: nameOnly.customerReference,
    });
    // A repetition would confirm what is in it.
    expect(await reasonOf(calendar.appointments.createAppointment(appointment))).toBe('appointment.reference_taken');
    expect(await findByAddress()).toEqual([]);
    const row = await calendar.database.kysely
      .selectFrom('participation')
      .selectAll()
      .where('reference', '=', reference)
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({ name: null, email: null, mobile: null, note: null });
  });

  it('that has expired is not found', async () => {
    const timeslot = await createTimeslot(calendar);
    const hold = newBooking(placeIn(timeslot, '10:00'));
    await book(hold);
    expect(
      await reasonOf(
        change(hold.reference, { customer: { $case: 'customerReference', value: customerReference } }, late),
      ),
    ).toBe('participation.not_found');
    expect(await book(hold, late)).toMatchObject({ created: true });
  });
});

describe('a list of slots', () => {
  const most = 4_000;
  const own = { crmId: 'three', providerReference: 'full' };
  const list = (from: string, others: Partial<Parameters<typeof listSlots>[1]> = {}) =>
    listSlots(calendar, { ...own, from, to: '2099-06-01T12:00Z', ...others });
  const detailsOf = async (call: Promise<unknown>) => (await refusal(call)).errors;

  it('is refused where more than 4,000 timeslots are open, or appointments begin, at the same moment, and only there', async () => {
    const db = calendar.database.kysely;
    const { id } = await db
      .insertInto('provider')
      .values({ crmId: own.crmId, id: randomUUID(), reference: own.providerReference, timeZone: 'UTC', version: 1 })
      .returning('id')
      .executeTakeFirstOrThrow();
    const addTimeslots = (from: number, to: number) =>
      sql`
      INSERT INTO timeslot (crm_id, provider_id, reference, resource_reference, starts_at, ends_at, raster, default_capacity, default_accept_bookings, state, content_digest)
      SELECT ${own.crmId}, ${id}, 'full-' || number, 'room-' || number % 2, '2099-06-01T08:00Z', '2099-06-01T11:00Z', 60, 1, true, 'BOOKABLE', ''
        FROM generate_series(${from}::integer, ${to}) AS number`.execute(db);
    await addTimeslots(1, most);
    expect(await list('2099-06-01T10:00Z')).toHaveLength(most);
    expect(await list('2099-06-01T09:30Z', { limit: 1 })).toMatchObject([{ start: '2099-06-01T10:00:00Z' }]);

    await addTimeslots(most + 1, 2 * most + 2);
    const tooMany = 'more than 4000 timeslots are open, or appointments begin, at the same moment';
    expect(await detailsOf(list('2099-06-01T09:30Z', { limit: 1 }))).toEqual([
      { pointer: '/resourceRef', detail: `is required, because ${tooMany}` },
    ]);
    expect(await detailsOf(list('2099-06-01T08:00Z', { resourceReference: 'room-1' }))).toEqual([
      { pointer: '/resourceRef', detail: `names a resource of which ${tooMany}` },
    ]);
    expect(await list('2099-06-01T11:00Z')).toEqual([]);

    await sql`DELETE FROM timeslot WHERE crm_id = ${own.crmId}`.execute(db);
    const addAppointments = (from: number, to: number) =>
      sql`
      INSERT INTO appointment (crm_id, provider_id, reference, resource_reference, product_reference, starts_at, ends_at, capacity, taken, accept_bookings, state, content_digest)
      SELECT ${own.crmId}, ${id}, 'full-' || number, 'room', 'product', '2099-06-01T08:00Z', '2099-06-01T11:00Z', 1, 0, true, 'ACTIVE', ''
        FROM generate_series(${from}::integer, ${to}) AS number`.execute(db);
    await addAppointments(1, most);
    expect(await list('2099-06-01T07:00Z')).toHaveLength(most);
    await addAppointments(most + 1, most + 1);
    expect(await detailsOf(list('2099-06-01T07:00Z', { limit: 1 }))).toEqual([
      { pointer: '/resourceRef', detail: `is required, because ${tooMany}` },
    ]);
    expect(await list('2099-06-01T07:00Z', { resourceReference: 'other' })).toEqual([]);
  });
});

describe('the booking rules of a provider', () => {
  /** Of another CRM, so that the slots of other tests are not affected. */
  const provider = { crmId: 'two', providerReference: 'p1' };

  it('have defaults, and keep what is not given', async () => {
    const { rules } = await calendar.bookings.getBookingRules(provider);
    const { id: providerId } = await calendar.database.kysely
      .selectFrom('provider')
      .select('id')
      .where('crmId', '=', provider.crmId)
      .where('reference', '=', provider.providerReference)
      .executeTakeFirstOrThrow();
    const defaults = {
      minimumNotice: 0,
      horizon: undefined,
      changeNotice: 0,
      confirmation: 'CONFIRMATION_BOOKED',
      page: false,
      reminders: [],
      notifyProvider: false,
      maxPerPerson: 3,
      selfService: false,
      offers: [],
      askMobile: 'ASK_MOBILE_NO',
      verifyEmail: false,
      access: Access.PUBLIC,
      embedOn: [],
      providerId,
    };
    expect(rules).toEqual(defaults);
    const offer = {
      productReference: 'product@test',
      name: 'Haircut',
      duration: 30,
      price: { value: 10, currency: 'EUR' },
      resources: [{ resourceReference: 'r', name: 'Room' }],
    };
    await calendar.bookings.updateBookingRules({
      ...provider,
      noHorizon: false,
      horizon: 30,
      reminders: { minutes: [60] },
      offers: { offers: [offer] },
      askMobile: 'ASK_MOBILE_REQUIRED',
      embedOn: { origins: ['https://studio.example'] },
    });
    const changed = await calendar.bookings.updateBookingRules({
      ...provider,
      noHorizon: true,
      minimumNotice: 120,
      confirmation: 'CONFIRMATION_REQUESTED',
    });
    expect(changed.rules).toEqual({
      ...defaults,
      minimumNotice: 120,
      confirmation: 'CONFIRMATION_REQUESTED',
      reminders: [60],
      offers: [offer],
      askMobile: 'ASK_MOBILE_REQUIRED',
      embedOn: ['https://studio.example'],
    });
    expect(await calendar.bookings.getBookingRules(provider)).toEqual(changed);
    expect(await calendar.bookings.updateBookingRules({ ...provider, noHorizon: false })).toEqual(changed);
    expect(await reasonOf(calendar.bookings.getBookingRules({ ...provider, providerReference: 'unknown' }))).toBe(
      'provider.not_found',
    );
  });

  it('decide how soon and how far ahead a slot can be booked, by the clock of the database', async () => {
    const own = { crmId: 'one', providerReference: 'p2' };
    const resourceReference = freshReference('resource');
    const reference = freshReference('timeslot');
    const hour = 3_600_000;
    const start = new Date(Math.ceil(Date.now() / hour) * hour + 24 * hour);
    const local = (hours: number) => new Date(start.getTime() + hours * hour).toISOString().slice(0, 16) + 'Z';
    const timeslot = {
      reference,
      resourceReference,
      start: local(0),
      end: local(3),
      raster: 60,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
      state: 'TIMESLOT_STATE_BOOKABLE' as const,
    };
    await calendar.timeslots.createTimeslots({ ...own, timeslots: [timeslot] });
    await calendar.bookings.updateBookingRules({ ...own, minimumNotice: 25 * 60, horizon: 1, noHorizon: false });
    const listed = async (at: Calendar, ignoreNotice = false) =>
      (await listSlots(at, { ...own, resourceReference, from: local(-100), to: local(100), ignoreNotice })).map(
        ({ start: time }) => time.slice(0, 16) + 'Z',
      );
    const attempt = (at: Calendar, hours: number, ignoreNotice = false) =>
      reasonOf(
        book(
          {
            ...newBooking(
              {
                $case: 'timeslot',
                value: { timeslotReference: reference, start: local(hours), productReference: 'p' },
              },
              { ignoreNotice },
            ),
            ...own,
          },
          at,
        ),
      );
    await using yesterday = await calendar.startReplicaAt('-1 hour');
    await using tomorrow = await calendar.startReplicaAt('3 hours');
    // Now, the first begins in 24 to 25 hours.
    expect([await listed(calendar), await listed(calendar, true)]).toEqual([[], []]);
    expect(await attempt(calendar, 0)).toBe('slot.unavailable too_soon');
    expect(await attempt(calendar, 0, true)).toBe('slot.unavailable too_late');
    expect(await attempt(yesterday, 2)).toBe('slot.unavailable too_late');
    await calendar.bookings.updateBookingRules({ ...own, horizon: 2, noHorizon: false });
    expect(await listed(calendar)).toEqual([local(1), local(2)]);
    expect(await listed(calendar, true)).toEqual([local(0), local(1), local(2)]);
    expect([await listed(tomorrow), await listed(yesterday)]).toEqual([[], [local(0), local(1), local(2)]]);
    expect(await attempt(tomorrow, 2)).toBe('slot.unavailable too_soon');
  });
});
