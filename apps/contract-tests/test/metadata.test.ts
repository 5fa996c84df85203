import { beforeAll, describe, expect, it } from 'vitest';
import { path, type Problem, readPages } from '@scheduling/test-stack/client';
import { createCrm, createPractice, type Practice, type TestCrm, unique } from '@scheduling/test-stack/crm';

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
