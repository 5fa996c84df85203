import type { Customer, ListCustomersRequest } from '@scheduling/contracts/customer/v1';
import { createRandom } from '@scheduling/testing/random';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { selectIdsWithMetadata } from '../src/customer/list-customers.ts';
import { type CustomerUnderTest, startCustomer } from './customer-under-test.ts';

let service: CustomerUnderTest;
beforeAll(async () => {
  service = await startCustomer();
});
afterAll(() => service[Symbol.asyncDispose]());

type Pairs = Record<string, string>;
const owner = { crmId: 'one', providerReference: 'p1' };
const create = (customerReference: string, metadata?: Pairs, scope = owner, fields: object = {}) =>
  service.customers.createCustomer({
    ...scope,
    customerReference,
    userName: `Name of ${customerReference}`,
    ...(metadata && { metadata: { pairs: metadata } }),
    ...fields,
  });
const read = async (customerReference: string, { crmId, providerReference } = owner): Promise<Customer> => {
  const key = { $case: 'reference' as const, value: { providerReference, customerReference } };
  return (await service.customers.getCustomer({ crmId, key })).customer!;
};

/** All pages, if there is a limit. */
async function find(metadata: Pairs, query: Partial<ListCustomersRequest> = {}): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | undefined, isLast = false; !isLast; isLast = cursor === undefined) {
    const request = { ...owner, ...query, metadata: { pairs: metadata }, cursor };
    const messages = await Array.fromAsync(service.customers.listCustomers(request));
    found.push(...messages.flatMap(({ customers }) => customers.map((each) => each.customerReference)));
    cursor = messages.at(-1)!.nextCursor;
  }
  return found;
}

describe('the metadata of a customer', () => {
  const pairs = { tier: 'gold', 'Shop.id_1-a': 'Straße 🦊\n2', tier_name: 'g', tierName: 'G' };

  it('is what it was created with, and an existing customer keeps its own', async () => {
    const { customer } = await create('created', pairs);
    expect(customer!.metadata).toEqual({ pairs });
    expect((await create('created', { tier: 'none' })).customer!.metadata).toEqual({ pairs });
    expect((await read('created')).metadata).toEqual({ pairs });
    expect((await create('without')).customer!.metadata).toBeUndefined();
  });

  it('is kept, replaced or cleared by an update, which is a version of the customer', async () => {
    await create('updated', pairs);
    const update = async (changes: object) =>
      (await service.customers.updateCustomer({ ...owner, customerReference: 'updated', ...changes })).customer!;
    expect(await update({ note: 'n' })).toMatchObject({ metadata: { pairs }, version: 2 });
    expect(await update({ metadata: { pairs: { tier: 'silver' } } })).toMatchObject({
      metadata: { pairs: { tier: 'silver' } },
      note: 'n',
      version: 3,
    });
    expect((await update({ metadata: { pairs: {} } })).metadata).toBeUndefined();
    expect((await read('updated')).metadata).toBeUndefined();
  });

  it('belongs to the content with which a booking brings a customer', async () => {
    const prepare = (metadata: Pairs) => create('prepared', metadata, owner, { forBooking: true });
    const { customer } = await prepare(pairs);
    expect((await prepare(pairs)).customer!.id).toBe(customer!.id);
    expect(customer!.metadata).toEqual({ pairs });
    // Calendar, which would have to decide about the first one, does not respond in this file.
    await expect(prepare({ tier: 'silver' })).rejects.toMatchObject({ category: 'unavailable' });
  });
});

describe('the search by metadata', () => {
  const keys = ['a', 'b', 'A', 'a.b', 'constructor'];
  const values = ['1', '2', '1 ', '{"a":"1"}', '%', 'ä'];
  const seed = Number(process.env['METADATA_SEED'] ?? Date.now() % 1_000_000);

  it(`finds what a plain model finds (METADATA_SEED=${seed})`, async () => {
    const random = createRandom(seed, 0);
    const somePairs = (from: number, to: number): Pairs =>
      Object.fromEntries(
        Array.from({ length: random.integer(from, to) }, () => [random.pick(keys), random.pick(values)]),
      );
    const scope = { crmId: 'one', providerReference: 'p2' };
    const model: { reference: string; metadata: Pairs }[] = [];
    for (let index = 0; index < 80; index += 1) {
      const metadata = somePairs(0, 3);
      await create(`random-${index}`, metadata, scope);
      model.push({ reference: `random-${index}`, metadata });
    }
    for (let round = 0; round < 40; round += 1) {
      const changed = random.pick(model);
      changed.metadata = somePairs(0, 3);
      await service.customers.updateCustomer({
        ...scope,
        customerReference: changed.reference,
        metadata: { pairs: changed.metadata },
      });
      const wanted = somePairs(1, 2);
      const expected = model
        .filter(({ metadata }) =>
          Object.entries(wanted).every(([key, value]) => Object.hasOwn(metadata, key) && metadata[key] === value),
        )
        .map(({ reference }) => reference);
      const limit = random.pick([undefined, 1, 3, 1_000]);
      expect(await find(wanted, { ...scope, limit }), JSON.stringify({ wanted, limit })).toEqual(expected);
    }
  });

  it('applies together with the other filters', async () => {
    await create('both-1', { group: 'both' }, owner, { email: 'both@example.com' });
    await create('both-2', { group: 'both' });
    await create('both-3', { group: 'other' }, owner, { email: 'both@example.com' });
    expect(await find({ group: 'both' })).toEqual(['both-1', 'both-2']);
    expect(await find({ group: 'both' }, { email: 'BOTH@example.com' })).toEqual(['both-1']);
    expect(await find({ group: 'both' }, { text: 'both-2' })).toEqual(['both-2']);
  });

  it('finds nobody of another CRM or provider, and nobody who is provisional', async () => {
    const secret = { secret: 'pair' };
    await create('of-two', secret, { crmId: 'two', providerReference: 'p1' });
    await create('of-p2', secret, { crmId: 'one', providerReference: 'p2' });
    await create('provisional', secret, owner, { forBooking: true });
    expect(await find(secret)).toEqual([]);
    await create('of-p1', secret);
    expect(await find(secret)).toEqual(['of-p1']);
    expect(await find(secret, { crmId: 'two' })).toEqual(['of-two']);
  });
});

describe('many customers', () => {
  const total = 10_000;
  /** A statement may take 5 seconds. */
  const batch = 1_000;
  let providerId: string;

  /** All have the same segment, as those of another CRM have, and every hundredth is rare. */
  beforeAll(async () => {
    const { kysely } = service.database;
    providerId = (await create('many-first', { order: '0' })).customer!.providerId;
    const other = (await create('many-other', {}, { crmId: 'two', providerReference: 'p1' })).customer!.providerId;
    for (let from = 1; from <= total; from += batch)
      await sql`
        INSERT INTO customer (crm_id, provider_id, provider_reference, reference, user_name, metadata)
        SELECT crm, provider::uuid, 'p1', 'many-' || n, 'Name', jsonb_strip_nulls(jsonb_build_object(
                 'segment', 'all', 'order', n::text, 'rare', CASE WHEN crm = 'one' AND n % 100 = 0 THEN 'yes' END,
                 'foreign', CASE WHEN crm = 'two' THEN 'yes' END))
          FROM (VALUES ('one', ${providerId}), ('two', ${other})) AS owner(crm, provider),
               generate_series(${from}::integer, ${from + batch - 1}::integer) AS n
         ORDER BY n`.execute(kysely);
    await sql`ANALYZE customer`.execute(kysely);
  }, 120_000);

  it('are found by a rare pair, in pages too', async () => {
    const expected = Array.from({ length: total / 100 }, (_, index) => `many-${(index + 1) * 100}`);
    expect(await find({ rare: 'yes' })).toEqual(expected);
    expect(await find({ rare: 'yes', segment: 'all' }, { limit: 30 })).toEqual(expected);
    expect(await find({ order: '7777' })).toEqual(['many-7777']);
  });

  it('are found by a pair that nearly all have', async () => {
    const found = await find({ segment: 'all' });
    expect(found).toHaveLength(total);
    expect(found.slice(0, 2)).toEqual(['many-1', 'many-2']);
    const messages = await Array.fromAsync(
      service.customers.listCustomers({ ...owner, metadata: { pairs: { segment: 'all' } }, limit: 5 }),
    );
    expect(messages.flatMap(({ customers }) => customers)).toHaveLength(5);
  });

  it('are found with an index that has those of each provider by themselves', async () => {
    const entriesRead = async (metadata: Pairs): Promise<number> => {
      const query = selectIdsWithMetadata({ providerId, metadata });
      const { rows } = await sql<{
        'QUERY PLAN': [{ Plan: object }];
      }>`EXPLAIN (ANALYZE, FORMAT JSON) ${query}`.execute(service.database.kysely);
      const text = JSON.stringify(rows);
      const index = /"Node Type":"Bitmap Index Scan"[^{}]*"Index Name":"customer_by_metadata"[^{}]*"Actual Rows":(\d+)/;
      expect(text).toMatch(index);
      return Number(index.exec(text)![1]);
    };
    expect(await entriesRead({ order: '4711' })).toBe(1);
    expect(await entriesRead({ rare: 'yes' })).toBe(total / 100);
    // As many as all customers of another CRM have.
    expect(await entriesRead({ foreign: 'yes' })).toBe(0);
  });
});
