import { CustomerChange, type CustomerChanged } from '@scheduling/contracts/events/v1';
import type { CreateCustomerRequest } from '@scheduling/contracts/customer/v1';
import { events } from '@scheduling/events';
import { createDatabase, type Database } from '@scheduling/postgres';
import { runWithContext } from '@scheduling/runtime';
import { eventually, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CustomerBesideCalendar, startCustomer, startCustomerWithCalendar } from './customer-under-test.ts';

const owned = { crmId: 'one', providerReference: 'p1' };
const absent = { code: 'customer.not_found' };

let service: CustomerBesideCalendar;
let calendar: Database<object>;

beforeAll(async () => {
  service = await startCustomerWithCalendar();
  calendar = createDatabase<object>({
    url: service.calendarDatabaseUrl,
    applicationName: 'test',
    logger: testLogger('customer'),
    ...longTimeout,
  });
}, 120_000);
afterAll(async () => {
  await calendar?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
});

interface Prepared extends CreateCustomerRequest {
  id: string;
}

/** Nobody else has the reference. */
async function prepare(fields: Partial<CreateCustomerRequest> = {}): Promise<Prepared> {
  const request = {
    ...owned,
    customerReference: `customer-${randomUUID()}`,
    userName: 'Ada',
    email: 'ada@example.com',
    note: 'VIP',
    ...fields,
  };
  const { customer, provisional } = await runWithContext({ requestId: 'request', actor: 'crm:sk_123456789' }, () =>
    service.customers.createCustomer({ ...request, forBooking: true }),
  );
  expect(provisional).toBe(true);
  return { ...request, id: customer!.id };
}

/** What a booking does in calendar's database, without what calendar does afterwards. Whether it was possible. */
async function bookInCalendar({ crmId, id, customerReference, userName, email }: Prepared): Promise<boolean> {
  const prepared = JSON.stringify({ id, userName, email });
  const { rows } = await sql<{ id: string | null }>`
    SELECT (add_prepared_customer(${crmId}, ${randomUUID()}, ${customerReference}, ${prepared}::jsonb)).id AS id`.execute(
    calendar.kysely,
  );
  return rows[0]!.id !== null;
}

const get = ({ crmId, providerReference, customerReference }: Prepared) =>
  service.customers.getCustomer({
    crmId,
    key: { $case: 'reference', value: { providerReference, customerReference } },
  });

const keyOf = ({ crmId, providerReference, customerReference }: Prepared) => ({
  crmId,
  providerReference,
  customerReference,
});

async function listed(): Promise<string[]> {
  const parts = await Array.fromAsync(service.customers.listCustomers(owned));
  return parts.flatMap(({ customers }) => customers.map(({ id }) => id));
}

const rowOf = ({ id }: { id: string }) =>
  service.database.kysely.selectFrom('customer').selectAll().where('id', '=', id).executeTakeFirst();

async function eventsOf({ id }: { id: string }): Promise<CustomerChanged[]> {
  const rows = await service.database.kysely
    .selectFrom('outbox')
    .select('data')
    .where('subject', '=', events.customerChanged.subject)
    .orderBy('id')
    .execute();
  return rows.map(({ data }) => events.customerChanged.fromJson(data!)).filter(({ customerId }) => customerId === id);
}

/** Gives somebody else the reference of the customer. */
async function rename({ crmId, providerReference, customerReference: newCustomerReference }: Prepared) {
  const other = { crmId, providerReference, customerReference: `other-${randomUUID()}` };
  await service.customers.createCustomer({ ...other, userName: 'Other' });
  return service.customers.updateCustomer({ ...other, newCustomerReference });
}

describe('a customer that is prepared for a booking', () => {
  it('is shown to nobody, and there is no event about it', async () => {
    const prepared = await prepare();
    const { crmId, id } = prepared;
    await expect(get(prepared)).rejects.toMatchObject(absent);
    await expect(service.customers.getCustomer({ crmId, key: { $case: 'id', value: id } })).rejects.toMatchObject(
      absent,
    );
    await expect(service.customers.getRecipient({ crmId, customerId: id })).rejects.toMatchObject(absent);
    await expect(service.customers.updateCustomer({ ...keyOf(prepared), userName: 'Eve' })).rejects.toMatchObject(
      absent,
    );
    await expect(
      service.customers.updateCustomer({ ...keyOf(prepared), newCustomerReference: 'new' }),
    ).rejects.toMatchObject(absent);
    await expect(
      service.customers.deleteCustomer({ ...keyOf(prepared), ignoreFutureAppointments: true }),
    ).rejects.toMatchObject(absent);
    expect(await listed()).not.toContain(id);
    expect(await eventsOf(prepared)).toEqual([]);
    // None of this prevents the booking.
    expect(await bookInCalendar(prepared)).toBe(true);
  });

  it('is shared by bookings that bring the same content', async () => {
    const prepared = await prepare();
    expect((await prepare(prepared)).id).toBe(prepared.id);
    expect(await bookInCalendar(prepared)).toBe(true);
    expect(await bookInCalendar(prepared)).toBe(true);
  });

  it('is replaced by one with other content, and cannot be booked any more', async () => {
    const prepared = await prepare();
    for (const other of [
      { userName: 'Eve' },
      { email: undefined },
      { note: 'other' },
      { mobile: '1' },
      { language: 'de' },
    ]) {
      const { id, ...request } = prepared;
      const replacing = await prepare({ ...request, ...other });
      expect(replacing.id).not.toBe(id);
      expect(await bookInCalendar(prepared)).toBe(false);
      expect(await rowOf(prepared)).toBeUndefined();
      prepared.id = replacing.id;
      Object.assign(prepared, other);
    }
  });

  it('is nobody else as soon as it is booked, whatever a later booking brings', async () => {
    const prepared = await prepare();
    await bookInCalendar(prepared);
    const { customer, provisional } = await service.customers.createCustomer({
      ...keyOf(prepared),
      userName: 'Eve',
      forBooking: true,
    });
    expect(provisional).toBe(false);
    expect(customer).toMatchObject({ id: prepared.id, userName: 'Ada', version: 1 });
  });

  it.each<[string, (prepared: Prepared) => Promise<unknown>]>([
    ['reads it', (prepared) => get(prepared)],
    [
      'reads it by its id',
      ({ crmId, id }) => service.customers.getCustomer({ crmId, key: { $case: 'id', value: id } }),
    ],
    ['writes a mail to it', ({ crmId, id }) => service.customers.getRecipient({ crmId, customerId: id })],
    [
      'creates it',
      async (prepared) =>
        expect(await service.customers.createCustomer({ ...keyOf(prepared), userName: 'Eve' })).toMatchObject({
          created: false,
          customer: { id: prepared.id },
        }),
    ],
    [
      'gives somebody its reference',
      (prepared) => expect(rename(prepared)).rejects.toMatchObject({ code: 'customer.reference_taken' }),
    ],
    ['settles it', (prepared) => service.customers.settleCustomer(prepared)],
  ])('exists once it is booked, for whoever %s', async (_what, act) => {
    const prepared = await prepare();
    await bookInCalendar(prepared);
    await act(prepared);
    expect(await rowOf(prepared)).toMatchObject({
      userName: 'Ada',
      email: 'ada@example.com',
      note: 'VIP',
      version: 1,
      provisionalUntil: null,
      preparedBy: null,
    });
    expect(await listed()).toContain(prepared.id);
    expect(await eventsOf(prepared)).toMatchObject([
      { version: 1, change: CustomerChange.CREATED, actor: 'crm:sk_123456789' },
    ]);
    expect((await service.customers.settleCustomer(prepared)).customer).toMatchObject({ id: prepared.id, version: 1 });
    await service.customers.dropCustomer(prepared);
    expect((await get(prepared)).customer).toMatchObject({ id: prepared.id });
    expect(await eventsOf(prepared)).toHaveLength(1);
  });

  it('exists once it is booked, for whoever changes or deletes it', async () => {
    const [changed, renamed, deleted] = [await prepare(), await prepare(), await prepare()];
    for (const prepared of [changed, renamed, deleted]) await bookInCalendar(prepared);
    expect(
      (await service.customers.updateCustomer({ ...keyOf(changed), userName: 'Ada King' })).customer,
    ).toMatchObject({ id: changed.id, userName: 'Ada King', version: 2 });
    expect(
      (await service.customers.updateCustomer({ ...keyOf(renamed), newCustomerReference: `new-${randomUUID()}` }))
        .customer,
    ).toMatchObject({ id: renamed.id, version: 2 });
    await service.customers.deleteCustomer({ ...keyOf(deleted), ignoreFutureAppointments: false });
    await expect(get(deleted)).rejects.toMatchObject(absent);
    const changesOf = async (prepared: Prepared) =>
      (await eventsOf(prepared)).map(({ version, change }) => [version, change]);
    for (const prepared of [changed, renamed])
      expect(await changesOf(prepared)).toEqual([
        [1, CustomerChange.CREATED],
        [2, CustomerChange.UPDATED],
      ]);
    expect(await changesOf(deleted)).toEqual([
      [1, CustomerChange.CREATED],
      [2, CustomerChange.DELETED],
    ]);
  });

  it.each<[string, (prepared: Prepared) => Promise<unknown>]>([
    [
      'is created with it',
      async (prepared) =>
        expect(await service.customers.createCustomer({ ...keyOf(prepared), userName: 'Eve' })).toMatchObject({
          created: true,
          customer: { userName: 'Eve' },
        }),
    ],
    [
      'is renamed to it',
      async (prepared) => expect(await rename(prepared)).toMatchObject({ customer: { userName: 'Other' } }),
    ],
  ])('leaves its reference to whoever %s before it is booked', async (_what, act) => {
    const prepared = await prepare();
    await act(prepared);
    expect(await bookInCalendar(prepared)).toBe(false);
    expect(await rowOf(prepared)).toBeUndefined();
    expect(await eventsOf(prepared)).toEqual([]);
    expect((await get(prepared)).customer!.id).not.toBe(prepared.id);
  });

  it('does not prevent that somebody is renamed to its reference, whenever it is prepared', async () => {
    for (let round = 0; round < 20; round += 1) {
      const contested = { ...owned, customerReference: `contested-${randomUUID()}` };
      const preparing = Array.from({ length: 4 }, (_, index) =>
        service.customers.createCustomer({ ...contested, userName: `Ada ${index}`, forBooking: true }),
      );
      const renaming = rename({ ...contested, userName: 'Ada', id: '' });
      await Promise.allSettled(preparing);
      expect(await renaming).toMatchObject({
        customer: { userName: 'Other', customerReference: contested.customerReference },
      });
    }
  });

  it('is decided about after a minute, if nobody has done so', async () => {
    const [booked, rejected] = [await prepare(), await prepare()];
    await bookInCalendar(booked);
    const remaining = sql<number>`extract(epoch FROM provisional_until - now())::float8`;
    const { seconds } = await service.database.kysely
      .selectFrom('customer')
      .select(remaining.as('seconds'))
      .where('id', '=', rejected.id)
      .executeTakeFirstOrThrow();
    expect(seconds).toBeGreaterThan(50);
    expect(seconds).toBeLessThanOrEqual(60);
    await service.database.kysely
      .updateTable('customer')
      .set({ provisionalUntil: sql<Date>`now()` })
      .where('id', '=', rejected.id)
      .execute();
    await service.database.kysely
      .updateTable('customer')
      .set({ provisionalUntil: sql<Date>`now()` })
      .where('id', '=', booked.id)
      .where('provisionalUntil', 'is not', null)
      .execute();
    await eventually(async () => expect(await rowOf(rejected)).toBeUndefined());
    await eventually(async () => expect(await rowOf(booked)).toMatchObject({ version: 1, provisionalUntil: null }));
    expect(await bookInCalendar(rejected)).toBe(false);
    expect(await eventsOf(rejected)).toEqual([]);
  });

  it('is erased with its address, whether or not it is booked', async () => {
    const email = `${randomUUID()}@example.com`;
    const [booked, rejected] = [await prepare({ email }), await prepare({ email })];
    await bookInCalendar(booked);
    await service.customers.eraseAddress({ crmId: 'one', email: email.toUpperCase() });
    await eventually(async () => expect([await rowOf(booked), await rowOf(rejected)]).toEqual([undefined, undefined]));
    expect((await eventsOf(booked)).map(({ change }) => change)).toEqual([
      CustomerChange.CREATED,
      CustomerChange.DELETED,
    ]);
    expect(await eventsOf(rejected)).toEqual([]);
    expect(await bookInCalendar(rejected)).toBe(false);
    const { rows } = await sql<{
      copies: number;
    }>`SELECT count(*) AS copies FROM customer WHERE email = ${email}`.execute(calendar.kysely);
    expect(rows).toEqual([{ copies: 0 }]);
  });
});

it('is unknown while calendar does not respond, and nobody else is', async () => {
  await using alone = await startCustomer();
  const { customer } = await alone.customers.createCustomer({
    ...owned,
    customerReference: 'prepared',
    userName: 'Ada',
    forBooking: true,
  });
  await alone.customers.createCustomer({ ...owned, customerReference: 'created', userName: 'Eve' });
  await expect(
    alone.customers.getCustomer({ crmId: 'one', key: { $case: 'id', value: customer!.id } }),
  ).rejects.toMatchObject({ category: 'unavailable' });
  await expect(
    alone.customers.createCustomer({ ...owned, customerReference: 'prepared', userName: 'Eve' }),
  ).rejects.toMatchObject({ category: 'unavailable' });
  expect(
    await alone.customers.createCustomer({ ...owned, customerReference: 'created', userName: 'Eve' }),
  ).toMatchObject({ created: false });
  const [part] = await Array.fromAsync(alone.customers.listCustomers(owned));
  expect(part!.customers.map(({ customerReference }) => customerReference)).toEqual(['created']);
});

describe('the deletion of a provider', () => {
  async function prepareAndClose(isBooked: boolean): Promise<unknown> {
    const providerReference = `provider-${randomUUID()}`;
    const { provider } = await service.identity.getProvider({ crmId: 'one', key: { $case: 'reference', value: 'p1' } });
    const { ownerReference, accountReference } = provider!;
    const created = await service.identity.createProvider({
      crmId: 'one',
      reference: providerReference,
      ownerReference,
      accountReference,
      name: 'Closing',
    });
    const prepared = await prepare({ providerReference });
    if (isBooked) await bookInCalendar(prepared);
    return service.customers.closeProvider({ crmId: 'one', providerId: created.provider!.id, version: 1 });
  }

  it('is refused for somebody who was booked, even if the booking has been deleted since', async () => {
    await expect(prepareAndClose(true)).rejects.toMatchObject({ code: 'provider.in_use' });
  });

  it('drops somebody who was not', async () => {
    expect(await prepareAndClose(false)).toEqual({});
  });
});
