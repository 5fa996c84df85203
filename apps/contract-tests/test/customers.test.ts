import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { path, type Problem, readPages } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { waitForMails } from '@scheduling/test-stack/inbox';

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

function newCustomer(fields: Record<string, unknown> = {}) {
  return {
    customerReference: `${unique('customer')}@test`,
    providerReference: practice.provider,
    userName: 'Ada Lovelace',
    ...fields,
  };
}

const customers = (): string => `${practice.at}/customers`;
const at = (reference: string): string => customers() + path`/${reference}`;

describe('customers (interface 4.4)', () => {
  it('are created once, returned in full and read', async () => {
    const customer = newCustomer({
      email: 'ada@customers.example',
      mobile: '+44 1',
      note: 'Likes\ntea',
      language: 'en',
      metadata: { tier: 'gold' },
    });
    const created = await crm.post(customers(), customer);
    expect(created.status).toBe(201);
    expect(created.body).toStrictEqual({ 'api-info': { version: '1' }, customer });
    const again = await crm.post(customers(), { ...customer, userName: 'Somebody else', note: null });
    expect(again.status).toBe(200);
    expect(again.body).toStrictEqual(created.body);
    const read = await crm.get(at(customer.customerReference));
    expect(read.status).toBe(200);
    expect(read.body).toStrictEqual(created.body);
  });

  it('show null for what is absent', async () => {
    const customer = newCustomer();
    expect((await crm.post(customers(), customer)).body).toStrictEqual({
      'api-info': { version: '1' },
      customer: { ...customer, email: null, mobile: null, note: null, language: null, metadata: null },
    });
  });

  it('are 204 if there is none, even under an unknown provider', async () => {
    for (const address of [at('nobody@test'), '/provider/nothing%40test/customers/nobody%40test']) {
      expect(await crm.get(address)).toMatchObject({ status: 204, text: '' });
    }
  });

  it('belong to the provider of the address', async () => {
    expect(await crm.post(customers(), newCustomer({ providerReference: 'other@test' }))).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/providerReference' }] },
    });
    const unknown = { status: 404, body: { code: 'provider.not_found' } };
    expect(
      await crm.post('/provider/nothing%40test/customers', newCustomer({ providerReference: 'nothing@test' })),
    ).toMatchObject(unknown);
    const other = await createPractice(crm);
    const same = {
      customerReference: practice.customer,
      providerReference: other.provider,
      userName: 'Another person',
    };
    expect(await crm.post(`${other.at}/customers`, same)).toMatchObject({
      status: 201,
      body: { customer: { userName: 'Another person' } },
    });
  });

  it('update the given fields: null clears, absent keeps', async () => {
    const customer = newCustomer({ email: 'ada@customers.example', mobile: '1', note: 'n', language: 'de' });
    await crm.post(customers(), customer);
    expect(
      await crm.put(at(customer.customerReference), { email: null, userName: 'Ada King', note: '' }),
    ).toMatchObject({
      status: 200,
      body: { 'api-info': { version: '1' }, customer: { ...customer, email: null, userName: 'Ada King', note: null } },
    });
    expect(await crm.put(at(customer.customerReference), { language: 'en', mobile: '2' })).toMatchObject({
      status: 200,
      body: { customer: { language: 'en', mobile: '2', userName: 'Ada King' } },
    });
  });

  it('change their reference, unless it is taken', async () => {
    const [first, second] = [newCustomer(), newCustomer()];
    await crm.post(customers(), first);
    await crm.post(customers(), second);
    const renamed = `${unique('renamed')}@test`;
    expect(await crm.put(at(first.customerReference), { customerReference: second.customerReference })).toMatchObject({
      status: 409,
      body: { code: 'customer.reference_taken' },
    });
    expect(await crm.put(at(first.customerReference), { customerReference: renamed })).toMatchObject({
      status: 200,
      body: { customer: { customerReference: renamed } },
    });
    expect(await crm.get(at(first.customerReference))).toMatchObject({ status: 204 });
    expect(await crm.get(at(renamed))).toMatchObject({ status: 200 });
    const appointment = await createAppointment(practice);
    await createParticipation(practice, appointment, { customerReference: renamed });
  });

  it('are listed in the order of their creation, completely or in pages, and found by e-mail or a text', async () => {
    const own = await createPractice(crm);
    const people = Array.from({ length: 5 }, (_, index) =>
      newCustomer({
        providerReference: own.provider,
        userName: `Rosa ${index}`,
        email: `rosa.${index}@customers.example`,
        mobile: null,
        note: null,
        language: null,
        metadata: null,
      }),
    );
    for (const person of people) await crm.post(`${own.at}/customers`, person);
    const address = `${own.at}/customers`;
    const all = await crm.get<object[]>(address);
    expect(all).toMatchObject({ status: 200, body: [{ customerReference: own.customer }, ...people] });
    expect(all.body[1]).toStrictEqual(people[0]);
    expect(all.headers.get('link')).toBeNull();

    const pages = await readPages<object>(crm, address, { limit: '2', q: 'ROSA' });
    expect(pages).toStrictEqual([people.slice(0, 2), people.slice(2, 4), people.slice(4)]);
    expect((await crm.get(address, { query: { email: 'ROSA.3@customers.example' } })).body).toStrictEqual([people[3]]);
    expect((await crm.get(address, { query: { q: people[4]!.customerReference } })).body).toStrictEqual([people[4]]);
    expect((await crm.get(address, { query: { q: 'nobody' } })).body).toStrictEqual([]);
    expect(await crm.get('/provider/nothing%40test/customers')).toMatchObject({
      status: 404,
      body: { code: 'provider.not_found' },
    });
  });

  it('must keep a name and a reference', async () => {
    for (const fields of [
      { userName: null },
      { userName: '' },
      { customerReference: null },
      { customerReference: '' },
    ]) {
      expect(await crm.put(at(practice.customer), fields)).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: `/${Object.keys(fields)[0]}` }] },
      });
    }
  });

  it('are 404 on an update if there is none', async () => {
    expect(await crm.put(at('nobody@test'), { note: 'n' })).toMatchObject({
      status: 404,
      body: { code: 'customer.not_found' },
    });
  });

  it('can be booked immediately after their creation', async () => {
    const appointment = await createAppointment(practice, { capacity: 20 });
    for (let round = 0; round < 20; round += 1) {
      const customer = newCustomer();
      await crm.post(customers(), customer);
      await createParticipation(practice, appointment, { customerReference: customer.customerReference });
    }
    const { body } = await crm.get<{ reference: string; participations: unknown[] }[]>(`${practice.at}/appointments`);
    expect(body.find(({ reference }) => reference === appointment)!.participations).toHaveLength(20);
  });
});

describe('deleting a customer (interface 4.4)', () => {
  let own: Practice;
  let address: string;
  beforeEach(async () => {
    own = await createPractice(crm);
    address = own.at + path`/customers/${own.customer}`;
  });

  it('answers 204, and 404 if there is none', async () => {
    expect(await crm.delete(address)).toMatchObject({ status: 204, text: '' });
    expect(await crm.get(address)).toMatchObject({ status: 204 });
    for (const missing of [address, own.at + path`/customers/nobody@test`]) {
      expect(await crm.delete(missing)).toMatchObject({ status: 404, body: { code: 'customer.not_found' } });
    }
  });

  it('is rejected while there are future appointments, which are named, and changes nothing', async () => {
    const appointment = await createAppointment(own);
    await createParticipation(own, appointment);
    for (const options of [{}, { query: { ignoreFutureAppointments: 'false' } }]) {
      const refused = await crm.delete<Problem>(address, undefined, options);
      expect(refused).toMatchObject({ status: 409, body: { code: 'customer.has_future_appointments' } });
      expect(refused.body.detail).toContain(appointment);
    }
    expect(await crm.get(address)).toMatchObject({ status: 200 });
  });

  it('is not rejected for cancelled or past appointments', async () => {
    const cancelled = await createAppointment(own);
    await createParticipation(own, cancelled);
    await crm.delete(`${own.at}/appointments`, { appointmentReference: cancelled });
    await createParticipation(
      own,
      await createAppointment(own, { start: '2020-01-06T09:00', end: '2020-01-06T10:00' }),
    );
    const left = await createParticipation(own, await createAppointment(own));
    await crm.post(own.at + path`/participations/${left}`, { state: 'CANCELED' });
    expect(await crm.delete(address)).toMatchObject({ status: 204 });
  });

  it.each(['', 'true', '1', 'yes'])(
    'with ignoreFutureAppointments=%s frees the seats, immediately hides the person, and notifies them once',
    async (flag) => {
      const [future, past] = [
        await createAppointment(own),
        await createAppointment(own, { start: '2020-01-06T09:00', end: '2020-01-06T10:00' }),
      ];
      await createParticipation(own, future, { message: 'secret message' });
      await createParticipation(own, past);
      await crm.put(address, { note: 'secret note', mobile: '+49 170 999' });
      await waitForMails(own.customerEmail, 2);
      expect(await crm.delete(address, undefined, { query: { ignoreFutureAppointments: flag } })).toMatchObject({
        status: 204,
      });
      const { body, text } = await crm.get<{ reference: string; participations: unknown[] }[]>(
        `${own.at}/appointments`,
        { query: { includeArchived: true } },
      );
      expect(body.find(({ reference }) => reference === future)!.participations).toEqual([]);
      expect(body.find(({ reference }) => reference === past)!.participations).toHaveLength(1);
      // Matches the whole number: the references contain digits, too.
      expect(text).not.toMatch(/Grace|secret|\+49 170 999/);
      expect(text).not.toContain(own.customer);
      expect(text).not.toContain(own.customerEmail);
      expect(
        await crm.post(`${own.at}/participations`, {
          reference: unique('p'),
          appointmentReference: future,
          customerReference: own.customer,
          state: 'BOOKED',
        }),
      ).toMatchObject({
        status: 404,
        body: { code: 'customer.not_found' },
      });
      const next = { customerReference: `${unique('next')}@test`, providerReference: own.provider, userName: 'Next' };
      await crm.post(`${own.at}/customers`, next);
      await createParticipation(own, future, { customerReference: next.customerReference });
      expect(await waitForMails(own.customerEmail, 3)).toHaveLength(3);
    },
  );

  it('accepts the flag in the body, too, but not two different values', async () => {
    await createParticipation(own, await createAppointment(own));
    const flag = { ignoreFutureAppointments: true };
    const query = { ignoreFutureAppointments: 'false' };
    expect(await crm.delete(address, flag, { query })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: '/ignoreFutureAppointments' }] },
    });
    expect(
      await crm.delete(address, { ignoreFutureAppointments: false }, { query: { ignoreFutureAppointments: '' } }),
    ).toMatchObject({ status: 400 });
    expect(await crm.get(address)).toMatchObject({ status: 200 });
    expect(await crm.delete(address, flag)).toMatchObject({ status: 204 });
  });
});
