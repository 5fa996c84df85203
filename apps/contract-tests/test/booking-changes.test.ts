import ical from 'ical.js';
import { beforeEach, describe, expect, inject, it } from 'vitest';
import { type Booking, listSlots } from './answers.ts';
import { path } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createPractice,
  createTimeslot,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { type Mail, waitForMails } from '@scheduling/test-stack/inbox';
import { withoutTime } from './mails.ts';

let crm: TestCrm;
let practice: Practice;
let customer: { customerReference: string; userName: string; email: string; language: string };
beforeEach(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
  const name = unique('guest');
  customer = {
    customerReference: `${name}@test`,
    userName: 'Ada Byron',
    email: `${name}@customers.example`,
    language: 'en',
  };
});

async function book(
  timeslotReference: string,
  fields: Record<string, unknown> = {},
): Promise<Booking['participation']> {
  const place = {
    timeslotReference,
    start: '2031-03-03T08:00',
    productReference: practice.product,
    productName: 'Haircut',
  };
  const { status, body, text } = await crm.post<{ booking: Booking }>(`${practice.at}/bookings`, {
    reference: unique('b'),
    ...place,
    state: 'BOOKED',
    customer,
    ...fields,
  });
  expect(status, text).toBe(201);
  return body.booking.participation;
}

const bookingAt = (reference: string): string => practice.at + path`/bookings/${reference}`;

describe('a booking that moves from a full day to another (interface 10.3)', () => {
  it('sends one mail, which a calendar program shows as the same event at the new time', async () => {
    const [full, other] = [
      await createTimeslot(practice, { end: '2031-03-03T08:30' }),
      await createTimeslot(practice, { start: '2031-03-10T14:00', end: '2031-03-10T15:00' }),
    ];
    const { reference } = await book(full);
    expect(await listSlots(practice)).toEqual([]);
    expect(await crm.post(bookingAt(reference), { timeslotReference: full, start: '2031-03-03T08:30' })).toMatchObject({
      status: 409,
      body: { reason: 'off_raster' },
    });
    const target = { timeslotReference: other, start: '2031-03-10T14:30' };
    const moved = await crm.post<{ booking: Booking }>(bookingAt(reference), target);
    expect(moved).toMatchObject({
      status: 200,
      body: { booking: { slot: { start: '2031-03-10T13:30:00Z', description: 'Haircut', seats: 0 } } },
    });
    expect(await listSlots(practice)).toHaveLength(1);
    expect((await crm.post(bookingAt(reference), target)).body).toStrictEqual(moved.body);
    const mails = await waitForMails(customer.email, 2);
    expect(mails.map(withoutTime)).toEqual(['Your booking: Haircut', 'New time: Haircut']);
    const [before, after] = await Promise.all(mails.map(readEvent));
    expect(after!.method).toBe('REQUEST');
    expect(after!.event.uid).toBe(before!.event.uid);
    expect(after!.event.sequence).toBeGreaterThan(before!.event.sequence);
    expect(after!.event.startDate.toJSDate()).toEqual(new Date('2031-03-10T13:30:00Z'));
    expect(after!.event.endDate.toJSDate()).toEqual(new Date('2031-03-10T14:00:00Z'));
  });
});

describe('an appointment that changes (interface 4.2)', () => {
  it('sends a mail to everybody in it, unless they see no difference, which changes the event in a calendar program', async () => {
    const { appointmentReference } = await book(await createTimeslot(practice));
    const appointment = practice.at + path`/appointments/${appointmentReference}`;
    // A mail says what is true when it is written.
    await waitForMails(customer.email, 1);
    expect(await crm.put(appointment, { start: '2031-03-04T08:00', end: '2031-03-04T09:00' })).toMatchObject({
      status: 200,
      body: { appointment: { start: '2031-03-04T07:00:00Z' } },
    });
    await waitForMails(customer.email, 2);
    for (const [query, change] of [
      ['?sendMails=false', { description: 'Cut' }],
      ['', { notes: 'internal' }],
      ['', { address: 'Room 2' }],
    ] as const) {
      expect(await crm.put(appointment + query, change)).toMatchObject({ status: 200, body: { appointment: change } });
    }
    const mails = await waitForMails(customer.email, 3);
    expect(mails.map(withoutTime)).toEqual(['Your booking: Haircut', 'New time: Haircut', 'Changed: Cut']);
    const events = await Promise.all(mails.map(readEvent));
    expect(new Set(events.map(({ event }) => event.uid)).size).toBe(1);
    expect(events.map(({ event }) => event.sequence)).toEqual([1, 2, 4]);
    expect(events[1]!.event.startDate.toJSDate()).toEqual(new Date('2031-03-04T07:00:00Z'));
  });
});

describe('a field that has no meaning in a request (interface 10.2, 10.3)', () => {
  const inTimeslot = {
    start: '2031-03-03T08:30',
    duration: 30,
    productReference: 'other@test',
    productName: 'Other',
    price: { value: 1, currency: 'EUR' },
    contactReference: 'x@test',
  };
  const confirmation = () => ({ state: 'BOOKED', customerReference: 'x@test', customer });
  const refused = (...pointers: string[]) => ({
    status: 400,
    body: { code: 'request.invalid', errors: pointers.map((pointer) => ({ pointer })) },
  });
  /** For each of the fields: its name, and an object with it alone. */
  const oneByOne = (fields: object): [string, object][] =>
    Object.entries(fields).map(([name, value]) => [name, { [name]: value }]);

  it('is named when a booking changes, which stays as it is', async () => {
    const timeslotReference = await createTimeslot(practice);
    const booked = await book(timeslotReference);
    const appointmentReference = await createAppointment(practice, { acceptBookings: true });
    const change = (body: object) => crm.post(bookingAt(booked.reference), body);
    const slot = { timeslotReference, start: '2031-03-03T08:30' };
    for (const [name, field] of oneByOne(inTimeslot)) {
      expect(await change({ state: 'BOOKED', ...field }), name).toMatchObject(refused(`/${name}`));
      expect(await change(field), name).toMatchObject(refused('/timeslotReference'));
    }
    for (const [name, field] of oneByOne({ timeslotReference, ...inTimeslot, ...confirmation() })) {
      expect(await change({ appointmentReference, ...field }), name).toMatchObject(refused(`/${name}`));
    }
    for (const [name, field] of oneByOne(confirmation()))
      expect(await change({ ...slot, ...field }), name).toMatchObject(refused(`/${name}`));
    expect(await change({ timeslotReference, state: 'BOOKED' })).toMatchObject(refused('/start', '/state'));
    expect(await change({ ...slot, appointmentReference })).toMatchObject({
      body: {
        errors: [
          { pointer: '/timeslotReference', detail: 'cannot be given together with appointmentReference' },
          { pointer: '/start' },
        ],
      },
    });
    expect(await crm.get(practice.at + path`/participations/${booked.reference}`)).toMatchObject({
      body: { participation: booked },
    });
    // Null and empty are absent.
    expect(await change({ appointmentReference, timeslotReference: '', start: null, state: null })).toMatchObject({
      status: 200,
      body: { booking: { participation: { appointmentReference } } },
    });
  });

  it('is named when an open appointment is booked, in which nobody is then', async () => {
    const appointmentReference = await createAppointment(practice, { acceptBookings: true });
    const request = { reference: unique('b'), appointmentReference, state: 'BOOKED', customer };
    const create = (fields: object, strictly = {}) =>
      crm.post(`${practice.at}/bookings`, { ...request, ...fields }, { headers: strictly });
    const timeslotReference = await createTimeslot(practice);
    for (const [name, field] of oneByOne({ timeslotReference, ...inTimeslot })) {
      expect(await create(field), name).toMatchObject(refused(`/${name}`));
      expect(await create(field, { prefer: 'handling=strict' }), name).toMatchObject({
        status: 400,
        body: { code: 'request.unknown_field', errors: [{ pointer: `/${name}` }] },
      });
    }
    expect(await create({ timeslotReference, start: inTimeslot.start })).toMatchObject({
      body: {
        errors: [
          { pointer: '/timeslotReference', detail: 'cannot be given together with appointmentReference' },
          { pointer: '/start' },
        ],
      },
    });
    expect(await crm.get(practice.at + path`/appointments/${appointmentReference}`)).toMatchObject({
      body: { appointment: { participations: [] } },
    });
    expect(await create({ timeslotReference: null, start: '', price: null })).toMatchObject({ status: 201 });
  });
});

describe('a hold without a customer (interface 10.3)', () => {
  it('is confirmed for a new customer, who gets the mail', async () => {
    const { reference } = await book(await createTimeslot(practice), { state: 'RESERVED', customer: undefined });
    const missing = { status: 409, body: { code: 'booking.customer_missing' } };
    expect(await crm.post(bookingAt(reference), { state: 'BOOKED' })).toMatchObject(missing);
    expect(await crm.post(practice.at + path`/participations/${reference}`, { state: 'BOOKED' })).toMatchObject(
      missing,
    );
    expect(await crm.post(bookingAt(reference), {})).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/timeslotReference' }] },
    });
    const { status, body } = await crm.post<{ booking: Booking }>(bookingAt(reference), { state: 'BOOKED', customer });
    expect([status, body.booking.participation]).toMatchObject([
      200,
      { state: 'BOOKED', name: 'Ada Byron', customerReference: customer.customerReference },
    ]);
    expect(withoutTime((await waitForMails(customer.email, 1))[0]!)).toBe('Your booking: Haircut');
  });
});

/** The event in the calendar file of a mail, as a calendar program reads it. */
async function readEvent(
  mail: Mail & { id?: string; attachments?: { generatedFileName: string }[] },
): Promise<{ method: string; event: ical.Event }> {
  const file = mail.attachments!.find(({ generatedFileName }) => generatedFileName.endsWith('.ics'))!;
  const response = await fetch(`${inject('stack').inbox}/api/email/${mail.id}/attachment/${file.generatedFileName}`);
  const calendar = new ical.Component(ical.parse(await response.text()) as unknown[]);
  return {
    method: calendar.getFirstPropertyValue('method') as string,
    event: new ical.Event(calendar.getFirstSubcomponent('vevent')!),
  };
}
