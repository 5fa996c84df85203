import { type CreateParticipationRequest, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { eventually } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  countWaiting,
  createAppointment,
  createCustomer,
  freshReference,
  newParticipation,
  owned,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';
import { createTimeslot, newBooking, placeIn } from './slots-under-test.ts';

let calendar: CalendarUnderTest;
let appointmentReference: string;

beforeAll(async () => {
  calendar = await startCalendar();
  appointmentReference = await createAppointment(calendar, { capacity: 1_000 });
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

async function customerOf(customerReference: string) {
  const { customer } = await calendar.customers.getCustomer({
    crmId: owned.crmId,
    key: { $case: 'reference', value: { ...owned, customerReference } },
  });
  return customer!;
}

/** A customer whom calendar knows. */
async function knownCustomer() {
  const customerReference = await createCustomer(calendar);
  await book(customerReference);
  return customerOf(customerReference);
}

const book = (customerReference: string, overrides: Partial<CreateParticipationRequest> = {}) =>
  calendar.participations.createParticipation(newParticipation({ appointmentReference, customerReference }, overrides));

const forget = ({ id: customerId, version }: { id: string; version: number }) =>
  calendar.copies.forgetReference({ crmId: owned.crmId, customerId, version: version + 1 });

const copyOf = (id: string) =>
  calendar.database.kysely.selectFrom('customer').selectAll().where('id', '=', id).executeTakeFirstOrThrow();

const listOf = async (customerReference: string) => {
  const parts = await Array.fromAsync(calendar.participations.listParticipations({ ...owned, customerReference }));
  return parts
    .flatMap(({ json }) => JSON.parse(`[${json.toString()}]`) as { reference: string }[])
    .map(({ reference }) => reference);
};

describe('a reference that is about to change', () => {
  it('is asked of the customer service, and the change needs a later version then', async () => {
    const customer = await knownCustomer();
    expect(await forget(customer)).toEqual({ version: 2 });
    const { participation } = await book(customer.customerReference);
    expect(participation).toMatchObject({ customerReference: customer.customerReference, name: customer.userName });
    expect(await customerOf(customer.customerReference)).toMatchObject({ version: 2 });
    expect(await copyOf(customer.id)).toMatchObject({ version: 2, reference: customer.customerReference });
  });

  it('is not learned from an answer that calendar got before', async () => {
    const customer = await customerOf(await createCustomer(calendar));
    expect(await forget(customer)).toEqual({ version: 2 });
    expect(await copyOf(customer.id)).toMatchObject({ version: 0, referenceKnown: false });
    await book(customer.customerReference);
    expect(await copyOf(customer.id)).toMatchObject({ version: 2, reference: customer.customerReference });
  });

  it('waits for the bookings that have found it', async () => {
    const customer = await knownCustomer();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: locked, resolve: lock } = Promise.withResolvers<void>();
    const booking = calendar.database.transaction(async (tx) => {
      await sql`SELECT FROM customer WHERE id = ${customer.id} FOR KEY SHARE`.execute(tx);
      lock();
      await released;
    });
    await locked;
    const forgetting = forget(customer);
    await eventually(async () => expect(await countWaiting(calendar, '%from "customer"%')).toBe(1));
    expect(await copyOf(customer.id)).toMatchObject({ referenceKnown: true });
    release();
    await booking;
    await forgetting;
    expect(await copyOf(customer.id)).toMatchObject({ referenceKnown: false });
  });

  it('gets a version above every one that calendar has known', async () => {
    const customer = await knownCustomer();
    await calendar.database.kysely.updateTable('customer').set({ version: 7 }).where('id', '=', customer.id).execute();
    expect(await forget(customer)).toEqual({ version: 8 });
    expect(await forget({ ...customer, version: 4 })).toEqual({ version: 8 });
  });

  it('stays shown, and is known again within seconds, without an event, if nothing became of the change', async () => {
    const customer = await knownCustomer();
    const { participation } = await book(customer.customerReference);
    await forget(customer);
    const read = () =>
      calendar.participations.getParticipation({ ...owned, participationReference: participation.reference });
    expect((await read()).participation).toMatchObject({ customerReference: customer.customerReference });
    await eventually(async () => expect(await copyOf(customer.id)).toMatchObject({ referenceKnown: true, version: 2 }));
  });

  it('still finds the participations of the customer', async () => {
    const customer = await knownCustomer();
    const booked = await listOf(customer.customerReference);
    expect(booked).toHaveLength(1);
    await forget(customer);
    expect(await listOf(customer.customerReference)).toEqual(booked);
    expect(await listOf(freshReference('customer'))).toEqual([]);
  });
});

it('a customer whom calendar knows by a later version than the customer service, which was restored, can be booked', async () => {
  const customer = await knownCustomer();
  await calendar.database.kysely
    .updateTable('customer')
    .set({ version: 9, reference: freshReference('later') })
    .where('id', '=', customer.id)
    .execute();
  const { participation } = await book(customer.customerReference);
  expect(participation).toMatchObject({ customerReference: customer.customerReference });
  expect(await customerOf(customer.customerReference)).toMatchObject({ id: customer.id, version: 9 });
});

it('all references are asked for again after a restore, as operations.md says', async () => {
  const [first, second] = [await knownCustomer(), await knownCustomer()];
  const { kysely } = calendar.database;
  // They have changed places since the backup.
  await kysely
    .updateTable('customer')
    .set({ reference: second.customerReference })
    .where('id', '=', first.id)
    .execute();
  await kysely
    .updateTable('customer')
    .set({ reference: first.customerReference })
    .where('id', '=', second.id)
    .execute();
  await sql`UPDATE customer SET reference_known = false, refreshed_at = '-infinity' WHERE erased_at IS NULL`.execute(
    kysely,
  );
  expect((await book(first.customerReference)).participation).toMatchObject({ name: first.userName });
  await eventually(async () => expect(await copyOf(second.id)).toMatchObject({ reference: second.customerReference }));
});

describe('a repeated booking of a slot', () => {
  it('is compared with the customer, whom the customer service knows', async () => {
    const [customer, other] = [await knownCustomer(), await knownCustomer()];
    await forget(customer);
    const place = placeIn(await createTimeslot(calendar), '10:00');
    const booking = (reference: string, customerReference: string) =>
      newBooking(place, {
        reference,
        state: ParticipationState.BOOKED,
        customer: { $case: 'customerReference', value: customerReference },
      });
    const reference = freshReference('booking');
    expect(await calendar.bookings.bookSlot(booking(reference, customer.customerReference))).toMatchObject({
      created: true,
    });
    await forget(await customerOf(customer.customerReference));
    expect(await calendar.bookings.bookSlot(booking(reference, customer.customerReference))).toMatchObject({
      created: false,
    });
    expect((await refusal(calendar.bookings.bookSlot(booking(reference, other.customerReference)))).code).toBe(
      'participation.reference_taken',
    );
    const unknown = booking(reference, freshReference('customer'));
    expect((await refusal(calendar.bookings.bookSlot(unknown))).code).toBe('participation.reference_taken');
    const inline = { customerReference: freshReference('customer'), userName: 'Nobody' };
    expect(
      (
        await refusal(
          calendar.bookings.bookSlot({
            ...unknown,
            customer: { $case: 'newCustomer', value: { ...owned, ...inline } },
          }),
        )
      ).code,
    ).toBe('participation.reference_taken');
    expect((await refusal(customerOf(inline.customerReference))).code).toBe('customer.not_found');
    const nobody = newBooking(place, { reference, state: ParticipationState.RESERVED });
    expect((await refusal(calendar.bookings.bookSlot(nobody))).code).toBe('participation.reference_taken');
  });
});

describe('the hold of a customer', () => {
  const confirm = (participationReference: string, customerReference: string) =>
    calendar.bookings.changeBooking({
      ...owned,
      participationReference,
      ignoreNotice: false,
      sendMails: false,
      customer: { $case: 'customerReference', value: customerReference },
    });

  it('is confirmed for that customer alone, while the reference is forgotten, too', async () => {
    const [customer, other] = [await knownCustomer(), await knownCustomer()];
    await forget(customer);
    const hold = newBooking(placeIn(await createTimeslot(calendar), '10:00'), {
      customer: { $case: 'customerReference', value: customer.customerReference },
    });
    await calendar.bookings.bookSlot(hold);
    await forget(await customerOf(customer.customerReference));
    expect((await refusal(confirm(hold.reference, other.customerReference))).code).toBe(
      'participation.move_not_allowed',
    );
    expect((await refusal(confirm(hold.reference, freshReference('customer')))).code).toBe(
      'participation.move_not_allowed',
    );
    expect(await confirm(hold.reference, customer.customerReference)).toMatchObject({
      participation: { state: 'PARTICIPATION_STATE_BOOKED', name: customer.userName },
    });
    await forget(await customerOf(customer.customerReference));
    expect((await refusal(confirm(hold.reference, other.customerReference))).code).toBe(
      'participation.move_not_allowed',
    );
    expect(await confirm(hold.reference, customer.customerReference)).toMatchObject({
      participation: { customerReference: customer.customerReference },
    });
  });
});

it('an erased customer stays erased', async () => {
  const customer = await knownCustomer();
  await calendar.removals.removeCustomer({
    crmId: owned.crmId,
    customerId: customer.id,
    ignoreFutureAppointments: true,
  });
  await forget(customer);
  await calendar.copies.refreshCustomer({ crmId: owned.crmId, customerId: customer.id });
  expect(await copyOf(customer.id)).toMatchObject({ reference: null, userName: null });
  expect((await refusal(book(customer.customerReference))).code).toBe('customer.not_found');
});

it('nothing happens to a customer who does not exist', async () => {
  expect(await calendar.copies.refreshCustomer({ crmId: owned.crmId, customerId: randomUUID() })).toEqual({});
});
