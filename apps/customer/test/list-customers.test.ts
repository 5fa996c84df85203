import type { Customer, ListCustomersRequest } from '@scheduling/contracts/customer/v1';
import { isAddress } from '@scheduling/postgres';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { selectCustomers } from '../src/customer/list-customers.ts';
import { type CustomerUnderTest, startCustomer } from './customer-under-test.ts';

let service: CustomerUnderTest;
beforeAll(async () => {
  service = await startCustomer();
});
afterAll(() => service[Symbol.asyncDispose]());

type Query = Partial<ListCustomersRequest>;
const read = (query: Query) =>
  Array.fromAsync(service.customers.listCustomers({ crmId: 'one', providerReference: 'p1', ...query }));
const list = async (query: Query = {}): Promise<Customer[]> =>
  (await read(query)).flatMap(({ customers }) => customers);
const names = async (query: Query) => (await list(query)).map(({ userName }) => userName);
const create = (customerReference: string, fields: object = {}, scope = { crmId: 'one', providerReference: 'p1' }) =>
  service.customers.createCustomer({
    ...scope,
    customerReference,
    userName: `Name of ${customerReference}`,
    ...fields,
  });

/** Page by page. */
async function listPages(query: Query): Promise<Customer[][]> {
  const pages: Customer[][] = [];
  for (let cursor: string | undefined, isLast = false; !isLast; isLast = cursor === undefined) {
    const messages = await read({ ...query, cursor });
    pages.push(messages.flatMap(({ customers }) => customers));
    cursor = messages.at(-1)!.nextCursor;
  }
  return pages;
}

describe('the customers of a provider', () => {
  beforeAll(async () => {
    await create('first', {
      userName: 'Ada Ünal',
      email: 'Ada@Example.com',
      mobile: '+49 151',
      note: 'secret',
      language: 'en',
    });
    await create('second', { userName: 'Berta', email: 'jürgen@example.com' });
    await create('third@crm', { userName: '100%_\\' });
    await create('hidden', { userName: 'Ada of p2' }, { crmId: 'one', providerReference: 'p2' });
    await create('hidden', { userName: 'Ada of two' }, { crmId: 'two', providerReference: 'p1' });
  });

  it('are listed with all their fields, in the order of their creation', async () => {
    const { customer } = await service.customers.getCustomer({
      crmId: 'one',
      key: { $case: 'reference', value: { providerReference: 'p1', customerReference: 'first' } },
    });
    expect((await list())[0]).toEqual(customer);
    expect(await names({})).toEqual(['Ada Ünal', 'Berta', '100%_\\']);
    await service.customers.updateCustomer({
      crmId: 'one',
      providerReference: 'p1',
      customerReference: 'first',
      note: 'changed',
    });
    expect(await names({})).toEqual(['Ada Ünal', 'Berta', '100%_\\']);
  });

  it.each([
    ['ada@example.com', ['Ada Ünal']],
    ['JÜRGEN@EXAMPLE.COM', ['Berta']],
    ['ju\u0308rgen@example.com', ['Berta']],
    ['example.com', []],
    ['%', []],
  ])('are found by the whole address %s, in any case', async (email, found) => {
    expect(await names({ email })).toEqual(found);
  });

  it.each([
    ['aDA', ['Ada Ünal']],
    ['üN', ['Ada Ünal']],
    ['EXAMPLE.com', ['Ada Ünal', 'Berta']],
    ['49 15', ['Ada Ünal']],
    ['CRM', ['100%_\\']],
    ['0%_\\', ['100%_\\']],
    ['__', []],
    ['secret', []],
  ])('are found by the text %s in their name, address, mobile or reference', async (text, found) => {
    expect(await names({ text })).toEqual(found);
  });

  it('are found by an address in either form of its domain', async () => {
    const scope = { crmId: 'two', providerReference: 'p1' };
    await create('unicode', { userName: 'Clara', email: 'Clara@Bücher.example' }, scope);
    await create('ascii', { userName: 'Dora', email: 'dora@XN--bcher-kva.example' }, scope);
    for (const domain of ['bücher.example', 'BU\u0308CHER.example', 'xn--bcher-kva.example', 'XN--BCHER-KVA.EXAMPLE']) {
      expect(await names({ ...scope, email: `clara@${domain}` })).toEqual(['Clara']);
      expect(await names({ ...scope, email: `DORA@${domain}` })).toEqual(['Dora']);
    }
    expect(await list({ ...scope, email: 'clara@xn--bcher-kva.example' })).toMatchObject([
      { email: 'Clara@Bücher.example' },
    ]);
    expect(await names({ ...scope, email: 'clara@bucher.example' })).toEqual([]);
  });

  it('are found by an address with an index, where those of all providers are wanted', async () => {
    const plan = await service.database.transaction(async (tx) => {
      await sql`SET LOCAL enable_seqscan = off`.execute(tx);
      return sql`EXPLAIN SELECT id FROM customer WHERE crm_id = 'one' AND email IS NOT NULL AND ${isAddress(sql`email`, 'a@b.example')}`.execute(
        tx,
      );
    });
    expect(JSON.stringify(plan.rows)).toContain('customer_by_address_and_id');
  });

  it('are found by both at once', async () => {
    expect(await names({ email: 'ada@example.com', text: 'ünal' })).toEqual(['Ada Ünal']);
    expect(await names({ email: 'ada@example.com', text: 'berta' })).toEqual([]);
  });

  it('are not found if the provider or the cursor does not exist', async () => {
    await expect(list({ providerReference: 'nowhere' })).rejects.toMatchObject({
      category: 'not_found',
      code: 'provider.not_found',
    });
    await expect(list({ crmId: 'two', providerReference: 'p2' })).rejects.toMatchObject({
      category: 'not_found',
      code: 'provider.not_found',
    });
    for (const cursor of ['', 'made-up', Buffer.from('made-up').toString('base64url')]) {
      await expect(list({ cursor })).rejects.toMatchObject({
        category: 'invalid',
        code: 'customer.invalid',
        errors: [{ pointer: '/cursor' }],
      });
    }
  });
});

describe('many customers', () => {
  const total = 1_203;
  const ofP2 = { crmId: 'one', providerReference: 'p2' };

  /** Every hundredth has an address. */
  beforeAll(async () => {
    const [{ providerId }] = (await list(ofP2)) as [Customer];
    await service.database.kysely.deleteFrom('customer').where('providerId', '=', providerId).execute();
    await sql`
      INSERT INTO customer (crm_id, provider_id, provider_reference, reference, user_name, email)
      SELECT 'one', ${providerId}, 'p2', 'many-' || n, 'Name ' || n, CASE WHEN n % 100 = 0 THEN 'many@example.com' END
        FROM generate_series(1, ${total}::integer) AS n ORDER BY n`.execute(service.database.kysely);
  });

  it('arrive completely, in messages of bounded size', async () => {
    const messages = await read(ofP2);
    expect(messages.map(({ customers }) => customers.length)).toEqual([250, 250, 250, 250, 203]);
    expect(messages.at(-1)!.nextCursor).toBeUndefined();
    expect(new Set(messages.flatMap(({ customers }) => customers.map(({ id }) => id))).size).toBe(total);
  });

  it.each([
    [{}, 100, total],
    [{}, 250, total],
    [{}, 401, total],
    [{}, total, total],
    [{ email: 'MANY@example.com' }, 5, 12],
    [{ email: 'many@example.com' }, 12, 12],
    [{ text: 'name 12' }, 3, 15],
    [{ text: 'nobody' }, 3, 0],
  ])('are the same in pages: %j, %i of %i', async (filter, limit, count) => {
    const query = { ...ofP2, ...filter };
    const all = await list(query);
    expect(all).toHaveLength(count);
    const pages = await listPages({ ...query, limit });
    expect(pages.flat()).toEqual(all);
    expect(pages.slice(0, -1).every((page) => page.length === limit)).toBe(true);
    expect(pages.at(-1)!.length === 0).toBe(count === 0);
  });

  it('are all listed although others are created, changed and deleted meanwhile', async () => {
    const before = (await list(ofP2)).map(({ id }) => id);
    const seen: string[] = [];
    for await (const { customers } of service.customers.listCustomers(ofP2)) {
      seen.push(...customers.map(({ id }) => id));
      await create(`new-${seen.length}`, {}, ofP2);
      const reference = `many-${seen.length + 1}`;
      await service.database.kysely
        .updateTable('customer')
        .set({ reference: `renamed-${seen.length}` })
        .where('reference', '=', reference)
        .execute();
    }
    expect(seen.slice(0, total)).toEqual(before);
    expect(new Set(seen).size).toBe(seen.length);
  });

  it('are read without those of other providers', async () => {
    await sql`
      INSERT INTO customer (crm_id, provider_id, provider_reference, reference, user_name, email)
      SELECT 'one', uuidv4(), 'other-' || n, 'other', 'Other', n || '@b.example' FROM generate_series(1, 20000) AS n`.execute(
      service.database.kysely,
    );
    await sql`ANALYZE customer`.execute(service.database.kysely);
    const [{ id, providerId }] = (await list({ ...ofP2, limit: 1 })) as [Customer];
    const part = selectCustomers({
      crmId: 'one',
      providerId,
      matches: sql`user_name = 'Nobody'`,
      after: id,
      count: 250,
    });
    const { rows } = await sql`EXPLAIN ${part}`.execute(service.database.kysely);
    expect(JSON.stringify(rows)).toMatch(
      /Index Cond: \(\(crm_id = 'one'::text\) AND \(provider_id = [^)]+\) AND \(id > [^)]+\)\)"/,
    );
    const withAddress = selectCustomers({
      crmId: 'one',
      providerId,
      email: 'nobody@b.example',
      matches: undefined,
      after: id,
      count: 250,
    });
    const plan = JSON.stringify((await sql`EXPLAIN ${withAddress}`.execute(service.database.kysely)).rows);
    expect(plan).toMatch(
      /customer_by_address_and_id.*Index Cond: [^"]*address_key\(email\) = [^"]*provider_id = [^"]*id > /,
    );
  });
});
