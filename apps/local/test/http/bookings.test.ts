import fc from 'fast-check';
import ical from 'ical.js';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { apiInfo, type Participation, readAppointment } from './answers.ts';
import { path, type Problem } from './client.ts';
import { createAppointment, createCrm, createPractice, newAppointment, newTimeslot, type Practice, type TestCrm, unique } from './crm.ts';
import { type Mail, waitForMails } from './inbox.ts';

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

interface Slot {
  start: string;
  end: string;
  resourceReference: string;
  timeslotReference: string | null;
  appointmentReference: string | null;
  productReference: string | null;
  capacity: number;
  seats: number;
}

interface Booking {
  participation: Participation & { appointmentReference: string; customerReference: string | null };
  slot: Slot;
}

const bookings = (): string => `${practice.at}/bookings`;
const participationAt = (reference: string): string => `${practice.at}/participations` + path`/${reference}`;

/** In March 2031, of a resource of its own. */
async function createTimeslot(fields: Record<string, unknown> = {}): Promise<{ reference: string; resource: string }> {
  const resource = unique('room');
  const timeslot = newTimeslot(practice, { resourceReference: resource, end: '2031-03-03T10:00', ...fields });
  expect(await crm.post(`${practice.at}/timeslots`, { timeslots: [timeslot] })).toMatchObject({ status: 201 });
  return { reference: timeslot['reference'] as string, resource };
}

async function listSlots(query: Record<string, string>): Promise<Slot[]> {
  const { status, body } = await crm.get<Slot[]>(`${practice.at}/slots`, { query: { from: '2031-03-01T00:00', to: '2031-03-31T00:00', ...query } });
  expect(status).toBe(200);
  return body;
}

const newBooking = (timeslotReference: string, start: string, fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  reference: `${unique('booking')}@test`,
  timeslotReference,
  start: `2031-03-03T${start}`,
  productReference: practice.product,
  productName: 'Haircut',
  customerReference: practice.customer,
  state: 'BOOKED',
  ...fields,
});

async function book(request: Record<string, unknown>): Promise<Booking> {
  const { status, body, text } = await crm.post<{ booking: Booking }>(bookings(), request);
  expect(status, text).toBe(201);
  return body.booking;
}

const person = () => ({ customerReference: `${unique('customer')}@test`, userName: 'Ada Kundin', email: `${unique('ada')}@customers.example`, language: 'en' });

describe('slots and bookings (interface 10)', () => {
  it('list what is free, and book it with a new customer', async () => {
    const { reference, resource } = await createTimeslot({ address: 'Room 1', defaultCapacity: 2 });
    const free = {
      resourceReference: resource, timeslotReference: reference, appointmentReference: null, productReference: null, description: null, capacity: 2, seats: 2, address: 'Room 1', price: null,
    };
    const expected = ['07:00', '07:30', '08:00', '08:30', '09:00'].map((time) => `2031-03-03T${time}:00Z`);
    expect(await listSlots({ resourceRef: resource })).toStrictEqual(expected.slice(0, 4).map((start, index) => ({ start, end: expected[index + 1], ...free })));
    const customer = person();
    const request = newBooking(reference, '08:30', { customerReference: undefined, customer, price: { value: 49.9, currency: 'EUR' }, message: 'See you' });
    const answer = await crm.post<{ booking: Booking }>(bookings(), request);
    expect(answer.status).toBe(201);
    const { appointmentReference } = answer.body.booking.participation;
    const slot = { start: expected[1], end: expected[2], ...free, appointmentReference, productReference: practice.product, description: 'Haircut', seats: 1, price: { value: 49.9, currency: 'EUR' } };
    const participation = {
      reference: request['reference'], appointmentReference, customerReference: customer.customerReference, email: customer.email, mobile: null, name: 'Ada Kundin', note: null, state: 'BOOKED', messages: ['See you'],
    };
    expect(answer.body).toStrictEqual({ 'api-info': apiInfo, booking: { participation, slot } });
    expect((await listSlots({ resourceRef: resource }))[1]).toStrictEqual(slot);
    expect((await readAppointment(practice, appointmentReference)).participations).toStrictEqual([participation]);
    expect((await crm.get(participationAt(participation.reference as string))).body).toStrictEqual({ 'api-info': apiInfo, participation });
    // Again: the same, and no second mail.
    const again = await crm.post(bookings(), request);
    expect([again.status, again.body]).toStrictEqual([200, answer.body]);
    await book(newBooking(reference, '09:00', { customerReference: customer.customerReference }));
    expect((await waitForMails(customer.email, 2)).map(({ subject }) => subject)).toEqual(['Your booking: Haircut', 'Your booking: Haircut']);
  });

  it('are rejected with the reason', async () => {
    const { reference } = await createTimeslot();
    await book(newBooking(reference, '08:00'));
    const closedOne = await createAppointment(practice, { start: '2031-03-04T08:00', end: '2031-03-04T09:00' });
    const rejections: [Record<string, unknown>, string][] = [
      [newBooking(reference, '08:00'), 'full'],
      [newBooking(reference, '08:00', { productReference: 'other@test' }), 'taken'],
      [newBooking(reference, '08:10'), 'closed'],
      [{ ...newBooking(reference, '08:00'), appointmentReference: closedOne }, 'private'],
    ];
    for (const [request, reason] of rejections) {
      const { status, body } = await crm.post<Problem & { reason: string }>(bookings(), request);
      expect([status, body.code, body.reason]).toEqual([409, 'slot.unavailable', reason]);
    }
    const own = await createPractice(crm);
    await crm.put(`${own.at}/booking-rules`, { minimumNotice: 525_600, horizon: 1 });
    const soon = new Date(Date.now() + 3_600_000).toISOString().slice(0, 16) + 'Z';
    const later = new Date(Date.now() + 800 * 86_400_000).toISOString().slice(0, 16) + 'Z';
    for (const [start, reason] of [[soon, 'too_soon'], [later, 'too_late']] as const) {
      const end = new Date(Date.parse(start) + 3_600_000).toISOString().slice(0, 16) + 'Z';
      const timeslot = newTimeslot(own, { start, end });
      await crm.post(`${own.at}/timeslots`, { timeslots: [timeslot] });
      const request = { ...newBooking(timeslot['reference'] as string, '08:00'), start, customerReference: own.customer };
      expect(await crm.post(`${own.at}/bookings`, request)).toMatchObject({ status: 409, body: { reason } });
    }
  });

  it('reject what is not valid, naming the field', async () => {
    const { reference } = await createTimeslot();
    const both = { customer: person() };
    for (const [fields, pointers] of [
      [{ customerReference: undefined }, ['/customerReference']],
      [both, ['/customerReference', '/customer']],
      [{ state: 'CANCELED' }, ['/state']],
      [{ start: undefined }, ['/start']],
    ] as const) {
      const { status, body } = await crm.post<Problem>(bookings(), newBooking(reference, '08:00', fields));
      expect([status, body.errors?.map(({ pointer }) => pointer)]).toEqual([400, pointers]);
    }
    const queries: Record<string, string>[] = [{ from: '2031-03-02T00:00', to: '2031-03-01T00:00' }, { from: '2031-01-01T00:00', to: '2031-05-01T00:00' }, { cursor: 'x' }];
    for (const query of queries) {
      expect(await crm.get(`${practice.at}/slots`, { query })).toMatchObject({ status: 400, body: { code: 'slot.invalid' } });
    }
  });

  it('hold a slot without a customer, and confirm it', async () => {
    const { reference } = await createTimeslot();
    const hold = newBooking(reference, '08:00', { state: 'RESERVED', customerReference: undefined });
    expect((await book(hold)).participation).toMatchObject({ state: 'RESERVED', name: '', customerReference: null, expiresAt: expect.any(String) });
    const at = bookings() + path`/${hold['reference'] as string}`;
    for (const address of [at, participationAt(hold['reference'] as string)]) expect(await crm.post(address, { state: 'BOOKED' })).toMatchObject({ status: 409, body: { code: 'booking.customer_missing' } });
    expect(await crm.post(at, {})).toMatchObject({ status: 400, body: { errors: [{ pointer: '/timeslotReference' }] } });
    const customer = person();
    const confirmed = await crm.post<{ booking: Booking }>(at, { state: 'BOOKED', customer });
    expect(confirmed).toMatchObject({ status: 200, body: { booking: { participation: { state: 'BOOKED', customerReference: customer.customerReference } } } });
    await waitForMails(customer.email, 1);
  });

  it('end an appointment with its last participant, and then let its timeslot be deleted', async () => {
    const { reference, resource } = await createTimeslot();
    const request = newBooking(reference, '08:00');
    const { participation } = await book(request);
    const timeslot = `${practice.at}/timeslots` + path`/${reference}`;
    expect(await crm.delete(timeslot)).toMatchObject({ status: 409 });
    await crm.post(participationAt(participation.reference), { state: 'CANCELED' });
    expect(await readAppointment(practice, participation.appointmentReference)).toMatchObject({ state: 'CANCELLED' });
    expect(await listSlots({ resourceRef: resource })).toHaveLength(4);
    expect(await crm.delete(timeslot)).toMatchObject({ status: 204 });
  });

  it('list the open appointments of a series, which need no timeslot', async () => {
    const resource = unique('room');
    const { reference: _reference, start: _start, end: _end, ...series } = newAppointment(practice, { resourceReference: resource, acceptBookings: true, capacity: 2 });
    await crm.post(`${practice.at}/appointments`, { ...series, series_data: { from: '2031-03-03T09:00', to: '2031-03-03T10:00', raster: 30 } });
    const slots = await listSlots({ resourceRef: resource });
    expect(slots).toMatchObject([{ timeslotReference: null, seats: 2, productReference: practice.product }, { timeslotReference: null }]);
    const { reference, customerReference, state } = newBooking('', '');
    expect((await book({ reference, customerReference, state, appointmentReference: slots[0]!.appointmentReference })).slot).toEqual({ ...slots[0], seats: 1 });
  });

  it('come in pages', async () => {
    const { resource } = await createTimeslot({ end: '2031-03-03T12:00' });
    const all = await listSlots({ resourceRef: resource });
    expect(all).toHaveLength(8);
    const pages: Slot[][] = [];
    let next: string | undefined = `${practice.at}/slots?from=2031-03-01T00:00&to=2031-03-31T00:00&limit=3&resourceRef=${resource}`;
    while (next !== undefined) {
      const answer: Awaited<ReturnType<typeof crm.get<Slot[]>>> = await crm.get<Slot[]>(next);
      pages.push(answer.body);
      next = /<.*\/crms\/[^/]+(\/.*)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
    }
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 2]);
    expect(pages.flat()).toEqual(all);
  });
});

describe('a booking that moves from a full day to another', () => {
  it('sends one mail, which a calendar program shows as the same event at the new time', async () => {
    const [full, other] = [await createTimeslot({ end: '2031-03-03T08:30' }), await createTimeslot({ start: '2031-03-10T14:00', end: '2031-03-10T15:00' })];
    const customer = person();
    const { participation } = await book(newBooking(full.reference, '08:00', { customerReference: undefined, customer }));
    expect(await listSlots({ resourceRef: full.resource })).toEqual([]);
    const change = bookings() + path`/${participation.reference}`;
    expect(await crm.post(change, { timeslotReference: full.reference, start: '2031-03-03T08:30' })).toMatchObject({ status: 409, body: { reason: 'closed' } });
    const moved = await crm.post<{ booking: Booking }>(change, { timeslotReference: other.reference, start: '2031-03-10T14:30' });
    expect(moved).toMatchObject({ status: 200, body: { booking: { slot: { start: '2031-03-10T13:30:00Z', description: 'Haircut', seats: 0 } } } });
    expect(await listSlots({ resourceRef: full.resource })).toHaveLength(1);
    const mails = await waitForMails(customer.email, 2);
    expect(mails.map(({ subject }) => subject)).toEqual(['Your booking: Haircut', 'New time: Haircut']);
    const [before, after] = await Promise.all(mails.map(readEvent));
    expect(after!.method).toBe('REQUEST');
    expect(after!.event.uid).toBe(before!.event.uid);
    expect(after!.event.sequence).toBeGreaterThan(before!.event.sequence);
    expect(after!.event.startDate.toJSDate()).toEqual(new Date('2031-03-10T13:30:00Z'));
    expect(after!.event.endDate.toJSDate()).toEqual(new Date('2031-03-10T14:00:00Z'));
  });

  it('and an appointment whose time changes does the same for everybody in it', async () => {
    const customer = person();
    const { reference } = await createTimeslot();
    const { participation } = await book(newBooking(reference, '08:00', { customerReference: undefined, customer }));
    const appointment = `${practice.at}/appointments` + path`/${participation.appointmentReference}`;
    // A mail says what is true when it is written.
    await waitForMails(customer.email, 1);
    expect(await crm.put(appointment, { start: '2031-03-04T08:00', end: '2031-03-04T09:00' })).toMatchObject({ status: 200, body: { appointment: { start: '2031-03-04T07:00:00Z' } } });
    await waitForMails(customer.email, 2);
    expect(await crm.put(`${appointment}?sendMails=false`, { description: 'Cut' })).toMatchObject({ status: 200 });
    expect(await crm.put(appointment, { notes: 'internal' })).toMatchObject({ status: 200 });
    expect(await crm.put(appointment, { address: 'Room 2' })).toMatchObject({ status: 200 });
    const mails = await waitForMails(customer.email, 3);
    expect(mails.map(({ subject }) => subject)).toEqual(['Your booking: Haircut', 'Changed: Haircut', 'Changed: Cut']);
    const events = await Promise.all(mails.map(readEvent));
    expect(new Set(events.map(({ event }) => event.uid)).size).toBe(1);
    expect(events.map(({ event }) => event.sequence)).toEqual([1, 2, 4]);
    expect(events[1]!.event.startDate.toJSDate()).toEqual(new Date('2031-03-04T07:00:00Z'));
  });
});

/** The event in the calendar file of a mail, as a calendar program reads it. */
async function readEvent(mail: Mail & { id?: string; attachments?: { generatedFileName: string }[] }): Promise<{ method: string; event: ical.Event }> {
  const file = mail.attachments!.find(({ generatedFileName }) => generatedFileName.endsWith('.ics'))!;
  const response = await fetch(`${inject('stack').inbox}/api/email/${mail.id}/attachment/${file.generatedFileName}`);
  const calendar = new ical.Component(ical.parse(await response.text()) as unknown[]);
  return { method: calendar.getFirstPropertyValue('method') as string, event: new ical.Event(calendar.getFirstSubcomponent('vevent')!) };
}

describe('what is listed can be booked, and nothing else', () => {
  const minutes = (max: number) => fc.integer({ min: 0, max: max / 15 }).map((number) => number * 15);
  const plan = fc.record({
    timeslots: fc.array(fc.record({ start: minutes(240), length: minutes(120), raster: fc.constantFrom(15, 30, 45), capacity: fc.constantFrom(1, 2) }), { minLength: 1, maxLength: 3 }),
    appointments: fc.array(fc.record({ start: minutes(300), length: minutes(60), acceptBookings: fc.boolean(), capacity: fc.constantFrom(0, 1) }), { maxLength: 3 }),
  });
  const calendars = 10;
  const seed = Math.floor(Math.random() * 1_000_000);
  const at = (minute: number): string => new Date(Date.UTC(2031, 4, 1, 8, minute)).toISOString().slice(0, 16) + 'Z';

  it(`in ${calendars} random calendars with seed ${seed}`, { timeout: 60_000 }, async () => {
    for (const { timeslots, appointments } of fc.sample(plan, { seed, numRuns: calendars })) {
      const resource = unique('room');
      const openings = timeslots.map(({ start, length, raster, capacity }) =>
        newTimeslot(practice, { resourceReference: resource, start: at(start), end: at(start + length + raster), raster, defaultCapacity: capacity }),
      );
      await crm.post(`${practice.at}/timeslots`, { timeslots: openings });
      for (const { start, length, ...fields } of appointments) await createAppointment(practice, { resourceReference: resource, start: at(start), end: at(start + length + 15), ...fields });
      const slots = await listSlots({ resourceRef: resource, from: '2031-05-01T00:00', to: '2031-05-03T00:00' });
      for (const opening of openings) {
        for (let minute = -15; minute < 420; minute += 15) {
          const slot = slots.find(({ timeslotReference, start }) => timeslotReference === opening['reference'] && Date.parse(start) === Date.parse(at(minute)));
          const request = newBooking(opening['reference'] as string, '', { start: at(minute), productReference: slot?.productReference ?? practice.product });
          const { status } = await crm.post(`${bookings()}?sendMails=false`, request);
          expect([at(minute), status]).toEqual([at(minute), slot === undefined ? 409 : 201]);
          // Leaves everything as free as it was.
          if (status === 201) await crm.post(`${participationAt(request['reference'] as string)}?sendMails=false`, { state: 'CANCELED' });
        }
      }
    }
  });
});
