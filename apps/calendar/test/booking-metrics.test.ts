import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { eventually, sumSamples } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Calendar,
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  freshReference,
  newAppointment,
  newParticipation,
  owned,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';

const { BOOKED, CANCELED, REQUESTED, RESERVED } = ParticipationState;

let calendar: CalendarUnderTest;
let customerReference: string;

beforeAll(async () => {
  calendar = await startCalendar({ RESERVATION_SWEEPER: 'off' });
  customerReference = await createCustomer(calendar);
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

async function read(replica: Calendar) {
  const text = await replica.scrape();
  const of = (name: string): number => sumSamples(text, `scheduling_${name}_total`) ?? 0;
  const outcome = (name: string): number =>
    sumSamples(text, 'scheduling_bookings_total', { crm: 'one', outcome: name }) ?? 0;
  return { taken: of('seats_taken'), freed: of('seats_freed'), expired: of('reservations_expired'), outcome };
}

/** How much the work adds to the counters. */
async function added(work: () => Promise<unknown>, outcomes: string[] = [], replica: Calendar = calendar) {
  const before = await read(replica);
  await work();
  const after = await read(replica);
  const bookings = Object.fromEntries(outcomes.map((name) => [name, after.outcome(name) - before.outcome(name)]));
  return {
    taken: after.taken - before.taken,
    freed: after.freed - before.freed,
    expired: after.expired - before.expired,
    ...bookings,
  };
}

function create(appointmentReference: string, state: ParticipationState, overrides = {}) {
  return calendar.participations.createParticipation(
    newParticipation({ appointmentReference, customerReference }, { state, ...overrides }),
  );
}

async function move(reference: string, state: ParticipationState): Promise<void> {
  await calendar.participations.updateParticipation({
    ...owned,
    participationReference: reference,
    state,
    ignoreCapacity: false,
    sendMails: false,
  });
}

describe('bookings', () => {
  it('are counted by the state they enter, with the seats', async () => {
    const appointment = await createAppointment(calendar, { capacity: 5 });
    const count = await added(async () => {
      await create(appointment, BOOKED);
      await create(appointment, RESERVED);
      await create(appointment, REQUESTED);
    }, ['booked', 'reserved', 'requested']);
    expect(count).toEqual({ taken: 2, freed: 0, expired: 0, booked: 1, reserved: 1, requested: 1 });
  });

  it('are counted once, and moves with the seats they take or free', async () => {
    const appointment = await createAppointment(calendar, { capacity: 5 });
    const reference = freshReference('participation');
    const count = await added(async () => {
      await create(appointment, REQUESTED, { reference });
      for (let time = 0; time < 2; time += 1) await move(reference, BOOKED);
      for (let time = 0; time < 2; time += 1) await create(appointment, BOOKED, { reference });
      await move(reference, CANCELED);
    }, ['requested', 'booked', 'canceled']);
    expect(count).toEqual({ taken: 1, freed: 1, expired: 0, requested: 1, booked: 1, canceled: 1 });
  });

  it('are not counted when their transaction fails to commit', async () => {
    const productReference = freshReference('doomed');
    await sql`
      CREATE FUNCTION fail_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$`.execute(
      calendar.database.kysely,
    );
    const appointment = await createAppointment(calendar, { productReference, capacity: 5 });
    await create(appointment, BOOKED);
    await sql`
      CREATE CONSTRAINT TRIGGER doomed AFTER INSERT OR UPDATE ON appointment DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW WHEN (NEW.product_reference = ${sql.lit(productReference)}) EXECUTE FUNCTION fail_at_commit()`.execute(
      calendar.database.kysely,
    );
    const participations = [
      { reference: freshReference('participation'), name: 'Name', email: 'a@example.com', state: BOOKED },
    ];
    const count = await added(async () => {
      await expect(
        calendar.appointments.createAppointment(newAppointment({ productReference, participations })),
      ).rejects.toThrow('internal error');
      await expect(
        calendar.appointments.cancelAppointment({ ...owned, appointmentReference: appointment }),
      ).rejects.toThrow('internal error');
    }, ['booked', 'canceled']);
    expect(count).toEqual({ taken: 0, freed: 0, expired: 0, booked: 0, canceled: 0 });
  });

  it('that are rejected are counted by reason', async () => {
    const appointment = await createAppointment(calendar, { capacity: 1 });
    const outcomes = ['capacity_exhausted', 'customer_not_found', 'appointment_not_found', 'not_found'];
    const count = await added(async () => {
      await create(appointment, BOOKED);
      await refusal(create(appointment, BOOKED));
      await refusal(create(appointment, BOOKED, { customerReference: 'nobody@test' }));
      await refusal(create('nowhere@test', BOOKED));
      await refusal(move('nothing@test', BOOKED));
    }, outcomes);
    expect(count).toEqual({
      taken: 1,
      freed: 0,
      expired: 0,
      capacity_exhausted: 1,
      customer_not_found: 1,
      appointment_not_found: 1,
      not_found: 1,
    });
  });
});

describe('seats', () => {
  it('are counted for participations embedded in an appointment', async () => {
    const embedded = (state: ParticipationState) => ({
      reference: freshReference('participation'),
      name: 'Name',
      email: 'a@example.com',
      state,
    });
    const count = await added(
      () => createAppointment(calendar, { participations: [embedded(BOOKED), embedded(BOOKED), embedded(REQUESTED)] }),
      ['booked'],
    );
    expect(count).toEqual({ taken: 2, freed: 0, expired: 0, booked: 2 });
  });

  it('are free again when the appointment is cancelled, when it is deleted, and when the person is removed', async () => {
    const [cancelled, deleted, left] = await Promise.all(
      [0, 1, 2].map(() => createAppointment(calendar, { capacity: 5 })),
    );
    const leaving = await createCustomer(calendar);
    for (const appointment of [cancelled, deleted])
      for (let seat = 0; seat < 2; seat += 1) await create(appointment!, BOOKED);
    await create(left!, BOOKED, { customerReference: leaving });
    const cancelling = () => calendar.appointments.cancelAppointment({ ...owned, appointmentReference: cancelled! });
    expect(await added(cancelling, ['canceled'])).toEqual({ taken: 0, freed: 2, expired: 0, canceled: 2 });
    const deleting = () =>
      calendar.appointments.deleteAppointments({
        ...owned,
        target: { $case: 'appointmentReference', value: deleted! },
      });
    expect(await added(deleting)).toEqual({ taken: 0, freed: 2, expired: 0 });
    const row = await calendar.database.kysely
      .selectFrom('customer')
      .select('id')
      .where('reference', '=', leaving)
      .executeTakeFirstOrThrow();
    const removing = () =>
      calendar.removals.removeCustomer({ crmId: 'one', customerId: row.id, ignoreFutureAppointments: true });
    expect(await added(removing)).toEqual({ taken: 0, freed: 1, expired: 0 });
  });

  it('of expired reservations are counted as such, whatever removes them', async () => {
    const [swept, cancelled, booked] = await Promise.all(
      [0, 1, 2].map(() => createAppointment(calendar, { capacity: 5 })),
    );
    await create(cancelled!, RESERVED);
    await using late = await calendar.startReplicaAt('181 seconds', { RESERVATION_SWEEPER: 'off' });
    const cancelling = () => late.appointments.cancelAppointment({ ...owned, appointmentReference: cancelled! });
    expect(await added(cancelling, ['canceled'], late)).toEqual({ taken: 0, freed: 1, expired: 1, canceled: 0 });
    await create(booked!, RESERVED);
    const booking = () =>
      late.participations.createParticipation(
        newParticipation({ appointmentReference: booked!, customerReference }, { state: BOOKED }),
      );
    expect(await added(booking, ['booked'], late)).toEqual({ taken: 1, freed: 1, expired: 1, booked: 1 });
    await create(swept!, RESERVED);
    await create(swept!, RESERVED);
    await using sweeping = await calendar.startReplicaAt('181 seconds', { RESERVATION_SWEEPER: 'on' });
    await eventually(async () => expect((await read(sweeping)).expired).toBeGreaterThanOrEqual(2));
  });
});
