import { waitUntil } from '@scheduling/embedded';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, path, type Problem } from './client.ts';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  newAppointment,
  newTimeslot,
  type Practice,
  type TestCrm,
  unique,
} from './crm.ts';
import { readMails, waitForMails } from './inbox.ts';

const apiInfo = { version: '1' };

interface Participation {
  reference: string;
  name: string;
  state: string;
  messages: string[] | null;
  expiresAt?: string;
}

interface Appointment {
  reference: string;
  start: string;
  end: string;
  seriesId: string | null;
  state: string;
  participations: Participation[];
}

interface Timeslot {
  reference: string;
  start: string;
  end: string;
  appointments: Appointment[];
}

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

const appointments = (): string => `${practice.at}/appointments`;
const participations = (): string => `${practice.at}/participations`;

async function readAppointment(reference: string): Promise<Appointment> {
  const { body } = await crm.get<Appointment[]>(appointments());
  return body.find((appointment) => appointment.reference === reference)!;
}

describe('timeslots (interface 4.1)', () => {
  const day = { from: '2031-03-03T00:00', to: '2031-03-04T00:00' };
  const timeslots = (): string => `${practice.at}/timeslots`;
  const ofResource = (resource: string): string => practice.at + path`/resource/${resource}/timeslots`;
  beforeAll(async () => {
    practice = await createPractice(crm);
  });

  it('are created together, answered as full records in the order of the request, and safe to send again', async () => {
    const address = { city: 'Berlin', zip: '10115', country: 'DE', street: 'Ufer', number: '1' };
    const [first, second] = [newTimeslot(practice, { start: '2031-03-03T10:00', address }), newTimeslot(practice, { address: 'https://video.example/1', state: 'CREATED' })];
    const created = await crm.post(timeslots(), { timeslots: [first, second] });
    expect(created.status).toBe(201);
    const { country, ...rest } = address;
    expect(created.body).toStrictEqual([
      { ...first, address: { ...rest, countryCode: country }, start: '2031-03-03T09:00:00Z', end: '2031-03-03T11:00:00Z', appointments: [] },
      { ...second, start: '2031-03-03T07:00:00Z', end: '2031-03-03T11:00:00Z', appointments: [] },
    ]);
    const again = await crm.post(timeslots(), { timeslots: [first, second] });
    expect(again.status).toBe(200);
    expect(again.body).toStrictEqual(created.body);
    expect(await crm.post(timeslots(), { timeslots: [{ ...first, raster: 15 }] })).toMatchObject({ status: 409, body: { code: 'timeslot.reference_taken' } });
    expect(await crm.post(timeslots(), { timeslots: [first, newTimeslot(practice, { resourceReference: 'elsewhere@test' })] })).toMatchObject({ status: 201 });
  });

  it('get a reference and a start when they have none', async () => {
    const before = Math.floor(Date.now() / 60_000) * 60_000;
    const { reference: _reference, start: _start, ...rest } = newTimeslot(practice, { resourceReference: 'now@test', end: '2098-01-01T00:00' });
    const created = await crm.post<Timeslot[]>(timeslots(), { timeslots: [rest, rest] });
    expect(created.status).toBe(201);
    expect(new Set(created.body.map(({ reference }) => reference)).size).toBe(2);
    for (const { start } of created.body) {
      expect(start).toMatch(/:00Z$/);
      expect(Date.parse(start)).toBeGreaterThanOrEqual(before);
      expect(Date.parse(start)).toBeLessThanOrEqual(Date.now());
    }
  });

  it('are created all or none, and each one at fault is named', async () => {
    const resourceReference = 'all-or-none@test';
    const good = newTimeslot(practice, { resourceReference });
    const refused = await crm.post<Problem>(timeslots(), {
      timeslots: [good, newTimeslot(practice, { end: '2031-03-03T08:00' }), good, newTimeslot(practice, { raster: 300 })],
    });
    expect(refused).toMatchObject({ status: 400, body: { code: 'timeslot.invalid' } });
    expect(refused.body.errors?.map(({ pointer }) => pointer)).toEqual(['/timeslots/1/end', '/timeslots/2/reference', '/timeslots/3/raster']);
    expect((await crm.get(ofResource(resourceReference), { query: day })).body).toEqual([]);
  });

  it('are listed for a resource and a period, by start, with the appointments in their window', async () => {
    const resource = `${unique('resource')}@test`;
    const [inside, other, before] = await Promise.all([
      createAppointment(practice, { resourceReference: resource }),
      createAppointment(practice),
      createAppointment(practice, { resourceReference: resource, start: '2031-03-03T07:30', end: '2031-03-03T08:30' }),
    ]);
    const late = newTimeslot(practice, { resourceReference: resource, start: '2031-03-03T14:00', end: '2031-03-03T15:00' });
    const early = newTimeslot(practice, { resourceReference: resource });
    const next = newTimeslot(practice, { resourceReference: resource, start: '2031-03-04T00:00', end: '2031-03-04T01:00' });
    await crm.post(timeslots(), { timeslots: [late, early, next] });
    const { body } = await crm.get<Timeslot[]>(ofResource(resource), { query: day });
    expect(body.map(({ reference }) => reference)).toEqual([early['reference'], late['reference']]);
    expect(body[0]!.appointments.map(({ reference }) => reference)).toEqual([inside]);
    expect(body[1]!.appointments).toEqual([]);
    expect(JSON.stringify(body)).not.toContain(other);
    expect(JSON.stringify(body)).not.toContain(before);
    expect((await crm.get<Timeslot[]>(ofResource(resource), { query: { from: '2031-03-03T10:59:00Z', to: '2031-03-03T12:00:00+01:00' } })).body).toHaveLength(1);
    expect((await crm.get<Timeslot[]>(ofResource(resource), { query: { from: '2031-03-03T12:00', to: '2031-03-03T14:00' } })).body).toEqual([]);
  });

  it('need both ends of the period', async () => {
    const refused = await crm.get<Problem>(ofResource('r'));
    expect(refused).toMatchObject({ status: 400, body: { code: 'request.invalid' } });
    expect(refused.body.errors?.map(({ parameter }) => parameter).sort()).toEqual(['from', 'to']);
    expect(await crm.get(ofResource('r'), { query: { from: day.to, to: day.from } })).toMatchObject({ status: 400 });
  });

  it('come in pages', async () => {
    const resource = `${unique('paged')}@test`;
    const slots = Array.from({ length: 7 }, (_, hour) => newTimeslot(practice, { resourceReference: resource, start: `2031-03-03T0${hour}:00`, end: `2031-03-03T0${hour}:30` }));
    await crm.post(timeslots(), { timeslots: slots });
    const seen: string[] = [];
    for (let query: Record<string, string> | undefined = { ...day, limit: '3' }; query !== undefined; ) {
      const answer: Answer<Timeslot[]> = await crm.get<Timeslot[]>(ofResource(resource), { query });
      seen.push(...answer.body.map(({ reference }) => reference));
      query = nextQuery(answer);
    }
    expect(seen).toEqual(slots.map(({ reference }) => reference));
  });

  it('change only what is given, and stay around their appointments', async () => {
    const resource = `${unique('resource')}@test`;
    const slot = newTimeslot(practice, { resourceReference: resource });
    await crm.post(timeslots(), { timeslots: [slot] });
    const reference = slot['reference'] as string;
    const at = timeslots() + path`/${reference}`;
    const changed = await crm.put(at, { defaultCapacity: 7, state: 'CREATED', defaultAcceptBookings: false });
    expect(changed.status).toBe(200);
    expect(changed.body).toStrictEqual({
      'api-info': apiInfo,
      timeslot: { ...slot, address: null, start: '2031-03-03T07:00:00Z', end: '2031-03-03T11:00:00Z', appointments: [], defaultCapacity: 7, state: 'CREATED', defaultAcceptBookings: false },
    });
    expect(await crm.put(at, { state: 'BOOKABLE' })).toMatchObject({ status: 200, body: { timeslot: { state: 'BOOKABLE', defaultCapacity: 7 } } });
    expect(await crm.put(at, { state: 'CREATED' })).toMatchObject({ status: 200 });
    expect(await crm.put(at, {})).toMatchObject({ status: 200 });
    expect(await crm.put(at, { start: '2031-03-03T13:00' })).toMatchObject({ status: 400, body: { code: 'timeslot.invalid' } });

    const appointment = await createAppointment(practice, { resourceReference: resource });
    const orphaning = { status: 409, body: { code: 'timeslot.has_appointments' } };
    expect(await crm.put(at, { start: '2031-03-03T09:30' })).toMatchObject(orphaning);
    expect(await crm.put(at, { raster: 45 })).toMatchObject(orphaning);
    expect(await crm.delete(at)).toMatchObject(orphaning);
    await crm.delete(appointments(), { appointmentReference: appointment });
    expect(await crm.put(at, { start: '2031-03-03T09:30' })).toMatchObject({ status: 200 });
    expect(await crm.delete(at)).toMatchObject({ status: 204 });
    for (const answer of [await crm.delete(at), await crm.put(at, {})]) expect(answer).toMatchObject({ status: 404, body: { code: 'timeslot.not_found' } });
  });

  it('are 404 under a provider that does not exist', async () => {
    const missing = { status: 404, body: { code: 'provider.not_found' } };
    expect(await crm.post('/provider/nothing%40test/timeslots', { timeslots: [newTimeslot(practice)] })).toMatchObject(missing);
    expect(await crm.get('/provider/nothing%40test/resource/r/timeslots', { query: day })).toMatchObject(missing);
  });
});

describe('single appointments (interface 4.2)', () => {
  beforeAll(async () => {
    practice = await createPractice(crm);
  });

  const full = () =>
    newAppointment(practice, {
      capacity: 5,
      acceptBookings: true,
      description: 'Wash and cut',
      contactReference: 'anyone@test',
      notes: 'Two\nlines',
      address: { city: 'Basel', zip: '4051', country: 'CH', street: 'Ring', number: '2' },
      price: { value: 49.95, currency: 'CHF' },
      participations: [
        { reference: `${unique('p')}@test`, name: 'Ada', email: 'ada@customers.example', mobile: '1', note: 'n', state: 'BOOKED' },
        { reference: `${unique('p')}@test`, name: 'Bob', email: 'bob@customers.example', state: 'DELETED' },
      ],
    });

  it('are created with all fields, and the same request again answers what exists', async () => {
    const request = full();
    const { productName: _name, participations: sent, address: _address, ...same } = request as { participations: object[] } & Record<string, unknown>;
    const created = await crm.post<{ appointment: Appointment }>(appointments(), request);
    expect(created.status).toBe(201);
    expect(created.body).toStrictEqual({
      'api-info': apiInfo,
      appointment: {
        ...same,
        start: '2031-03-03T08:00:00Z',
        end: '2031-03-03T09:00:00Z',
        address: { city: 'Basel', countryCode: 'CH', street: 'Ring', number: '2', zip: '4051' },
        archived: false,
        seriesId: null,
        state: 'ACTIVE',
        participations: [
          { ...sent[0], messages: null },
          { ...sent[1], mobile: null, note: null, messages: null },
        ],
      },
    });
    const again = await crm.post(appointments(), request);
    expect(again.status).toBe(200);
    expect(again.body).toStrictEqual(created.body);
    expect(await readAppointment(created.body.appointment.reference)).toStrictEqual(created.body.appointment);
    expect(await crm.post(appointments(), { ...request, capacity: 6 })).toMatchObject({ status: 409, body: { code: 'appointment.reference_taken' } });
    const embedded = (sent[0] as { reference: string }).reference;
    const other = newAppointment(practice, { participations: [{ reference: embedded, name: 'X', email: 'x@customers.example', state: 'BOOKED' }] });
    expect(await crm.post(appointments(), other)).toMatchObject({ status: 409, body: { code: 'participation.reference_taken' } });
  });

  it('have the defaults of the interface, and null for what is absent', async () => {
    const { capacity: _capacity, productName: _name, ...request } = newAppointment(practice);
    const created = await crm.post(appointments(), request);
    expect(created.status).toBe(201);
    expect(created.body).toStrictEqual({
      'api-info': apiInfo,
      appointment: {
        ...request,
        start: '2031-03-03T08:00:00Z',
        end: '2031-03-03T09:00:00Z',
        capacity: 0,
        acceptBookings: false,
        address: null,
        archived: false,
        contactReference: null,
        description: null,
        notes: null,
        participations: [],
        price: null,
        seriesId: null,
        state: 'ACTIVE',
      },
    });
  });

  it.each([
    ['2031-07-01T09:00', '2031-07-01T07:00:00Z', 'local summer time'],
    ['2031-07-01T09:00:30', '2031-07-01T07:00:30Z', 'seconds'],
    ['2031-07-01T09:00:00Z', '2031-07-01T09:00:00Z', 'what the service returned'],
    ['2031-07-01T09:00-05:30', '2031-07-01T14:30:00Z', 'an offset'],
    ['2031-03-30T02:30', '2031-03-30T01:30:00Z', 'a time that is skipped'],
    ['2031-10-26T02:30', '2031-10-26T00:30:00Z', 'a time that occurs twice'],
    ['2028-02-29T23:59', '2028-02-29T22:59:00Z', 'a leap day'],
  ])('take %s as %s: %s', async (start, expected) => {
    const created = await crm.post<{ appointment: Appointment }>(appointments(), newAppointment(practice, { start, end: '2032-01-01T00:00' }));
    expect(created).toMatchObject({ status: 201, body: { appointment: { start: expected } } });
  });

  it('are in the zone of their provider', async () => {
    const kolkata = await createPractice(crm, { timeZone: 'Asia/Kolkata' });
    const created = await crm.post(`${kolkata.at}/appointments`, newAppointment(kolkata));
    expect(created).toMatchObject({ status: 201, body: { appointment: { start: '2031-03-03T03:30:00Z' } } });
  });

  it('end after they start', async () => {
    for (const end of ['2031-03-03T09:00', '2031-03-03T08:59']) {
      expect(await crm.post(appointments(), newAppointment(practice, { end }))).toMatchObject({
        status: 400,
        body: { code: 'appointment.invalid', errors: [{ pointer: '/end' }] },
      });
    }
  });

  it('are listed by start, filtered by product, resource and period, active and cancelled', async () => {
    practice = await createPractice(crm);
    const late = await createAppointment(practice, { start: '2031-03-05T09:00', end: '2031-03-05T10:00', productReference: 'other@test' });
    const early = await createAppointment(practice, { resourceReference: 'other@test' });
    const middle = await createAppointment(practice, { start: '2031-03-04T09:00', end: '2031-03-04T10:00' });
    await crm.delete(appointments(), { appointmentReference: middle });
    const list = async (query: Record<string, string | boolean> = {}): Promise<string[]> => {
      const { status, body } = await crm.get<Appointment[]>(appointments(), { query });
      expect(status).toBe(200);
      return body.map(({ reference }) => reference);
    };
    expect(await list()).toEqual([early, middle, late]);
    expect(await list({ productRef: 'other@test' })).toEqual([late]);
    expect(await list({ resourceRef: 'other@test' })).toEqual([early]);
    expect(await list({ productRef: practice.product, resourceRef: practice.resource })).toEqual([middle]);
    expect(await list({ from: '2031-03-03T10:00', to: '2031-03-05T09:00' })).toEqual([middle]);
    expect(await list({ from: '2031-03-03T09:59', to: '2031-03-05T09:01' })).toEqual([early, middle, late]);
    expect(await list({ includeArchived: true })).toEqual([early, middle, late]);
    expect(await list({ productRef: 'nothing@test' })).toEqual([]);
    expect(await crm.get(appointments(), { query: { includeArchived: 'yes' } })).toMatchObject({ status: 400, body: { errors: [{ parameter: 'includeArchived' }] } });
    expect(await crm.get('/provider/nothing%40test/appointments')).toMatchObject({ status: 404, body: { code: 'provider.not_found' } });
  });

  it('are archived a year after their end, and then listed on request only', async () => {
    practice = await createPractice(crm);
    const old = await createAppointment(practice, { start: '2020-01-01T09:00', end: '2020-01-01T10:00' });
    const young = await createAppointment(practice);
    expect((await crm.get<Appointment[]>(appointments())).body.map(({ reference }) => reference)).toEqual([young]);
    expect((await crm.get(appointments(), { query: { includeArchived: true } })).body).toMatchObject([
      { reference: old, archived: true, state: 'ACTIVE' },
      { reference: young, archived: false },
    ]);
  });
});

describe('series and sequences (interface 4.2)', () => {
  beforeAll(async () => {
    practice = await createPractice(crm);
  });

  const newSeries = (fields: Record<string, unknown> = {}) => {
    const { reference: _reference, start: _start, end: _end, ...rest } = newAppointment(practice);
    return { ...rest, ...fields };
  };

  it('create an appointment for each slot of each listed weekday, under one seriesId', async () => {
    const created = await crm.post<Appointment[]>(
      appointments(),
      newSeries({
        reference: 'ignored@test',
        from: '2031-01-01T09:00',
        to: '2031-01-01T10:10',
        series_data: { from: '2031-03-24T00:00', to: '2031-04-07T23:59', raster: 30, weekdays: ['1', '7'] },
      }),
    );
    expect(created.status).toBe(201);
    expect(created.body.map(({ start }) => start)).toEqual(
      [
        ['2031-03-24', '08:00', '08:30'],
        ['2031-03-30', '07:00', '07:30'],
        ['2031-03-31', '07:00', '07:30'],
        ['2031-04-06', '07:00', '07:30'],
        ['2031-04-07', '07:00', '07:30'],
      ].flatMap(([date, ...times]) => times.map((time) => `${date}T${time}:00Z`)),
    );
    expect(new Set(created.body.map(({ seriesId }) => seriesId)).size).toBe(1);
    expect(created.body[0]!.seriesId).toEqual(expect.any(String));
    expect(new Set(created.body.map(({ reference }) => reference)).size).toBe(10);
    expect(created.body.some(({ reference }) => reference === 'ignored@test')).toBe(false);
    const { seriesId } = created.body[0]!;
    const inSeries = async () => (await crm.get<Appointment[]>(appointments())).body.filter((appointment) => appointment.seriesId === seriesId);
    expect(await inSeries()).toStrictEqual(created.body);
    expect(await crm.delete(`${appointments()}/withoutNotification`, { seriesId })).toMatchObject({ status: 204 });
    expect(await inSeries()).toEqual([]);
    expect(await crm.delete(`${appointments()}/withoutNotification`, { seriesId })).toMatchObject({ status: 404, body: { code: 'series.not_found' } });
  });

  it('of one day need no weekdays', async () => {
    const created = await crm.post<Appointment[]>(appointments(), newSeries({ series_data: { from: '2031-03-03T09:00', to: '2031-03-03T10:00', raster: 20 } }));
    expect(created.status).toBe(201);
    expect(created.body.map(({ start, end }) => [start.slice(11, 16), end.slice(11, 16)])).toEqual([
      ['08:00', '08:20'],
      ['08:20', '08:40'],
      ['08:40', '09:00'],
    ]);
  });

  it.each([
    ['several days without weekdays', { from: '2031-03-03T09:00', to: '2031-03-04T10:00', raster: 20 }, 'appointment.invalid', '/series_data/weekdays'],
    ['no slot at all', { from: '2031-03-03T09:00', to: '2031-03-03T09:10', raster: 20 }, 'series.empty', undefined],
    ['no listed weekday', { from: '2031-03-03T09:00', to: '2031-03-04T10:00', raster: 20, weekdays: ['7'] }, 'series.empty', undefined],
    ['more than 1,000', { from: '2031-03-03T00:00', to: '2031-03-03T23:59', raster: 1 }, 'series.too_long', undefined],
    ['an end before the start', { from: '2031-03-03T09:00', to: '2031-03-02T09:00', raster: 20 }, 'appointment.invalid', '/series_data/to'],
    ['an unknown weekday', { from: '2031-03-03T09:00', to: '2031-03-04T09:00', raster: 20, weekdays: ['8'] }, 'request.invalid', '/series_data/weekdays/0'],
  ])('are refused: %s', async (_, seriesData, code, pointer) => {
    const own = await createPractice(crm);
    const refused = await crm.post<Problem>(`${own.at}/appointments`, newSeries({ series_data: seriesData }));
    expect(refused).toMatchObject({ status: 400, body: { code } });
    if (pointer !== undefined) expect(refused.body.errors?.map((fault) => fault.pointer)).toContain(pointer);
    expect((await crm.get(`${own.at}/appointments`)).body).toEqual([]);
  });

  it('may have 1,000 appointments', async () => {
    const own = await createPractice(crm);
    const seriesData = { from: '2031-03-03T00:00', to: '2031-03-03T16:40', raster: 1 };
    const created = await crm.post<Appointment[]>(`${own.at}/appointments`, newSeries({ series_data: seriesData }));
    expect(created.status).toBe(201);
    expect(created.body).toHaveLength(1_000);
  });
});

describe('cancelling and deleting appointments (interface 4.2)', () => {
  beforeAll(async () => {
    practice = await createPractice(crm);
  });

  it('cancel once, with all participations, and write to those who counted on it', async () => {
    const appointment = await createAppointment(practice, { capacity: 10 });
    const states = ['RESERVED', 'REQUESTED', 'BOOKED', 'CANCELED', 'DELETED'];
    const emails = new Map<string, string>();
    for (const state of states) {
      const customerReference = `${unique('customer')}@test`;
      const email = `${unique('mail')}@customers.example`;
      emails.set(state, email);
      await crm.post(`${practice.at}/customers`, { customerReference, providerReference: practice.provider, userName: state, email, language: 'en' });
      const body = { reference: `${unique('p')}@test`, appointmentReference: appointment, customerReference, state };
      expect(await crm.post(participations(), body, { query: { sendMails: false } })).toMatchObject({ status: 201 });
    }
    const cancelled = await crm.delete<{ appointment: Appointment }>(appointments(), { appointmentReference: appointment }, { query: { message: 'Water damage' } });
    expect(cancelled).toMatchObject({ status: 200, body: { 'api-info': apiInfo, appointment: { reference: appointment, state: 'CANCELLED' } } });
    expect(cancelled.body.appointment.participations.map(({ state }) => state)).toEqual(states.map(() => 'CANCELED'));
    for (const state of ['RESERVED', 'REQUESTED', 'BOOKED']) {
      const [mail] = await waitForMails(emails.get(state)!, 1);
      expect(mail!.subject).toBe('Called off: Haircut');
      expect(mail!.text).toContain('Water damage');
    }
    expect(await crm.delete(appointments(), { appointmentReference: appointment })).toMatchObject({ status: 200, body: { appointment: { state: 'CANCELLED' } } });
    expect(await crm.post(participations(), { reference: 'late@test', appointmentReference: appointment, customerReference: practice.customer, state: 'BOOKED' })).toMatchObject({
      status: 409,
      body: { code: 'appointment.cancelled' },
    });
    // Mails are sent in the order of their events, so any further ones would be there.
    const marker = await createAppointment(practice);
    await createParticipation(practice, marker);
    await waitForMails(practice.customerEmail, 1);
    const counts = await Promise.all(states.map(async (state) => (await readMails(emails.get(state)!)).length));
    expect(counts).toEqual([1, 1, 1, 0, 0]);
  });

  it('delete without telling anybody', async () => {
    const own = await createPractice(crm);
    const appointment = await createAppointment(own);
    const participation = await createParticipation(own, appointment);
    await waitForMails(own.customerEmail, 1);
    const target = { appointmentReference: appointment };
    expect(await crm.delete(`${own.at}/appointments/withoutNotification`, target)).toMatchObject({ status: 204 });
    expect((await crm.get(`${own.at}/appointments`)).body).toEqual([]);
    expect(await crm.post(`${own.at}/participations/${encodeURIComponent(participation)}`, { state: 'CANCELED' })).toMatchObject({ status: 404 });
    expect(await crm.delete(`${own.at}/appointments/withoutNotification`, target)).toMatchObject({ status: 404, body: { code: 'appointment.not_found' } });
    const next = await createAppointment(own);
    await createParticipation(own, next);
    expect((await waitForMails(own.customerEmail, 2)).map(({ subject }) => subject)).toEqual(['Your booking: Haircut', 'Your booking: Haircut']);
  });

  it('take their arguments from the body or the query, and not two different ones', async () => {
    const fresh = (): Promise<string> => createAppointment(practice);
    const [cancel, remove] = [appointments(), `${appointments()}/withoutNotification`];
    for (const [address, status] of [
      [cancel, 200],
      [remove, 204],
    ] as const) {
      const inQuery = { appointmentReference: await fresh() };
      expect(await crm.delete(address, undefined, { query: inQuery })).toMatchObject({ status });
      const announced = { appointmentReference: await fresh() };
      expect(await crm.delete(address, undefined, { query: announced, headers: { 'content-type': 'application/json' } })).toMatchObject({ status });
      expect(await crm.delete(address, undefined, { query: { appointmentReference: await fresh() }, rawBody: '' })).toMatchObject({ status });
      const both = { appointmentReference: await fresh() };
      expect(await crm.delete(address, both, { query: both })).toMatchObject({ status });
      const [one, two] = [await fresh(), await fresh()];
      expect(await crm.delete(address, { appointmentReference: one }, { query: { appointmentReference: two } })).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/appointmentReference' }] },
      });
      expect([(await readAppointment(one)).state, (await readAppointment(two)).state]).toEqual(['ACTIVE', 'ACTIVE']);
      expect(await crm.delete(address)).toMatchObject({ status: 400, body: { code: 'request.invalid' } });
    }
    expect(await crm.delete(remove, { appointmentReference: await fresh(), seriesId: 's' })).toMatchObject({ status: 400 });
    const differing = await crm.delete(cancel, { appointmentReference: await fresh(), message: 'a' }, { query: { message: 'b' } });
    expect(differing).toMatchObject({ status: 400, body: { errors: [{ pointer: '/message' }] } });
    expect(await crm.delete(cancel, { appointmentReference: 'nothing@test' })).toMatchObject({ status: 404, body: { code: 'appointment.not_found' } });
  });
});

describe('participations (interface 4.3)', () => {
  beforeAll(async () => {
    practice = await createPractice(crm);
  });

  const body = (appointmentReference: string, fields: Record<string, unknown> = {}) => ({
    reference: `${unique('participation')}@test`,
    appointmentReference,
    customerReference: practice.customer,
    state: 'BOOKED',
    ...fields,
  });

  it('are created, answered in full, shown in their appointment, and safe to send again', async () => {
    const appointment = await createAppointment(practice);
    const request = body(appointment, { message: 'See you' });
    const created = await crm.post<{ participation: Participation }>(participations(), request);
    const shown = { reference: request.reference, email: practice.customerEmail, mobile: null, name: 'Grace Hopper', note: null, state: 'BOOKED', messages: ['See you'] };
    expect(created.status).toBe(201);
    expect(created.body).toStrictEqual({ 'api-info': apiInfo, participation: shown });
    const again = await crm.post(participations(), request);
    expect(again.status).toBe(200);
    expect(again.body).toStrictEqual(created.body);
    expect((await readAppointment(appointment)).participations).toStrictEqual([shown]);
    const [mail] = await waitForMails(practice.customerEmail, 1);
    expect(mail).toMatchObject({ subject: 'Your booking: Haircut', to: [{ address: practice.customerEmail, name: 'Grace Hopper' }] });
    expect(mail!.text).toContain('See you');
    expect(mail!.text).toContain('9:00');
  });

  it('that are RESERVED say when they end: 3 minutes later', async () => {
    const before = Date.now();
    const { body: answer } = await crm.post<{ participation: Participation }>(participations(), body(await createAppointment(practice), { state: 'RESERVED' }));
    const lifetimeMs = Date.parse(answer.participation.expiresAt!) - before;
    expect(lifetimeMs).toBeGreaterThan(179_000 - 1_000);
    expect(lifetimeMs).toBeLessThan(180_000 + (Date.now() - before) + 1_000);
  });

  it('take seats when BOOKED or RESERVED, none when REQUESTED, and never too many', async () => {
    const appointment = await createAppointment(practice, { capacity: 2 });
    const full = { status: 409, body: { code: 'participation.capacity_exhausted' } };
    await createParticipation(practice, appointment);
    const reserved = await createParticipation(practice, appointment, { state: 'RESERVED' });
    const requested = await createParticipation(practice, appointment, { state: 'REQUESTED' });
    for (const state of ['BOOKED', 'RESERVED']) expect(await crm.post(participations(), body(appointment, { state }))).toMatchObject(full);
    const confirm = participations() + path`/${requested}`;
    expect(await crm.post(confirm, { state: 'BOOKED' })).toMatchObject(full);
    expect(await crm.post(participations() + path`/${reserved}`, { state: 'CANCELED' })).toMatchObject({ status: 200 });
    expect(await crm.post(confirm, { state: 'BOOKED' })).toMatchObject({ status: 200, body: { participation: { state: 'BOOKED' } } });
    expect(await crm.post(participations(), body(appointment))).toMatchObject(full);
    expect(await crm.post(participations(), body(appointment), { query: { ignoreCapacity: true } })).toMatchObject({ status: 201 });
    const waiting = await createParticipation(practice, appointment, { state: 'REQUESTED' });
    expect(await crm.post(participations() + path`/${waiting}`, { state: 'BOOKED' }, { query: { ignoreCapacity: true } })).toMatchObject({ status: 200 });
  });

  it('with a known reference are an error or follow the moves, as the caller wishes', async () => {
    const [appointment, other] = [await createAppointment(practice, { capacity: 5 }), await createAppointment(practice)];
    const request = body(appointment, { state: 'REQUESTED' });
    expect(await crm.post(participations(), request)).toMatchObject({ status: 201 });
    const taken = { status: 409, body: { code: 'participation.reference_taken' } };
    expect(await crm.post(participations(), request, { query: { onDuplicateRaise: true } })).toMatchObject(taken);
    expect(await crm.post(participations(), { ...request, state: 'BOOKED' })).toMatchObject({ status: 200, body: { participation: { state: 'BOOKED' } } });
    expect(await crm.post(participations(), { ...request, state: 'RESERVED' })).toMatchObject({ status: 400, body: { code: 'participation.state_unsupported' } });
    expect(await crm.post(participations(), { ...request, appointmentReference: other })).toMatchObject(taken);
    const second = `${unique('customer')}@test`;
    await crm.post(`${practice.at}/customers`, { customerReference: second, providerReference: practice.provider, userName: 'B' });
    expect(await crm.post(participations(), { ...request, customerReference: second })).toMatchObject(taken);
    expect(await crm.post(participations(), { ...request, state: 'DELETED' })).toMatchObject({ status: 200 });
    expect(await crm.post(participations(), { ...request, state: 'BOOKED' })).toMatchObject({ status: 409, body: { code: 'participation.move_not_allowed' } });
  });

  it('need an appointment and a customer, and are found by their reference', async () => {
    const appointment = await createAppointment(practice);
    expect(await crm.post(participations(), body('nothing@test'))).toMatchObject({ status: 404, body: { code: 'appointment.not_found' } });
    expect(await crm.post(participations(), body(appointment, { customerReference: 'nobody@test' }))).toMatchObject({ status: 404, body: { code: 'customer.not_found' } });
    expect(await crm.post(`${participations()}/nothing%40test`, { state: 'BOOKED' })).toMatchObject({ status: 404, body: { code: 'participation.not_found' } });
  });

  const moves: Record<string, Record<string, number>> = {
    RESERVED: { RESERVED: 200, REQUESTED: 400, BOOKED: 200, CANCELED: 200, DELETED: 409 },
    REQUESTED: { RESERVED: 400, REQUESTED: 200, BOOKED: 200, CANCELED: 200, DELETED: 409 },
    BOOKED: { RESERVED: 400, REQUESTED: 400, BOOKED: 200, CANCELED: 200, DELETED: 200 },
    CANCELED: { RESERVED: 400, REQUESTED: 400, BOOKED: 409, CANCELED: 200, DELETED: 409 },
    DELETED: { RESERVED: 400, REQUESTED: 400, BOOKED: 409, CANCELED: 200, DELETED: 200 },
  };
  const withMail: Record<string, string> = {
    'RESERVED BOOKED': 'Your booking: Haircut',
    'REQUESTED BOOKED': 'Confirmed: Haircut',
    'REQUESTED CANCELED': 'Declined: Haircut',
    'BOOKED CANCELED': 'Cancelled: Haircut',
  };

  it.each(Object.entries(moves).flatMap(([from, row]) => Object.entries(row).map(([to, status]) => [from, to, status] as const)))(
    'move from %s to %s: %i, with a mail when the table says so (interface 3.1)',
    async (from, to, status) => {
      const own = await createPractice(crm);
      const appointment = await createAppointment(own, { capacity: 5 });
      const reference = `${unique('p')}@test`;
      const created = { reference, appointmentReference: appointment, customerReference: own.customer, state: from };
      expect(await crm.post(`${own.at}/participations`, created, { query: { sendMails: false } })).toMatchObject({ status: 201 });
      const moved = await crm.post<Problem & { participation: Participation }>(own.at + path`/participations/${reference}`, { state: to });
      expect(moved.status).toBe(status);
      const codes: Record<number, string> = { 400: 'participation.state_unsupported', 409: 'participation.move_not_allowed' };
      if (status === 200) expect(moved.body.participation.state).toBe(to);
      else expect(moved.body.code).toBe(codes[status]);
      if (status === 409) {
        const allowed = Object.keys(moves[from]!).filter((state) => state !== from && moves[from]![state] === 200);
        for (const state of allowed) expect(moved.body.detail).toContain(state);
      }
      const subject = withMail[`${from} ${to}`];
      // The request that is received after the move closes the list of mails.
      await createParticipation(own, appointment, { state: 'REQUESTED' });
      const expected = [...(subject === undefined ? [] : [subject]), 'Your request: Haircut'];
      const mails = await waitForMails(own.customerEmail, expected.length);
      expect(mails.map((mail) => mail.subject).sort()).toEqual(expected.sort());
    },
  );

  it('send no mail with sendMails=false', async () => {
    const own = await createPractice(crm);
    const appointment = await createAppointment(own);
    const reference = `${unique('p')}@test`;
    const quiet = { query: { sendMails: false } };
    await crm.post(`${own.at}/participations`, { reference, appointmentReference: appointment, customerReference: own.customer, state: 'BOOKED' }, quiet);
    await crm.post(own.at + path`/participations/${reference}`, { state: 'CANCELED' }, quiet);
    await createParticipation(own, appointment);
    expect(await waitForMails(own.customerEmail, 1)).toHaveLength(1);
  });

  it('are written about in the customer’s language and the provider’s zone', async () => {
    const own = await createPractice(crm, { timeZone: 'America/New_York', language: 'de' });
    await createParticipation(own, await createAppointment(own, { start: '2031-07-01T18:15', end: '2031-07-01T19:00' }));
    const [mail] = await waitForMails(own.customerEmail, 1);
    expect(mail!.subject).toBe('Ihre Buchung: Haircut');
    expect(mail!.text).toMatch(/1\. Juli 2031[^]*18:15[^]*19:00/);
  });

  it('show a customer’s changed name a moment later', async () => {
    const own = await createPractice(crm);
    const appointment = await createAppointment(own);
    await createParticipation(own, appointment);
    await crm.put(own.at + path`/customers/${own.customer}`, { userName: 'Grace Murray', mobile: '+1' });
    const participation = await waitUntil(
      async () => {
        const { body: list } = await crm.get<Appointment[]>(`${own.at}/appointments`);
        return list[0]!.participations.find(({ name }) => name === 'Grace Murray');
      },
      { what: 'the new name', timeoutMs: 10_000 },
    );
    expect(participation).toMatchObject({ name: 'Grace Murray', mobile: '+1' });
  });
});

/** The query of the next page, from the `Link` header. */
function nextQuery({ headers }: Answer): Record<string, string> | undefined {
  const link = headers.get('link');
  if (link === null) return undefined;
  const [, address, relation] = /^<([^>]+)>; rel="(\w+)"$/.exec(link)!;
  expect(relation).toBe('next');
  return Object.fromEntries(new URL(address!).searchParams);
}
