import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { events } from '@scheduling/events';
import { patiently } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { AppointmentJson } from './parsed-answers.ts';
import {
  allEnded,
  type Calendar,
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  listAppointments,
  newParticipation,
  owned,
  refusal,
  seatsOf,
  startCalendar,
} from './calendar-under-test.ts';

let calendar: CalendarUnderTest;
let customerReference: string;

beforeAll(async () => {
  calendar = await startCalendar({ RESERVATION_SWEEPER: 'off' });
  customerReference = await createCustomer(calendar);
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

async function reserve(appointmentReference: string) {
  const request = newParticipation({ appointmentReference, customerReference }, { state: ParticipationState.RESERVED });
  const { participation } = await patiently(() => calendar.participations.createParticipation(request));
  return { request, participation: participation };
}

function update(replica: Calendar, participationReference: string, state: ParticipationState) {
  return replica.participations.updateParticipation({
    ...owned,
    participationReference,
    state,
    ignoreCapacity: false,
    sendMails: true,
  });
}

async function shown(replica: Calendar, appointmentReference: string): Promise<AppointmentJson> {
  const appointments = await listAppointments(replica, { ...owned, includeArchived: true });
  return appointments.find((appointment) => appointment.reference === appointmentReference)!;
}

/** A replica whose clock is `offset` ahead of the others. */
function replicaAt(offset: string, settings: Record<string, string> = {}): Promise<Calendar> {
  return calendar.startReplicaAt(offset, { RESERVATION_SWEEPER: 'off', ...settings });
}

describe('a reservation', () => {
  it('expires three minutes after it was created', async () => {
    // It is told in whole seconds.
    const before = Date.now() - 1_000;
    const { participation } = await reserve(await createAppointment(calendar));
    const after = Date.now();
    expect(participation.expiresAt!.getTime()).toBeGreaterThan(before + 180_000);
    expect(participation.expiresAt!.getTime()).toBeLessThanOrEqual(after + 180_000);
  });

  it('holds its seat at 165 s but not at 181 s, without a sweeper', async () => {
    await using early = await replicaAt('165 seconds');
    await using late = await replicaAt('181 seconds');
    const appointmentReference = await createAppointment(calendar, { capacity: 3 });
    const [first, second, third] = [
      await reserve(appointmentReference),
      await reserve(appointmentReference),
      await reserve(appointmentReference),
    ];
    const booking = newParticipation({ appointmentReference, customerReference });

    expect((await refusal(early.participations.createParticipation(booking))).code).toBe(
      'participation.capacity_exhausted',
    );
    expect((await shown(early, appointmentReference)).participations).toHaveLength(3);
    await update(early, first.request.reference, ParticipationState.BOOKED);

    expect((await shown(late, appointmentReference)).participations.map(({ reference }) => reference)).toEqual([
      first.request.reference,
    ]);
    expect((await refusal(update(late, second.request.reference, ParticipationState.BOOKED))).code).toBe(
      'participation.not_found',
    );
    expect(await late.participations.createParticipation(booking)).toMatchObject({ created: true });
    expect(await seatsOf(calendar, appointmentReference)).toBe(2);
    // Its reference is free again.
    expect(await late.participations.createParticipation(third.request)).toMatchObject({ created: true });
    expect(await seatsOf(calendar, appointmentReference)).toBe(3);
  });

  it('that has expired frees its reference for another appointment and for an embedded participation', async () => {
    const [first, second] = [
      await reserve(await createAppointment(calendar)),
      await reserve(await createAppointment(calendar)),
    ];
    await using late = await replicaAt('181 seconds');
    const elsewhere = await createAppointment(calendar);
    expect(
      await late.participations.createParticipation({ ...first.request, appointmentReference: elsewhere }),
    ).toMatchObject({ created: true });
    expect(await seatsOf(calendar, first.request.appointmentReference)).toBe(0);
    const embedded = {
      reference: second.request.reference,
      name: 'Name',
      email: 'a@example.com',
      state: ParticipationState.BOOKED,
    };
    const third = await createAppointment(late, { participations: [embedded] });
    expect((await shown(late, third)).participations).toMatchObject([
      { reference: second.request.reference, state: 'BOOKED' },
    ]);
  });

  it('frees its seat for a waiting request when it expires', async () => {
    const appointmentReference = await createAppointment(calendar);
    const waiting = newParticipation(
      { appointmentReference, customerReference },
      { state: ParticipationState.REQUESTED },
    );
    await calendar.participations.createParticipation(waiting);
    await reserve(appointmentReference);
    expect((await refusal(update(calendar, waiting.reference, ParticipationState.BOOKED))).code).toBe(
      'participation.capacity_exhausted',
    );
    await using late = await replicaAt('181 seconds');
    await update(late, waiting.reference, ParticipationState.BOOKED);
    expect(await seatsOf(calendar, appointmentReference)).toBe(1);
  });

  it('that has expired is not cancelled with its appointment: no mail is sent', async () => {
    const appointmentReference = await createAppointment(calendar);
    await reserve(appointmentReference);
    await using late = await replicaAt('181 seconds');
    const changes = calendar.database.kysely
      .selectFrom('outbox')
      .select('id')
      .where('subject', '=', events.participationChanged.subject);
    const before = (await changes.execute()).length;
    await late.appointments.cancelAppointment({ ...owned, appointmentReference });
    expect(await changes.execute()).toHaveLength(before);
  });

  it('is removed from the table within 5 s of expiry, with several replicas', async () => {
    const appointments = await Promise.all(
      Array.from({ length: 20 }, () => createAppointment(calendar, { capacity: 5 })),
    );
    await allEnded(appointments.flatMap((reference) => [reserve(reference), reserve(reference)]));
    await using _first = await replicaAt('180 seconds', { RESERVATION_SWEEPER: 'on' });
    await using _second = await replicaAt('180 seconds', { RESERVATION_SWEEPER: 'on' });
    const reserved = calendar.database.kysely
      .selectFrom('participation')
      .innerJoin('appointment', 'appointment.id', 'participation.appointmentId')
      .select('participation.id')
      .where('appointment.reference', 'in', appointments);
    await vi.waitFor(async () => expect(await reserved.execute()).toHaveLength(0), { timeout: 5_000, interval: 100 });
    for (const appointment of appointments) expect(await seatsOf(calendar, appointment)).toBe(0);
  });

  it('is also removed in time when it expires while the sweeper is idle', async () => {
    const appointmentReference = await createAppointment(calendar);
    const { participation } = await reserve(appointmentReference);
    await using _replica = await replicaAt('172 seconds', { RESERVATION_SWEEPER: 'on' });
    const endsInMs = Math.max(0, participation.expiresAt!.getTime() - 172_000 - Date.now());
    await vi.waitFor(async () => expect(await seatsOf(calendar, appointmentReference)).toBe(0), {
      timeout: endsInMs + 5_000,
      interval: 100,
    });
  });
});
