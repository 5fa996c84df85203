import { ParticipationState, type UpdateAppointmentRequest } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause } from '@scheduling/contracts/events/v1';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  eventsOf,
  newParticipation,
  owned,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';

let calendar: CalendarUnderTest;
let customerReference: string;

beforeAll(async () => {
  calendar = await startCalendar();
  customerReference = await createCustomer(calendar);
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

async function update(
  appointmentReference: string,
  changes: Partial<UpdateAppointmentRequest>,
): Promise<Record<string, unknown>> {
  const { json } = await calendar.appointments.updateAppointment({
    ...owned,
    appointmentReference,
    sendMails: true,
    noAddress: false,
    ...changes,
  });
  return JSON.parse(json.toString()) as Record<string, unknown>;
}

async function participate(appointmentReference: string, state: keyof typeof ParticipationState): Promise<string> {
  const request = newParticipation({ appointmentReference, customerReference }, { state: ParticipationState[state] });
  await calendar.participations.createParticipation(request);
  return request.reference;
}

describe('updating an appointment', () => {
  it('changes what is given, and clears texts and the address', async () => {
    const reference = await createAppointment(calendar, {
      description: 'Yoga',
      notes: 'mats',
      contactReference: 'staff@test',
      address: { kind: { $case: 'text', value: 'Room 1' } },
    });
    const before = await update(reference, {});
    expect(before).toMatchObject({
      description: 'Yoga',
      notes: 'mats',
      contactReference: 'staff@test',
      address: 'Room 1',
      capacity: 1,
      start: '2099-06-01T08:00:00Z',
    });
    const changed = await update(reference, {
      start: '2099-06-01T10:30',
      capacity: 5,
      acceptBookings: true,
      notes: '',
      contactReference: '',
      noAddress: true,
    });
    expect(changed).toEqual({
      ...before,
      start: '2099-06-01T08:30:00Z',
      capacity: 5,
      acceptBookings: true,
      notes: null,
      contactReference: null,
      address: null,
    });
    const { json } = await calendar.appointments.getAppointment({ ...owned, appointmentReference: reference });
    expect(JSON.parse(json.toString())).toEqual(changed);
  });

  it('publishes a new version of those who are booked or requested, if they see a difference', async () => {
    const reference = await createAppointment(calendar, { capacity: 5 });
    const [booked, requested, reserved, canceled] = [
      await participate(reference, 'BOOKED'),
      await participate(reference, 'REQUESTED'),
      await participate(reference, 'RESERVED'),
      await participate(reference, 'CANCELED'),
    ];
    await update(reference, {
      capacity: 4,
      notes: 'internal',
      contactReference: 'staff@test',
      start: '2099-06-01T10:00',
    });
    await update(reference, { description: 'Yoga' });
    await update(reference, { end: '2099-06-01T12:00', sendMails: false });
    const changes = [
      { cause: ParticipationChangeCause.CREATED, version: 1 },
      { cause: ParticipationChangeCause.APPOINTMENT_CHANGED, version: 2, notify: true, silent: false },
      { cause: ParticipationChangeCause.APPOINTMENT_CHANGED, version: 3, notify: false, silent: true },
    ];
    expect(await eventsOf(calendar, booked)).toMatchObject(
      changes.map((change) => ({ ...change, toState: ParticipationState.BOOKED })),
    );
    expect(await eventsOf(calendar, requested)).toMatchObject(
      changes.map((change) => ({ ...change, toState: ParticipationState.REQUESTED })),
    );
    expect([await eventsOf(calendar, reserved), await eventsOf(calendar, canceled)]).toMatchObject([
      [{ version: 1 }],
      [{ version: 1 }],
    ]);
  });

  it('is rejected for times that are not valid, and for an appointment that is cancelled or of another provider', async () => {
    const reference = await createAppointment(calendar);
    expect(await refusal(update(reference, { end: '2099-06-01T10:00' }))).toMatchObject({
      code: 'appointment.invalid',
      errors: [{ pointer: '/end' }],
    });
    expect(await refusal(update(reference, { providerReference: 'p2', capacity: 3 }))).toMatchObject({
      code: 'appointment.not_found',
    });
    expect(await refusal(update(reference, { crmId: 'two', capacity: 3 }))).toMatchObject({
      code: 'appointment.not_found',
    });
    await calendar.appointments.cancelAppointment({ ...owned, appointmentReference: reference });
    expect(await refusal(update(reference, { capacity: 3 }))).toMatchObject({ code: 'appointment.cancelled' });
  });
});
