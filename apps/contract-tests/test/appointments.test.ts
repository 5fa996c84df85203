import { beforeAll, describe, expect, it } from 'vitest';
import { apiInfo, type Appointment, readAppointment } from './answers.ts';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  newAppointment,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { readMails, waitForMails } from '@scheduling/test-stack/inbox';
import { withoutTime } from './mails.ts';

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
});

const appointments = (): string => `${practice.at}/appointments`;
const participations = (): string => `${practice.at}/participations`;

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
        {
          reference: `${unique('p')}@test`,
          name: 'Ada',
          email: 'ada@customers.example',
          mobile: '1',
          note: 'n',
          state: 'BOOKED',
        },
        { reference: `${unique('p')}@test`, name: 'Bob', email: 'bob@customers.example', state: 'DELETED' },
      ],
    });

  it('are created with all fields, and repeating the request returns the existing one', async () => {
    const request = full();
    const {
      productName: _name,
      participations: sent,
      address: _address,
      ...same
    } = request as { participations: object[] } & Record<string, unknown>;
    const named = { appointmentReference: same['reference'], customerReference: null };
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
        metadata: null,
        state: 'ACTIVE',
        participations: [
          { ...sent[0], ...named, messages: null, metadata: null, noShow: false },
          { ...sent[1], ...named, mobile: null, note: null, messages: null, metadata: null, noShow: false },
        ],
      },
    });
    const again = await crm.post(appointments(), request);
    expect(again.status).toBe(200);
    expect(again.body).toStrictEqual(created.body);
    // Postgres writes the JSON of lists, calendar that of creations.
    const { text: list } = await crm.get(appointments());
    expect(created.text).toBe(`{"api-info":${JSON.stringify(apiInfo)},"appointment":${list.slice(1, -1)}}`);
    expect(await crm.post(appointments(), { ...request, capacity: 6 })).toMatchObject({
      status: 409,
      body: { code: 'appointment.reference_taken' },
    });
    const embedded = (sent[0] as { reference: string }).reference;
    const other = newAppointment(practice, {
      participations: [{ reference: embedded, name: 'X', email: 'x@customers.example', state: 'BOOKED' }],
    });
    expect(await crm.post(appointments(), other)).toMatchObject({
      status: 409,
      body: { code: 'participation.reference_taken' },
    });
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
        metadata: null,
        state: 'ACTIVE',
      },
    });
  });

  it.each([
    ['2031-07-01T09:00', '2031-07-01T07:00:00Z', 'local summer time'],
    ['2031-07-01T09:00:30', '2031-07-01T07:00:30Z', 'seconds'],
    ['2031-07-01T09:00:00Z', '2031-07-01T09:00:00Z', 'what the service returned'],
    ['2031-07-01T09:00-05:30', '2031-07-01T14:30:00Z', 'an offset'],
    [new Date('2031-07-01T14:30Z').toISOString(), '2031-07-01T14:30:00Z', 'JavaScript'],
    ['2031-07-01T14:30:00.000001', '2031-07-01T12:30:00Z', 'Python'],
    ['2031-07-01T14:30:00+0200', '2031-07-01T12:30:00Z', 'PHP'],
    ['2031-03-30T02:30', '2031-03-30T01:30:00Z', 'a time that is skipped'],
    ['2031-10-26T02:30', '2031-10-26T00:30:00Z', 'a time that occurs twice'],
    ['2028-02-29T23:59', '2028-02-29T22:59:00Z', 'a leap day'],
  ])('take %s as %s: %s', async (start, expected) => {
    const created = await crm.post<{ appointment: Appointment }>(
      appointments(),
      newAppointment(practice, { start, end: '2032-01-01T00:00' }),
    );
    expect(created).toMatchObject({ status: 201, body: { appointment: { start: expected } } });
  });

  it('are in the time zone of their provider', async () => {
    const kolkata = await createPractice(crm, { timeZone: 'Asia/Kolkata' });
    const created = await crm.post(`${kolkata.at}/appointments`, newAppointment(kolkata));
    expect(created).toMatchObject({ status: 201, body: { appointment: { start: '2031-03-03T03:30:00Z' } } });
  });

  it('must end after they start', async () => {
    for (const end of ['2031-03-03T09:00', '2031-03-03T08:59']) {
      expect(await crm.post(appointments(), newAppointment(practice, { end }))).toMatchObject({
        status: 400,
        body: { code: 'appointment.invalid', errors: [{ pointer: '/end' }] },
      });
    }
  });

  it('are listed by start, filtered by product, resource, state and period, active and cancelled', async () => {
    practice = await createPractice(crm);
    const late = await createAppointment(practice, {
      start: '2031-03-05T09:00',
      end: '2031-03-05T10:00',
      productReference: 'other@test',
    });
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
    expect(await list({ state: 'CANCELLED' })).toEqual([middle]);
    expect(await list({ state: 'ACTIVE' })).toEqual([early, late]);
    expect(await list({ state: 'ACTIVE', productRef: 'other@test', from: '2031-03-03T10:00' })).toEqual([late]);
    expect(await crm.get(appointments(), { query: { state: 'CANCELED' } })).toMatchObject({
      status: 400,
      body: { errors: [{ parameter: 'state' }] },
    });
    expect(await crm.get(appointments(), { query: { includeArchived: 'yes' } })).toMatchObject({
      status: 400,
      body: { errors: [{ parameter: 'includeArchived' }] },
    });
    expect(await crm.get('/provider/nothing%40test/appointments')).toMatchObject({
      status: 404,
      body: { code: 'provider.not_found' },
    });
  });

  it('are archived a year after their end, and from then on listed only on request', async () => {
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

describe('cancelling and deleting appointments (interface 4.2)', () => {
  beforeAll(async () => {
    practice = await createPractice(crm);
  });

  it('cancels once, with all participations, and notifies everybody with an active one', async () => {
    const appointment = await createAppointment(practice, { capacity: 10 });
    const states = ['RESERVED', 'REQUESTED', 'BOOKED', 'CANCELED', 'DELETED'];
    const emails = new Map<string, string>();
    for (const state of states) {
      const customerReference = `${unique('customer')}@test`;
      const email = `${unique('mail')}@customers.example`;
      emails.set(state, email);
      await crm.post(`${practice.at}/customers`, {
        customerReference,
        providerReference: practice.provider,
        userName: state,
        email,
        language: 'en',
      });
      const body = { reference: `${unique('p')}@test`, appointmentReference: appointment, customerReference, state };
      expect(await crm.post(participations(), body, { query: { sendMails: false } })).toMatchObject({ status: 201 });
    }
    const cancelled = await crm.delete<{ appointment: Appointment }>(
      appointments(),
      { appointmentReference: appointment },
      { query: { message: 'Water damage' } },
    );
    expect(cancelled).toMatchObject({
      status: 200,
      body: { 'api-info': apiInfo, appointment: { reference: appointment, state: 'CANCELLED' } },
    });
    expect(cancelled.body.appointment.participations.map(({ state }) => state)).toEqual(states.map(() => 'CANCELED'));
    for (const state of ['RESERVED', 'REQUESTED', 'BOOKED']) {
      const [mail] = await waitForMails(emails.get(state)!, 1);
      expect(mail!.subject).toMatch(/^Cancelled: .* – Haircut$/);
      expect(mail!.text).toContain('Water damage');
    }
    expect(await crm.delete(appointments(), { appointmentReference: appointment })).toMatchObject({
      status: 200,
      body: { appointment: { state: 'CANCELLED' } },
    });
    expect(
      await crm.post(participations(), {
        reference: 'late@test',
        appointmentReference: appointment,
        customerReference: practice.customer,
        state: 'BOOKED',
      }),
    ).toMatchObject({
      status: 409,
      body: { code: 'appointment.cancelled' },
    });
    // Mails are sent in the order of their events, so any further ones would have arrived by now.
    const marker = await createAppointment(practice);
    await createParticipation(practice, marker);
    await waitForMails(practice.customerEmail, 1);
    const counts = await Promise.all(states.map(async (state) => (await readMails(emails.get(state)!)).length));
    expect(counts).toEqual([1, 1, 1, 0, 0]);
  });

  it('deletes without sending mails', async () => {
    const own = await createPractice(crm);
    const appointment = await createAppointment(own);
    const participation = await createParticipation(own, appointment);
    await waitForMails(own.customerEmail, 1);
    const target = { appointmentReference: appointment };
    expect(await crm.delete(`${own.at}/appointments/withoutNotification`, target)).toMatchObject({ status: 204 });
    expect((await crm.get(`${own.at}/appointments`)).body).toEqual([]);
    expect(
      await crm.post(`${own.at}/participations/${encodeURIComponent(participation)}`, { state: 'CANCELED' }),
    ).toMatchObject({ status: 404 });
    expect(await crm.delete(`${own.at}/appointments/withoutNotification`, target)).toMatchObject({
      status: 404,
      body: { code: 'appointment.not_found' },
    });
    const next = await createAppointment(own);
    await createParticipation(own, next);
    expect((await waitForMails(own.customerEmail, 2)).map(withoutTime)).toEqual([
      'Your booking: Haircut',
      'Your booking: Haircut',
    ]);
  });

  it('takes its arguments from the body or the query, but not two different values', async () => {
    const fresh = (): Promise<string> => createAppointment(practice);
    const [cancel, remove] = [appointments(), `${appointments()}/withoutNotification`];
    for (const [address, status] of [
      [cancel, 200],
      [remove, 204],
    ] as const) {
      const inQuery = { appointmentReference: await fresh() };
      expect(await crm.delete(address, undefined, { query: inQuery })).toMatchObject({ status });
      const announced = { appointmentReference: await fresh() };
      expect(
        await crm.delete(address, undefined, { query: announced, headers: { 'content-type': 'application/json' } }),
      ).toMatchObject({ status });
      expect(
        await crm.delete(address, undefined, { query: { appointmentReference: await fresh() }, rawBody: '' }),
      ).toMatchObject({ status });
      const both = { appointmentReference: await fresh() };
      expect(await crm.delete(address, both, { query: both })).toMatchObject({ status });
      const [one, two] = [await fresh(), await fresh()];
      expect(
        await crm.delete(address, { appointmentReference: one }, { query: { appointmentReference: two } }),
      ).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/appointmentReference' }] },
      });
      expect([(await readAppointment(practice, one)).state, (await readAppointment(practice, two)).state]).toEqual([
        'ACTIVE',
        'ACTIVE',
      ]);
      expect(await crm.delete(address)).toMatchObject({ status: 400, body: { code: 'request.invalid' } });
    }
    expect(await crm.delete(remove, { appointmentReference: await fresh(), seriesId: 's' })).toMatchObject({
      status: 400,
    });
    const differing = await crm.delete(
      cancel,
      { appointmentReference: await fresh(), message: 'a' },
      { query: { message: 'b' } },
    );
    expect(differing).toMatchObject({ status: 400, body: { errors: [{ pointer: '/message' }] } });
    expect(await crm.delete(cancel, { appointmentReference: 'nothing@test' })).toMatchObject({
      status: 404,
      body: { code: 'appointment.not_found' },
    });
  });
});
