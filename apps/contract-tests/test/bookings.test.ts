import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { apiInfo, type Appointment, type Booking, listSlots, type Slot } from './answers.ts';
import { someOf } from '@scheduling/testing';
import { path, type Problem, readPages } from '@scheduling/test-stack/client';
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
import { waitForMails } from '@scheduling/test-stack/inbox';
import { createBlock } from './blocks.ts';
import { loseAnswer, withLockedRow } from './lost-answers.ts';
import { withoutTime } from './mails.ts';

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
});

const bookings = (): string => `${practice.at}/bookings`;
const participation = (reference: string): string => practice.at + path`/participations/${reference}`;
const newCustomer = () => {
  const name = unique('guest');
  return {
    customerReference: `${name}@test`,
    userName: 'Ada Byron',
    email: `${name}@customers.example`,
    language: 'en',
  };
};

/** A booking of the first step of a timeslot of `newTimeslot`. */
function newBooking(timeslotReference: string, fields: Record<string, unknown> = {}) {
  return {
    reference: `${unique('booking')}@test`,
    timeslotReference,
    start: '2031-03-03T08:00',
    productReference: practice.product,
    productName: 'Haircut',
    customerReference: practice.customer,
    state: 'BOOKED',
    ...fields,
  };
}

async function book(body: Record<string, unknown>): Promise<Booking> {
  const { status, text, body: answer } = await crm.post<{ booking: Booking }>(bookings(), body);
  expect(status, text).toBe(201);
  return answer.booking;
}

const startsOf = (slots: Slot[]): string[] => slots.map(({ start }) => start.slice(11, 16));

async function useNewPractice(): Promise<void> {
  practice = await createPractice(crm);
}

describe('a free place (interface 10.1, 10.2)', () => {
  beforeEach(useNewPractice);

  it('is listed with all fields until it is booked, by a customer that the booking creates', async () => {
    const address = { city: 'Basel', zip: '4051', country: 'CH', street: 'Ring', number: '2' };
    const timeslotReference = await createTimeslot(practice, { end: '2031-03-03T09:00', defaultCapacity: 1, address });
    const { country: countryCode, ...rest } = address;
    const place = {
      start: '2031-03-03T07:00:00Z',
      end: '2031-03-03T07:30:00Z',
      resourceReference: practice.resource,
      timeslotReference,
      appointmentReference: null,
      productReference: null,
      description: null,
      capacity: 1,
      seats: 1,
      address: { ...rest, countryCode },
      price: null,
    };
    const second = { ...place, start: '2031-03-03T07:30:00Z', end: '2031-03-03T08:00:00Z' };
    expect(await listSlots(practice)).toStrictEqual([place, second]);

    const { language, ...customer } = newCustomer();
    const price = { value: 49.95, currency: 'CHF' };
    const request = newBooking(timeslotReference, {
      customerReference: undefined,
      customer: { ...customer, language },
      price,
      contactReference: 'anyone@test',
      message: 'Hello',
    });
    const booked = await crm.post<{ booking: Booking }>(bookings(), request);
    expect(booked.status).toBe(201);
    const { appointmentReference } = booked.body.booking.participation;
    expect(appointmentReference).toMatch(/@scheduling$/);
    expect(booked.body).toStrictEqual({
      'api-info': apiInfo,
      booking: {
        participation: {
          reference: request.reference,
          appointmentReference,
          customerReference: customer.customerReference,
          name: customer.userName,
          email: customer.email,
          mobile: null,
          note: null,
          state: 'BOOKED',
          messages: ['Hello'],
          metadata: null,
          noShow: false,
        },
        slot: {
          ...place,
          appointmentReference,
          productReference: practice.product,
          description: 'Haircut',
          seats: 0,
          price,
        },
      },
    });
    expect(await listSlots(practice)).toStrictEqual([second]);

    const { participation: shown } = booked.body.booking;
    expect(await crm.get(participation(request.reference))).toMatchObject({
      status: 200,
      body: { participation: shown },
    });
    const appointment = await crm.get<{ appointment: Appointment }>(
      practice.at + path`/appointments/${appointmentReference}`,
    );
    expect(appointment).toMatchObject({
      status: 200,
      body: { appointment: { capacity: 1, acceptBookings: true, contactReference: 'anyone@test', price } },
    });
    expect(appointment.body.appointment.participations).toStrictEqual([shown]);
    const { body: known } = await crm.get(practice.at + path`/customers/${customer.customerReference}`);
    expect(known).toMatchObject({ customer: { userName: customer.userName, email: customer.email, language } });
    const [mail] = await waitForMails(customer.email, 1);
    expect(mail!.subject).toMatch(/^Your booking: .* – Haircut$/);
    expect(mail!.text).toContain('Hello');
  });

  it('is booked once by repeated requests, also if the connection was cut before the first was answered', async () => {
    const timeslotReference = await createTimeslot(practice);
    const request = newBooking(timeslotReference);
    await withLockedRow('timeslot', timeslotReference, async (isWaitedFor) => {
      await loseAnswer(crm, bookings(), request, { isWaitedFor });
    });
    const first = await crm.post<{ booking: Booking }>(bookings(), request);
    expect([200, 201], first.text).toContain(first.status);
    const again = await crm.post(bookings(), request);
    expect([again.status, again.body]).toStrictEqual([200, first.body]);
    expect((await crm.get<Appointment[]>(`${practice.at}/appointments`)).body).toHaveLength(1);
    // The mail about the request, which is sent last, marks the end of the list of mails.
    await createParticipation(practice, first.body.booking.participation.appointmentReference, { state: 'REQUESTED' });
    const mails = await waitForMails(practice.customerEmail, 2);
    expect(mails.map(withoutTime).toSorted()).toEqual(['Your booking: Haircut', 'Your request: Haircut']);
  });

  it('is returned as it is now when the request is repeated, and its reference is taken elsewhere and for others', async () => {
    const request = newBooking(await createTimeslot(practice, { defaultCapacity: 2 }));
    const { slot, participation: booked } = await book(request);
    await book({ ...request, reference: unique('second') });
    expect(await crm.post(participation(request.reference), { state: 'CANCELED' })).toMatchObject({ status: 200 });
    const now = { participation: { ...booked, state: 'CANCELED' }, slot: { ...slot, seats: 1 } };
    const inAppointment = {
      reference: request.reference,
      appointmentReference: booked.appointmentReference,
      customerReference: practice.customer,
      state: 'BOOKED',
    };
    expect(await crm.post(bookings(), request)).toMatchObject({ status: 200, body: { booking: now } });
    expect(await crm.post(bookings(), inAppointment)).toMatchObject({
      status: 200,
      body: { booking: { ...now, slot: { ...now.slot, timeslotReference: null } } },
    });

    const taken = { status: 409, body: { code: 'participation.reference_taken' } };
    for (const change of [
      { start: '2031-03-03T08:30' },
      { duration: 60 },
      { productReference: 'other@test' },
      { customerReference: undefined, customer: newCustomer() },
    ]) {
      expect(await crm.post(bookings(), { ...request, ...change })).toMatchObject(taken);
    }
    const elsewhere = await createAppointment(practice, { acceptBookings: true });
    expect(await crm.post(bookings(), { ...inAppointment, appointmentReference: elsewhere })).toMatchObject(taken);
  });

  it('may be several steps of the raster long', async () => {
    const timeslotReference = await createTimeslot(practice);
    expect(startsOf(await listSlots(practice, { duration: 90 }))).toEqual([
      '07:00',
      '07:30',
      '08:00',
      '08:30',
      '09:00',
      '09:30',
    ]);
    const { slot } = await book(newBooking(timeslotReference, { start: '2031-03-03T09:00', duration: 90 }));
    expect(slot).toMatchObject({ start: '2031-03-03T08:00:00Z', end: '2031-03-03T09:30:00Z' });
    expect(startsOf(await listSlots(practice))).toEqual(['07:00', '07:30', '09:30', '10:00', '10:30']);
    expect(startsOf(await listSlots(practice, { duration: 90 }))).toEqual(['09:30']);
    expect(await listSlots(practice, { duration: 45 })).toEqual([]);
    expect(await crm.post(bookings(), newBooking(timeslotReference, { duration: 45 }))).toMatchObject({
      status: 409,
      body: { reason: 'off_raster', detail: expect.stringContaining('must be a multiple') as string },
    });
  });

  it('is free again when its last participant cancels, and no longer holds up the deletion of the timeslot', async () => {
    const timeslotReference = await createTimeslot(practice, { end: '2031-03-03T08:30', defaultCapacity: 2 });
    const [first, second] = [await book(newBooking(timeslotReference)), await book(newBooking(timeslotReference))];
    const { appointmentReference } = first.participation;
    expect(second.participation.appointmentReference).toBe(appointmentReference);
    expect(await listSlots(practice)).toEqual([]);
    const appointment = practice.at + path`/appointments/${appointmentReference}`;
    const timeslot = practice.at + path`/timeslots/${timeslotReference}`;

    await crm.post(participation(first.participation.reference), { state: 'CANCELED' });
    expect(await listSlots(practice)).toMatchObject([{ appointmentReference, seats: 1 }]);
    expect(await crm.delete(timeslot)).toMatchObject({ status: 409, body: { code: 'timeslot.has_appointments' } });
    await crm.post(participation(second.participation.reference), { state: 'CANCELED' });
    expect(await crm.get(appointment)).toMatchObject({
      status: 200,
      body: { appointment: { state: 'CANCELLED', participations: [{ state: 'CANCELED' }, { state: 'CANCELED' }] } },
    });
    expect(await listSlots(practice)).toMatchObject([{ appointmentReference: null, seats: 2 }]);
    expect(await crm.delete(timeslot)).toMatchObject({ status: 204 });
    expect(await listSlots(practice)).toEqual([]);
  });

  it('is free again when its only customer is deleted', async () => {
    const timeslotReference = await createTimeslot(practice, { end: '2031-03-03T08:30' });
    const customer = newCustomer();
    const { participation: booked } = await book(
      newBooking(timeslotReference, { customerReference: undefined, customer }),
    );
    const at = practice.at + path`/customers/${customer.customerReference}`;
    const refused = await crm.delete<Problem>(at);
    expect(refused).toMatchObject({ status: 409, body: { code: 'customer.has_future_appointments' } });
    expect(refused.body.detail).toContain(booked.appointmentReference);
    expect(await listSlots(practice)).toEqual([]);
    expect(await crm.delete(at, undefined, { query: { ignoreFutureAppointments: true } })).toMatchObject({
      status: 204,
    });
    expect(await listSlots(practice)).toMatchObject([{ timeslotReference, appointmentReference: null, seats: 1 }]);
    const { text: appointments } = await crm.get(`${practice.at}/appointments`);
    for (const personal of [customer.userName, customer.email, customer.customerReference])
      expect(appointments).not.toContain(personal);
    expect(await crm.delete(practice.at + path`/timeslots/${timeslotReference}`)).toMatchObject({ status: 204 });
  });
});

describe('the customer of a booking', () => {
  beforeEach(useNewPractice);

  it('is missing only while the place is held, and a hold without one cannot be BOOKED', async () => {
    const timeslotReference = await createTimeslot(practice, { end: '2031-03-03T08:30' });
    for (const state of ['BOOKED', 'REQUESTED']) {
      expect(
        await crm.post(bookings(), newBooking(timeslotReference, { customerReference: undefined, state })),
      ).toMatchObject({
        status: 400,
        body: { code: 'booking.invalid', errors: [{ pointer: '/customerReference' }] },
      });
    }
    const before = Date.now();
    const { participation: hold } = await book(
      newBooking(timeslotReference, { customerReference: undefined, state: 'RESERVED' }),
    );
    expect(hold).toMatchObject({
      customerReference: null,
      name: '',
      email: null,
      mobile: null,
      state: 'RESERVED',
      messages: null,
      metadata: null,
      noShow: false,
    });
    expect(Date.parse(hold.expiresAt!) - before).toBeGreaterThan(179_000 - 1_000);
    expect(await listSlots(practice)).toEqual([]);
    expect(await crm.post(participation(hold.reference), { state: 'BOOKED' })).toMatchObject({
      status: 409,
      body: { code: 'booking.customer_missing' },
    });
    expect(await crm.get(participation(hold.reference))).toMatchObject({
      body: { participation: { state: 'RESERVED' } },
    });
    expect(await crm.post(participation(hold.reference), { state: 'CANCELED' })).toMatchObject({ status: 200 });
    expect(await listSlots(practice)).toHaveLength(1);
  });

  it('is either a new one or a reference, and an existing one stays unchanged', async () => {
    const timeslotReference = await createTimeslot(practice);
    const both = await crm.post<Problem>(bookings(), newBooking(timeslotReference, { customer: newCustomer() }));
    expect(both).toMatchObject({ status: 400, body: { code: 'request.invalid' } });
    expect(both.body.errors!.map(({ pointer }) => pointer)).toEqual(['/customerReference', '/customer']);

    const sameReference = { ...newCustomer(), customerReference: practice.customer };
    const { participation: booked } = await book(
      newBooking(timeslotReference, { customerReference: undefined, customer: sameReference }),
    );
    expect(booked).toMatchObject({
      customerReference: practice.customer,
      name: 'Grace Hopper',
      email: practice.customerEmail,
    });
    const unknown = newBooking(timeslotReference, { start: '2031-03-03T09:00', customerReference: 'nobody@test' });
    expect(await crm.post(bookings(), unknown)).toMatchObject({ status: 404, body: { code: 'customer.not_found' } });
  });

  it('is not created if the place is not free', async () => {
    const timeslotReference = await createTimeslot(practice);
    await book(newBooking(timeslotReference));
    const customer = newCustomer();
    const late = newBooking(timeslotReference, { customerReference: undefined, customer });
    expect(await crm.post(bookings(), late)).toMatchObject({ status: 409, body: { code: 'slot.unavailable' } });
    expect(await crm.get(practice.at + path`/customers/${customer.customerReference}`)).toMatchObject({ status: 204 });
  });
});

describe('slot.unavailable says why', () => {
  let timeslotReference: string;
  const openAppointment = (appointmentReference: string) => {
    const {
      timeslotReference: _timeslot,
      start: _start,
      productReference: _product,
      productName: _name,
      ...rest
    } = newBooking('');
    return { ...rest, appointmentReference };
  };
  const refused = (reason: string) => ({ status: 409, body: { code: 'slot.unavailable', reason } });
  const setRules = async (rules: Record<string, unknown>): Promise<void> => {
    expect(await crm.put(`${practice.at}/booking-rules`, rules)).toMatchObject({
      status: 200,
      body: { bookingRules: rules },
    });
  };

  beforeAll(async () => {
    await useNewPractice();
    timeslotReference = await createTimeslot(practice);
  });

  it('taken, by another appointment', async () => {
    await createAppointment(practice, { start: '2031-03-03T11:15', end: '2031-03-03T11:20', acceptBookings: true });
    expect(await crm.post(bookings(), newBooking(timeslotReference, { start: '2031-03-03T11:00' }))).toMatchObject(
      refused('taken'),
    );
  });

  it('full, if all seats of the appointment are taken', async () => {
    const { participation: booked } = await book(newBooking(timeslotReference));
    expect(await crm.post(bookings(), newBooking(timeslotReference))).toMatchObject(refused('full'));
    expect(await crm.post(bookings(), openAppointment(booked.appointmentReference))).toMatchObject(refused('full'));
  });

  it('described by what is missing: both ways to name a place, and how an address has an offset', async () => {
    const { timeslotReference: _timeslot, ...nowhere } = newBooking(timeslotReference);
    expect(await crm.post(bookings(), nowhere)).toMatchObject({
      status: 400,
      body: {
        errors: [
          {
            pointer: '/timeslotReference',
            detail: 'is required, with start and productReference, unless appointmentReference is given',
          },
        ],
      },
    });
    expect(await crm.get(`${practice.at}/slots?from=2031-03-03T09:00+01:00`)).toMatchObject({
      status: 400,
      body: { errors: [{ parameter: 'from', detail: expect.stringContaining('is written %2B') as string }] },
    });
  });

  it('cancelled: then the answer says how to book again', async () => {
    const own = await createTimeslot(practice, { resourceReference: 'again@test' });
    const { participation: booked } = await book(newBooking(own));
    expect(await crm.post(participation(booked.reference), { state: 'CANCELED' })).toMatchObject({ status: 200 });
    expect(await crm.post(participation(booked.reference), { state: 'BOOKED' })).toMatchObject({
      status: 409,
      body: {
        code: 'appointment.cancelled',
        detail: expect.stringContaining('book again with a new reference') as string,
      },
    });
  });

  it('private, if the appointment is not publicly bookable', async () => {
    const appointment = await createAppointment(practice, { acceptBookings: false, resourceReference: 'other@test' });
    expect(await crm.post(bookings(), openAppointment(appointment))).toMatchObject(refused('private'));
    const privately = await createTimeslot(practice, {
      resourceReference: 'private@test',
      defaultAcceptBookings: false,
      defaultCapacity: 2,
    });
    const { participation: booked } = await book(newBooking(privately));
    expect(await crm.post(bookings(), openAppointment(booked.appointmentReference))).toMatchObject(refused('private'));
    expect(startsOf(await listSlots(practice, { resourceRef: 'private@test' }))[0]).toBe('07:30');
  });

  it('off_raster, if it is not a step of the timeslot, with the nearest possible starts', async () => {
    const nearest = {
      '2031-03-03T09:10': '2031-03-03T08:00:00Z or 2031-03-03T08:30:00Z',
      '2031-03-03T07:30': '2031-03-03T07:00:00Z',
      '2031-03-03T12:00': '2031-03-03T10:30:00Z',
    };
    for (const [start, starts] of Object.entries(nearest)) {
      const detail = expect.stringContaining(`slot of 30 minutes are ${starts}. List`) as string;
      expect(await crm.post(bookings(), newBooking(timeslotReference, { start }))).toMatchObject({
        status: 409,
        body: { code: 'slot.unavailable', reason: 'off_raster', detail },
      });
    }
  });

  it('closed, if it is hidden or cancelled', async () => {
    const hidden = await createTimeslot(practice, { state: 'CREATED', resourceReference: 'hidden@test' });
    const without = await createTimeslot(practice, { defaultCapacity: 0, resourceReference: 'hidden@test' });
    for (const reference of [hidden, without])
      expect(await crm.post(bookings(), newBooking(reference))).toMatchObject(refused('closed'));
    const cancelled = await createAppointment(practice, { acceptBookings: true, resourceReference: 'other@test' });
    await crm.delete(`${practice.at}/appointments`, { appointmentReference: cancelled });
    expect(await crm.post(bookings(), openAppointment(cancelled))).toMatchObject(refused('closed'));
  });

  it('too_soon, in the past and within the minimum notice, which can be disregarded', async () => {
    const past = await createTimeslot(practice, { start: '2020-03-02T08:00', end: '2020-03-02T12:00' });
    expect(
      await crm.post(bookings(), newBooking(past, { start: '2020-03-02T08:00' }), { query: { ignoreNotice: true } }),
    ).toMatchObject(refused('too_soon'));
    const day = Temporal.Now.plainDateISO('UTC').add({ days: 2 }).toString();
    const soon = await createTimeslot(practice, { start: `${day}T08:00`, end: `${day}T09:00` });
    const period = { from: `${day}T00:00`, to: `${day}T23:59` };
    await setRules({ minimumNotice: 7 * 24 * 60 });
    const request = newBooking(soon, { start: `${day}T08:00` });
    expect(await listSlots(practice, period)).toEqual([]);
    expect(await crm.post(bookings(), request)).toMatchObject(refused('too_soon'));
    expect(await listSlots(practice, { ...period, ignoreNotice: true })).toHaveLength(2);
    expect(await crm.post(bookings(), request, { query: { ignoreNotice: true } })).toMatchObject({ status: 201 });
    await setRules({ minimumNotice: 0 });
    expect(await listSlots(practice, period)).toHaveLength(1);
  });

  it('too_late, after the horizon', async () => {
    await setRules({ horizon: 30 });
    const late = newBooking(timeslotReference, { start: '2031-03-03T09:00' });
    expect(await crm.post(bookings(), late)).toMatchObject(refused('too_late'));
    expect(await listSlots(practice)).toEqual([]);
    await setRules({ horizon: null });
    expect(await crm.post(bookings(), late)).toMatchObject({ status: 201 });
  });
});

describe('open appointments', () => {
  beforeEach(useNewPractice);

  it('have room for a request, which takes no seat until it is confirmed', async () => {
    const timeslotReference = await createTimeslot(practice, { end: '2031-03-03T08:30' });
    const { slot, participation: requested } = await book(newBooking(timeslotReference, { state: 'REQUESTED' }));
    expect(slot.seats).toBe(1);
    expect(await listSlots(practice)).toStrictEqual([slot]);
    const joined = await book(newBooking(timeslotReference));
    expect(joined).toMatchObject({
      participation: { appointmentReference: requested.appointmentReference },
      slot: { ...slot, seats: 0 },
    });
    const full = { status: 409, body: { code: 'participation.capacity_exhausted' } };
    expect(await crm.post(participation(requested.reference), { state: 'BOOKED' })).toMatchObject(full);
    await crm.post(participation(joined.participation.reference), { state: 'CANCELED' });
    expect(await crm.post(participation(requested.reference), { state: 'BOOKED' })).toMatchObject({ status: 200 });
    expect(await listSlots(practice)).toEqual([]);
  });

  it('of a series are listed without a timeslot, and booked by their reference', async () => {
    const {
      reference: _reference,
      start: _start,
      end: _end,
      ...course
    } = newAppointment(practice, { acceptBookings: true, capacity: 2 });
    const series = await crm.post<Appointment[]>(`${practice.at}/appointments`, {
      ...course,
      series_data: { from: '2031-03-03T09:00', to: '2031-03-03T10:30', raster: 30 },
    });
    const listed = await listSlots(practice);
    expect(listed).toMatchObject(
      series.body.map(({ reference }) => ({
        timeslotReference: null,
        appointmentReference: reference,
        capacity: 2,
        seats: 2,
      })),
    );
    expect(await listSlots(practice, { productRef: 'other@test' })).toEqual([]);
    const [{ appointmentReference }] = listed as [Slot];
    for (const seats of [1, 0]) {
      const booked = await book({
        reference: unique('b'),
        appointmentReference,
        customerReference: practice.customer,
        state: 'BOOKED',
      });
      expect(booked.slot).toStrictEqual({ ...listed[0], seats });
    }
    expect(await listSlots(practice)).toStrictEqual(listed.slice(1));
    // The CRM made it, so it stays when everybody has left.
    const { body } = await crm.get<{ appointment: Appointment }>(
      practice.at + path`/appointments/${appointmentReference!}`,
    );
    for (const { reference } of body.appointment.participations)
      await crm.post(participation(reference), { state: 'CANCELED' });
    expect(await listSlots(practice)).toStrictEqual(listed);
  });
});

describe('the list of slots', () => {
  beforeEach(useNewPractice);

  it('comes in pages', async () => {
    await createTimeslot(practice);
    await createTimeslot(practice, { raster: 60 });
    await createAppointment(practice, { acceptBookings: true, start: '2031-03-03T13:00', end: '2031-03-03T14:00' });
    const all = await listSlots(practice);
    expect(all).toHaveLength(8 + 4 + 1);
    const pages = await readPages<Slot>(crm, `${practice.at}/slots`, {
      from: '2031-03-03T00:00',
      to: '2031-03-04T00:00',
      limit: '5',
    });
    expect(pages.map(({ length }) => length)).toEqual([5, 5, 3]);
    expect(pages.flat()).toStrictEqual(all);
  });

  it('has a period of at most 92 days, which begins now if the request does not say', async () => {
    const slots = `${practice.at}/slots`;
    const invalid = { status: 400, body: { code: 'slot.invalid' } };
    expect(await crm.get(slots, { query: { from: '2031-01-01T00:00Z', to: '2031-04-03T00:00Z' } })).toMatchObject({
      status: 200,
    });
    expect(await crm.get(slots, { query: { from: '2031-01-01T00:00Z', to: '2031-04-03T00:01Z' } })).toMatchObject(
      invalid,
    );
    expect(await crm.get(slots, { query: { from: '2031-01-01T00:00', to: '2031-01-01T00:00' } })).toMatchObject(
      invalid,
    );
    const [within, after] = [
      Temporal.Now.plainDateISO('UTC').add({ days: 12 }),
      Temporal.Now.plainDateISO('UTC').add({ days: 16 }),
    ];
    for (const day of [within, after])
      await createTimeslot(practice, { start: `${day.toString()}T08:00`, end: `${day.toString()}T08:30` });
    const { body } = await crm.get<Slot[]>(slots);
    expect(body.map(({ start }) => start.slice(0, 10))).toEqual([within.toString()]);
  });

  it('has a period of calendar days in the zone of the provider', async () => {
    const slots = `${practice.at}/slots`;
    expect(await crm.get(slots, { query: { from: '2031-10-01T00:00', to: '2032-01-01T00:00' } })).toMatchObject({
      status: 200,
    });
    expect(await crm.get(slots, { query: { from: '2031-10-01T00:00', to: '2032-01-01T00:01' } })).toMatchObject({
      status: 400,
      body: { code: 'slot.invalid' },
    });
    // In spring, 92 times 24 hours are longer.
    expect(await crm.get(slots, { query: { from: '2031-03-01T00:00Z', to: '2031-06-01T00:00Z' } })).toMatchObject({
      status: 200,
    });
    for (const day of ['2031-10-29', '2031-04-03'])
      await createTimeslot(practice, { start: `${day}T08:00`, end: `${day}T10:00`, raster: 60 });
    const startsFrom = async (from: string) =>
      (await crm.get<Slot[]>(slots, { query: { from } })).body.map(({ start }) => start);
    expect(await startsFrom('2031-10-15T09:00')).toEqual(['2031-10-29T07:00:00Z']);
    expect(await startsFrom('2031-03-20T09:00')).toEqual(['2031-04-03T06:00:00Z']);
  });

  it('and bookings are only for the CRM of the provider', async () => {
    const other = await createCrm();
    const stranger = { headers: { 'x-service-client-id': other.key } };
    const request = newBooking('nothing@test');
    expect(await crm.get(`${practice.at}/slots`, stranger)).toMatchObject({ status: 403 });
    expect(await crm.post(bookings(), request, stranger)).toMatchObject({ status: 403 });
    for (const answer of [
      await other.get(`${practice.at}/slots`),
      await other.post(bookings(), request),
      await other.get(`${practice.at}/booking-rules`),
    ]) {
      expect(answer).toMatchObject({ status: 404, body: { code: 'provider.not_found' } });
    }
    expect(await crm.post(bookings(), request)).toMatchObject({ status: 404, body: { code: 'timeslot.not_found' } });
    const { reference, customerReference, state } = request;
    expect(
      await crm.post(bookings(), { reference, customerReference, state, appointmentReference: 'nothing@test' }),
    ).toMatchObject({ status: 404, body: { code: 'appointment.not_found' } });
  });
});

describe('what is listed can be booked, and nothing else', () => {
  const seed = Number(process.env['SLOTS_SEED'] ?? Math.floor(Math.random() * 1_000_000));
  const plans = fc.sample(calendarPlan(), { seed, numRuns: 10, unbiased: true });
  const tried = { booked: 0, refused: 0 };

  it.each(someOf(plans.map((plan, index) => [index + 1, plan] as const)))(
    `in calendar %i of seed ${seed}`,
    async (_, plan) => {
      await useNewPractice();
      const places = await createCalendar(plan);
      const query: Record<string, number> = plan.duration === undefined ? {} : { duration: plan.duration };
      const listed = await listSlots(practice, query);
      for (const slot of listed) {
        const { participation: hold, slot: held } = await book(holdOf(slot));
        expect([held.start, held.end]).toEqual([slot.start, slot.end]);
        // The place is free again for those that overlap it.
        expect(await crm.post(participation(hold.reference), { state: 'CANCELED' })).toMatchObject({ status: 200 });
      }
      const listedKeys = new Set(listed.map(keyOf));
      const others = places.filter((place) => !listedKeys.has(keyOf(place)));
      for (const other of others) {
        expect(await crm.post(bookings(), holdOf(other)), JSON.stringify({ plan, other })).toMatchObject({
          status: 409,
          body: { code: 'slot.unavailable' },
        });
      }
      expect(await listSlots(practice, query)).toStrictEqual(listed);
      tried.booked += listed.length;
      tried.refused += others.length;
    },
  );

  it('of which both were tried', () => {
    expect(tried.booked).toBeGreaterThan(0);
    expect(tried.refused).toBeGreaterThan(0);
  });
});

function calendarPlan() {
  const quarters = (min: number, max: number) => fc.integer({ min, max }).map((number) => number * 15);
  const often = <T>(value: T, other: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 4, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: other });
  const timeslot = fc.record({
    start: quarters(0, 16),
    minutes: quarters(3, 12),
    raster: fc.constantFrom(15, 20, 30, 45),
    defaultCapacity: fc.constantFrom(0, 1, 1, 1, 2),
    defaultAcceptBookings: fc.boolean(),
    bufferBefore: often(0, fc.constantFrom(5, 15, 30)),
    bufferAfter: often(0, fc.constantFrom(5, 15, 30)),
    state: often('BOOKABLE', fc.constant('CREATED')),
  });
  const appointment = fc.record({
    start: quarters(0, 24),
    minutes: quarters(1, 4),
    capacity: fc.integer({ min: 0, max: 2 }),
    participants: fc.integer({ min: 0, max: 2 }),
    acceptBookings: fc.boolean(),
  });
  const block = fc.record({ start: quarters(0, 24), minutes: quarters(1, 3) });
  return fc.record({
    timeslots: fc.array(timeslot, { minLength: 2, maxLength: 4 }),
    appointments: fc.array(appointment, { maxLength: 4 }),
    blocks: fc.array(block, { maxLength: 2 }),
    duration: often<number | undefined>(undefined, fc.constantFrom(30, 45, 60)),
  });
}
type Plan = ReturnType<typeof calendarPlan> extends fc.Arbitrary<infer Value> ? Value : never;

/** A step of a timeslot, or an appointment. */
type Place = Pick<Slot, 'start' | 'end' | 'timeslotReference' | 'appointmentReference'>;

const minuteMs = 60_000;

/** Creates the calendar and returns every place in it that might be a slot, and some that cannot. */
async function createCalendar({ timeslots, appointments, blocks, duration }: Plan): Promise<Place[]> {
  const at = (minutes: number): string =>
    new Date(Date.parse('2031-03-03T08:00Z') + minutes * minuteMs).toISOString().replace('.000Z', 'Z');
  const steps = timeslots.map(async ({ start, minutes, ...fields }) => {
    const { raster } = fields;
    const timeslotReference = await createTimeslot(practice, { ...fields, start: at(start), end: at(start + minutes) });
    const offsets = [
      -raster,
      5,
      ...Array.from({ length: Math.floor(minutes / raster) + 1 }, (_, step) => step * raster),
    ];
    return offsets.map((offset) => {
      const from = start + offset;
      return { start: at(from), end: at(from + (duration ?? raster)), timeslotReference, appointmentReference: null };
    });
  });
  const made = appointments.map(async ({ start, minutes, participants, ...fields }) => {
    const participations = Array.from({ length: participants }, () => ({
      reference: unique('p'),
      name: 'Name',
      email: 'p@customers.example',
      state: 'BOOKED',
    }));
    const period = { start: at(start), end: at(start + minutes) };
    return {
      ...period,
      timeslotReference: null,
      appointmentReference: await createAppointment(practice, { ...fields, ...period, participations }),
    };
  });
  await Promise.all(
    blocks.map(({ start, minutes }) => createBlock(practice, { start: at(start), end: at(start + minutes) })),
  );
  return [...(await Promise.all(steps)).flat(), ...(await Promise.all(made))];
}

/** A hold of this place. */
function holdOf({ start, end, timeslotReference, appointmentReference }: Place) {
  const duration = (Date.parse(end) - Date.parse(start)) / minuteMs;
  const place =
    appointmentReference === null
      ? { timeslotReference, start, duration, productReference: 'new@test' }
      : { appointmentReference };
  return { ...place, reference: unique('hold'), state: 'RESERVED' };
}

/** The same for a slot and for the place that it is. */
function keyOf({ start, timeslotReference, appointmentReference }: Place): string {
  return appointmentReference ?? `${timeslotReference} ${start}`;
}
