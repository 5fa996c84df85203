import { eventually } from '@scheduling/testing';
import { beforeAll, describe, expect, it } from 'vitest';
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
import { findRows } from './find-word.ts';

let crm: TestCrm;
let practice: Practice;

beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

type Pairs = Record<string, string>;
const strict = { headers: { prefer: 'handling=strict' } };

function newCustomer(metadata?: Pairs, owner = practice) {
  const customerReference = unique('customer');
  return { customerReference, providerReference: owner.provider, userName: 'Ada', ...(metadata && { metadata }) };
}

/** The parameters of a filter. */
const filter = (pairs: Pairs): Pairs =>
  Object.fromEntries(Object.entries(pairs).map(([key, value]) => [`metadata[${key}]`, value]));

describe('metadata of customers (interface 4.4)', () => {
  it('is kept, replaced and cleared by an update', async () => {
    const customer = newCustomer({ tier: 'gold', 'crm.id': '7\nz' });
    const at = practice.at + path`/customers/${customer.customerReference}`;
    expect(await crm.post(`${practice.at}/customers`, customer)).toMatchObject({ status: 201, body: { customer } });
    const again = { ...customer, metadata: { tier: 'other' } };
    expect(await crm.post(`${practice.at}/customers`, again)).toMatchObject({ status: 200, body: { customer } });
    for (const [change, metadata] of [
      [{ note: 'n' }, customer.metadata],
      [{ metadata: { tier: 'silver' } }, { tier: 'silver' }],
      [{ metadata: {} }, null],
      [{ metadata: { shop: '7' } }, { shop: '7' }],
      [{ metadata: null }, null],
    ] as const) {
      expect(await crm.put(at, change)).toMatchObject({ status: 200, body: { customer: { metadata } } });
      expect(await crm.get(at)).toMatchObject({ status: 200, body: { customer: { metadata } } });
    }
  });

  it('finds them, in pages too, and whatever is in the values', async () => {
    const own = await createPractice(crm);
    const tricky = 'a&b=c[d]+ü %\t"\'';
    const people: string[] = [];
    const all: Pairs[] = [{ tier: 'gold' }, { tier: 'gold', t: tricky }, { tier: 'Gold' }, { tier: 'gold' }];
    for (const metadata of all) {
      const customer = newCustomer(metadata, own);
      await crm.post(`${own.at}/customers`, customer);
      people.push(customer.customerReference);
    }
    const [first, second, third, fourth] = people as [string, string, string, string];
    const address = `${own.at}/customers`;
    const find = async (pairs: Pairs, more: Pairs = {}) =>
      (await readPages<{ customerReference: string }>(crm, address, { limit: '2', ...filter(pairs), ...more })).map(
        (page) => page.map(({ customerReference }) => customerReference),
      );
    expect(await find({ tier: 'gold' })).toEqual([[first, second], [fourth]]);
    expect(await find({ tier: 'Gold' })).toEqual([[third]]);
    expect(await find({ t: tricky })).toEqual([[second]]);
    expect(await find({ t: tricky, tier: 'gold' })).toEqual([[second]]);
    expect(await find({ t: tricky, tier: 'Gold' })).toEqual([[]]);
    expect(await find({ tier: 'gold' }, { q: fourth })).toEqual([[fourth]]);
  });

  it('finds nobody of another CRM', async () => {
    const other = await createPractice(await createCrm());
    const pairs = { secret: unique('secret') };
    const customer = newCustomer(pairs, other);
    expect((await other.crm.post(`${other.at}/customers`, customer)).status).toBe(201);
    expect((await crm.get(`${practice.at}/customers`, { query: filter(pairs) })).body).toEqual([]);
    expect((await other.crm.get(`${other.at}/customers`, { query: filter(pairs) })).body).toMatchObject([customer]);
  });

  it('is known to strict handling, whatever its keys are', async () => {
    const customer = newCustomer({ anything: 'x' });
    expect(await crm.post(`${practice.at}/customers`, customer, strict)).toMatchObject({ status: 201 });
    const query = filter({ anything: 'x' });
    expect(await crm.get(`${practice.at}/customers`, { query, ...strict })).toMatchObject({
      status: 200,
      body: [customer],
    });
    for (const parameter of ['metadata[anything', 'Metadata[anything]', 'meta[anything]'])
      expect(
        await crm.get<Problem>(`${practice.at}/customers`, { query: { [parameter]: 'x' }, ...strict }),
      ).toMatchObject({
        status: 400,
        body: { code: 'request.unknown_field', errors: [{ parameter }] },
      });
    expect(await crm.get<Problem>(`${practice.at}/slots`, { query, ...strict })).toMatchObject({
      status: 400,
      body: { code: 'request.unknown_field', errors: [{ parameter: 'metadata[anything]' }] },
    });
  });

  it('is the same request whatever the order of its keys is', async () => {
    const customer = newCustomer({ a: '1', b: '2' });
    const headers = { 'idempotency-key': unique('key') };
    const first = await crm.post(`${practice.at}/customers`, customer, { headers });
    expect(first.status).toBe(201);
    const reordered = { ...customer, metadata: { b: '2', a: '1' } };
    const again = await crm.post(`${practice.at}/customers`, reordered, { headers });
    expect(again).toMatchObject({ status: 201, text: first.text });
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    const other = { ...customer, metadata: { a: '1', b: '3' } };
    expect(await crm.post(`${practice.at}/customers`, other, { headers })).toMatchObject({
      status: 422,
      body: { code: 'idempotency_key.reused' },
    });
  });
});

it('metadata is shown to nobody but the CRM: in no mail, page, calendar or event', async () => {
  const own = await createPractice(await createCrm({ sandbox: true, language: 'en' }));
  const { at, customer } = own;
  await own.crm.put('/sandbox/clock', { now: '2031-01-01T00:00:00Z' });
  const word = unique('noted').replace('-', '');
  const metadata = { [word]: word };
  const rules = { selfService: true, notifyProvider: true };
  expect((await own.crm.put(`${at}/booking-rules`, rules)).status).toBe(200);
  expect((await own.crm.put(at + path`/customers/${customer}`, { metadata })).status).toBe(200);
  const embedded = { reference: unique('p'), name: 'Bo', email: 'bo@customers.example', state: 'BOOKED', metadata };
  const appointment = await createAppointment(own, { capacity: 5, metadata, participations: [embedded] });
  const participation = await createParticipation(own, appointment, { metadata });
  const calendar = { reference: unique('calendar'), details: 'NAMES' };
  const { body: made } = await own.crm.post<{ calendar: { url: string } }>(`${at}/calendars`, calendar);
  const { body: linked } = await own.crm.get<{ link: { url: string } }>(
    at + path`/participations/${participation}/link`,
  );
  for (const url of [made.calendar.url, linked.link.url]) {
    const answer = await fetch(url);
    expect(answer.status).toBe(200);
    expect(await answer.text()).not.toContain(word);
  }
  expect((await own.crm.put(at + path`/appointments/${appointment}`, { description: 'other' })).status).toBe(200);
  expect((await own.crm.delete(`${at}/appointments`, { appointmentReference: appointment })).status).toBe(200);
  // About the booking, the change and the cancellation, to the customer, the participant and the provider.
  await eventually(async () => {
    const { text, body } = await own.crm.get<{ template: string }[]>('/sandbox/mails');
    const templates = new Set(body.map(({ template }) => template));
    expect(templates).toContain('booking-confirmed');
    expect(templates).toContain('appointment-cancelled');
    expect([...templates].filter((template) => template.startsWith('provider-'))).not.toEqual([]);
    expect(text).not.toContain(word);
    expect((await own.crm.get('/events', { query: { after: 'start' } })).text).not.toContain(word);
  });
  expect((await findRows(word)).map((found) => found.replace(/^\d+ rows of /, ''))).toEqual([
    'calendar.appointment',
    'calendar.participation',
    'customer.customer',
  ]);
});
