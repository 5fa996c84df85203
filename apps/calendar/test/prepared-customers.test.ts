import type { Customer } from '@scheduling/contracts/customer/v1';
import { eventually } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  countWaiting,
  createAppointment,
  freshReference,
  owned,
  startCalendar,
} from './calendar-under-test.ts';
import { createTimeslot, newBooking, placeIn } from './slots-under-test.ts';

let calendar: CalendarUnderTest;

beforeAll(async () => void (calendar = await startCalendar()), 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

interface Prepared {
  id: string;
  reference: string;
}

const newPrepared = (): Prepared => ({ id: randomUUID(), reference: freshReference('customer') });

/** See add-prepared-customer.sql. Whether a booking could be made. */
async function add({ id, reference }: Prepared, db = calendar.database.kysely): Promise<boolean> {
  const prepared = JSON.stringify({ id, userName: 'Ada', email: 'ada@example.com' });
  const { rows } = await sql<{ id: string | null }>`
    SELECT (add_prepared_customer(${owned.crmId}, ${providerId}, ${reference}, ${prepared}::jsonb)).id AS id`.execute(
    db,
  );
  return rows[0]!.id !== null;
}

const providerId = randomUUID();
const keyOf = ({ id: customerId }: Prepared) => ({ crmId: owned.crmId, customerId });
const copyOf = ({ id }: Prepared) =>
  calendar.database.kysely.selectFrom('customer').selectAll().where('id', '=', id).executeTakeFirst();

describe('a prepared customer', () => {
  it('is booked while nobody has decided otherwise, and then exists', async () => {
    const prepared = newPrepared();
    expect(await calendar.copies.getBooked(keyOf(prepared))).toEqual({ booked: false });
    expect(await add(prepared)).toBe(true);
    expect(await calendar.copies.getBooked(keyOf(prepared))).toEqual({ booked: true });
    expect(await calendar.copies.excludeCustomer(keyOf(prepared))).toEqual({ booked: true });
    expect(await add(prepared)).toBe(true);
    expect(await copyOf(prepared)).toMatchObject({
      version: 0,
      reference: prepared.reference,
      referenceKnown: false,
      userName: 'Ada',
      erasedAt: null,
    });
  });

  it('is not booked any more once it is excluded, and leaves only its id', async () => {
    const prepared = newPrepared();
    expect(await calendar.copies.excludeCustomer(keyOf(prepared))).toEqual({ booked: false });
    expect(await add(prepared)).toBe(false);
    expect(await calendar.copies.excludeCustomer(keyOf(prepared))).toEqual({ booked: false });
    expect(await copyOf(prepared)).toMatchObject({
      reference: null,
      userName: null,
      email: null,
      erasedAt: expect.any(Date) as Date,
    });
  });

  it.each([
    ['made', true],
    ['rolled back', false],
  ])('is excluded after a booking in progress was %s', async (_end, commits) => {
    const prepared = newPrepared();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const { promise: added, resolve: add_ } = Promise.withResolvers<void>();
    const booking = calendar.database.transaction(async (tx) => {
      await add(prepared, tx);
      add_();
      await ended;
      if (!commits) throw new Error('rolled back');
    });
    await added;
    const excluding = calendar.copies.excludeCustomer(keyOf(prepared));
    await eventually(async () => expect(await countWaiting(calendar, '%"customer"%')).toBe(1));
    end();
    await Promise.allSettled([booking]);
    expect(await excluding).toEqual({ booked: commits });
    expect(await add(prepared)).toBe(commits);
  });

  it('is not booked by a reference that has changed since, or that the customer service has confirmed since', async () => {
    const [renamed, confirmed, other] = [newPrepared(), newPrepared(), newPrepared()];
    for (const prepared of [renamed, confirmed, other]) await add(prepared);
    await calendar.copies.forgetReference({ ...keyOf(renamed), version: 2 });
    await calendar.database.kysely
      .updateTable('customer')
      .set({ version: 1, referenceKnown: true })
      .where('id', '=', confirmed.id)
      .execute();
    expect([await add(renamed), await add(confirmed), await add({ ...other, reference: renamed.reference })]).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe('a booking that brings its customer', () => {
  const person = (customerReference = freshReference('customer')) => ({
    customerReference,
    userName: 'Ada',
    email: 'ada@example.com',
    note: 'VIP',
  });
  const book = (place: ReturnType<typeof placeIn>, value: ReturnType<typeof person>) =>
    calendar.bookings.bookSlot(
      newBooking(place, { state: 'PARTICIPATION_STATE_BOOKED', customer: { $case: 'newCustomer', value } }),
    );
  const getCustomer = async (customerReference: string): Promise<Customer> =>
    (
      await calendar.customers.getCustomer({
        crmId: owned.crmId,
        key: { $case: 'reference', value: { ...owned, customerReference } },
      })
    ).customer!;

  it('has it exist with all of its content, and knows it', async () => {
    const ada = person();
    await book(placeIn(await createTimeslot(calendar), '10:00'), ada);
    const customer = await getCustomer(ada.customerReference);
    expect(customer).toMatchObject({ ...ada, version: 1 });
    await eventually(async () =>
      expect(await copyOf({ id: customer.id, reference: '' })).toMatchObject({
        version: 1,
        referenceKnown: true,
        userName: 'Ada',
      }),
    );
  });

  it('is made for one of several who bring the same one, who exists then', async () => {
    for (let round = 0; round < 5; round += 1) {
      const ada = person();
      const place = {
        $case: 'appointmentReference' as const,
        value: await createAppointment(calendar, { acceptBookings: true }),
      };
      const answers = await Promise.allSettled(Array.from({ length: 6 }, () => book(place, ada)));
      expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect(await getCustomer(ada.customerReference)).toMatchObject({ ...ada, version: 1 });
      const copies = await calendar.database.kysely
        .selectFrom('customer')
        .select('id')
        .where('reference', '=', ada.customerReference)
        .execute();
      expect(copies).toHaveLength(1);
    }
  });

  it('is made although a process has ended between the exclusion of an equal one and the message to the customer service', async () => {
    const ada = person();
    const { customer: excluded } = await calendar.customers.createCustomer({ ...owned, ...ada, forBooking: true });
    await calendar.copies.excludeCustomer({ crmId: owned.crmId, customerId: excluded!.id });
    await book(placeIn(await createTimeslot(calendar), '10:00'), ada);
    const customer = await getCustomer(ada.customerReference);
    expect(customer).toMatchObject({ ...ada, version: 1 });
    expect(customer.id).not.toBe(excluded!.id);
  });
});
