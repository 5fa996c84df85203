import {
  CalendarDetails,
  type EraseProviderResponse,
  ParticipationState,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  freshReference,
  newAppointment,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';
import { newHours, newWindow, putHours } from './hours-under-test.ts';

const crmId = 'one';
let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar();
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

async function createProvider(
  reference = freshReference('erased'),
): Promise<{ id: string; reference: string; version: number }> {
  const { provider } = await calendar.identity.createProvider({
    crmId,
    reference,
    ownerReference: 'owner@crm',
    accountReference: 'account@crm',
    name: reference,
  });
  return provider!;
}

const participationOf = (name: string) => ({
  reference: freshReference('participation'),
  name,
  email: `${name}@customers.example`,
  state: ParticipationState.BOOKED,
});

/** Everything that a provider can have, with the text in whatever can hold it. */
async function fill(providerReference: string, text: string, appointments: number): Promise<void> {
  for (let index = 0; index < appointments; index += 1)
    await calendar.appointments.createAppointment(
      newAppointment({
        providerReference,
        start: '2020-06-01T10:00',
        end: '2020-06-01T11:00',
        description: text,
        resourceReference: text,
        participations: [participationOf(`${text}-${index}`)],
      }),
    );
  const timeslots = Array.from({ length: 3 }, (_, index) => ({
    reference: freshReference('timeslot'),
    resourceReference: text,
    start: `2099-06-0${index + 1}T08:00`,
    end: `2099-06-0${index + 1}T12:00`,
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    state: TimeslotState.BOOKABLE,
  }));
  await calendar.timeslots.createTimeslots({ crmId, providerReference, timeslots });
  const resource = { crmId, providerReference, resourceReference: text };
  // With more timeslots than a part erases.
  await putHours(
    calendar,
    resource,
    newHours({ weekly: [newWindow(), newWindow({ from: '13:00', to: '15:00' })], aheadDays: 300 }),
  );
  await calendar.blocks.createBlock({ ...resource, start: '2099-06-01T08:00', end: '2099-06-01T09:00', note: text });
  const reference = freshReference('calendar');
  await calendar.calendars.createCalendar({ ...resource, reference, details: CalendarDetails.NAMES });
  await calendar.bookings.updateBookingRules({ crmId, providerReference, minimumNotice: 7, noHorizon: false });
}

/** The tables of calendar in which a row has the text. */
async function tablesWith(text: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`.execute(
    calendar.database.kysely,
  );
  const found = await Promise.all(
    rows.map(async ({ name }) => {
      const { rows: some } = await sql`
        SELECT FROM ${sql.table(name)} AS it WHERE strpos(it::text, ${text}) > 0 LIMIT 1`.execute(
        calendar.database.kysely,
      );
      return some.length > 0 ? [name] : [];
    }),
  );
  return found.flat().sort();
}

/** Its parts, of which the last one deletes the provider. */
async function eraseAll(reference: string, id?: string): Promise<EraseProviderResponse[]> {
  const parts = [await erasePart(reference, id)];
  while (!parts.at(-1)!.deleted) parts.push(await erasePart(reference, id));
  return parts;
}

const erasePart = (reference: string, id?: string) => calendar.providerErasures.eraseProvider({ crmId, reference, id });

it('a provider is erased with its past in parts, each of which counts what it has erased', async () => {
  const { id, reference } = await createProvider();
  const { reference: other } = await createProvider();
  await fill(reference, 'erasedtext', 45);
  await fill(other, 'keptext', 1);
  const kept = await tablesWith('keptext');
  expect(await tablesWith('erasedtext')).toEqual(expect.arrayContaining(kept));
  // How many the hours of today have made depends on the time of day.
  const { timeslots } = await calendar.database.kysely
    .selectFrom('timeslot')
    .where('providerId', '=', id)
    .select(({ fn }) => fn.countAll<number>().as('timeslots'))
    .executeTakeFirstOrThrow();
  expect(timeslots).toBeGreaterThan(500);
  const total = { appointments: 0, timeslots: 0, others: 0 };
  const parts = await eraseAll(reference);
  for (const part of parts) {
    expect(part.appointments).toBeLessThanOrEqual(20);
    expect(part.timeslots).toBeLessThanOrEqual(500);
    for (const kind of ['appointments', 'timeslots', 'others'] as const) total[kind] += part[kind];
  }
  expect(parts.length).toBeGreaterThan(2);
  expect(total).toEqual({ appointments: 45, timeslots, others: 3 });
  expect(await tablesWith('erasedtext')).toEqual([]);
  expect(await tablesWith(reference)).toEqual([]);
  // Ids, in what says that it is gone.
  expect(await tablesWith(id)).toEqual(['audit_entry', 'closed_provider', 'outbox']);
  const { rows: recorded } = await sql`
    SELECT action FROM audit_entry WHERE target = ${`${crmId} ${id}`}`.execute(calendar.database.kysely);
  expect(recorded).toEqual([{ action: 'provider.erase' }]);
  expect(await tablesWith('keptext')).toEqual(kept);
  expect((await refusal(erasePart(reference))).code).toBe('provider.not_found');
});

it('a part erases fewer appointments if they have many participations', async () => {
  const { reference } = await createProvider();
  for (const count of [300, 600, 150, 150, 250])
    await calendar.appointments.createAppointment(
      newAppointment({
        providerReference: reference,
        start: '2020-06-01T10:00',
        end: '2020-06-01T11:00',
        participations: Array.from({ length: count }, () => participationOf('many')),
      }),
    );
  const parts = await eraseAll(reference);
  expect(parts.map(({ appointments }) => appointments)).toEqual([1, 1, 2, 1, 0]);
});

it('a provider with bookings in the future is not erased, and keeps everything', async () => {
  const { reference } = await createProvider();
  const { reference: other } = await createProvider();
  await fill(reference, 'future', 1);
  const future = { start: '2098-06-01T10:00', end: '2098-06-01T11:00', capacity: 9 };
  await calendar.appointments.createAppointment(
    newAppointment({ ...future, providerReference: reference, participations: ['a', 'b'].map(participationOf) }),
  );
  await calendar.appointments.createAppointment(
    newAppointment({ ...future, providerReference: other, participations: [participationOf('c')] }),
  );
  const before = await tablesWith('future');
  const refused = await refusal(erasePart(reference));
  expect(refused).toMatchObject({ category: 'conflict', code: 'provider.has_future_bookings' });
  expect(refused.message).toContain('bookings in the future (2)');
  expect(await tablesWith('future')).toEqual(before);
});

it('a provider with customers is not erased, and keeps everything', async () => {
  const { reference } = await createProvider();
  await fill(reference, 'withcustomer', 1);
  const customerReference = freshReference('customer');
  await calendar.customers.createCustomer({ crmId, providerReference: reference, customerReference, userName: 'Ada' });
  const before = await tablesWith('withcustomer');
  const refused = await refusal(erasePart(reference));
  expect(refused).toMatchObject({ code: 'provider.in_use' });
  expect(refused.message).toContain('customers (1)');
  expect(await tablesWith('withcustomer')).toEqual(before);
});

it('a provider of another CRM is not erased, neither by its reference nor by its id', async () => {
  const { id, reference } = await createProvider();
  await fill(reference, 'ofanother', 1);
  const before = await tablesWith('ofanother');
  for (const key of [{ reference }, { reference: '', id }])
    expect((await refusal(calendar.providerErasures.eraseProvider({ crmId: 'two', ...key }))).code).toBe(
      'provider.not_found',
    );
  expect(await tablesWith('ofanother')).toEqual(before);
  await eraseAll('', id);
  expect(await tablesWith('ofanother')).toEqual([]);
});

it('a provider that a restore of calendar has brought back is erased again, and another one with its reference stays', async () => {
  const { id, reference, version } = await createProvider();
  await fill(reference, 'broughtback', 2);
  // What calendar has is then that of a time before the deletion.
  await calendar.identity.deleteClosedProvider({ crmId, providerId: id, version });
  const { id: newId } = await createProvider(reference);
  expect(newId).not.toBe(id);
  expect((await refusal(erasePart(reference))).code).toBe('provider.ambiguous');
  expect(await tablesWith('broughtback')).not.toEqual([]);
  await eraseAll('', id);
  expect(await tablesWith('broughtback')).toEqual([]);
  expect(await tablesWith(id)).toEqual(['audit_entry', 'closed_provider', 'outbox']);
  expect((await refusal(erasePart('', id))).code).toBe('provider.not_found');
  const { provider } = await calendar.identity.getProvider({ crmId, key: { $case: 'reference', value: reference } });
  expect(provider!.id).toBe(newId);
  await fill(reference, 'ofthenewone', 1);
  expect(await tablesWith(newId)).toEqual(expect.arrayContaining(['appointment', 'provider', 'timeslot']));
});

it('a provider that only calendar has, and whose reference is free, is erased by either', async () => {
  for (const by of ['reference', 'id']) {
    const { id, reference, version } = await createProvider();
    await fill(reference, `onlyhere${by}`, 1);
    await calendar.identity.deleteClosedProvider({ crmId, providerId: id, version });
    await (by === 'id' ? eraseAll('', id) : eraseAll(reference));
    expect(await tablesWith(`onlyhere${by}`)).toEqual([]);
    expect((await refusal(erasePart(reference))).code).toBe('provider.not_found');
  }
  expect((await refusal(erasePart('', 'none'))).code).toBe('provider.not_found');
});
