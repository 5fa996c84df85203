import { ParticipationState, type UpdateAppointmentRequest } from '@scheduling/contracts/calendar/v1';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  newParticipation,
  owned,
  startCalendar,
} from './calendar-under-test.ts';

const { BOOKED, RESERVED } = ParticipationState;
let calendar: CalendarUnderTest;

beforeAll(async () => {
  calendar = await startCalendar();
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

const at = (hour: number) => ({ start: `2099-06-01T${hour}:00`, end: `2099-06-01T${hour + 1}:00` });

interface Booking {
  appointmentReference: string;
  customerReference: string;
  participationReference: string;
  participationId: string;
}

/** At 10:00 in room 1, which is its version 1. */
async function book(state: ParticipationState = BOOKED): Promise<Booking> {
  const customerReference = await createCustomer(calendar);
  const appointmentReference = await createAppointment(calendar, {
    ...at(10),
    description: 'Yoga',
    address: { kind: { $case: 'text', value: 'Room 1' } },
  });
  const request = newParticipation({ appointmentReference, customerReference }, { state });
  const { participation } = await calendar.participations.createParticipation(request);
  const { reference: participationReference } = participation;
  const { id: participationId } = await calendar.database.kysely
    .selectFrom('participation')
    .select('id')
    .where('reference', '=', participationReference)
    .executeTakeFirstOrThrow();
  return { appointmentReference, customerReference, participationReference, participationId };
}

function update({ appointmentReference }: Booking, changes: Partial<UpdateAppointmentRequest>) {
  return calendar.appointments.updateAppointment({
    ...owned,
    appointmentReference,
    sendMails: true,
    noAddress: false,
    ...changes,
  });
}

async function move(booking: Booking, hour: number, sendMails = true): Promise<void> {
  const value = await createAppointment(calendar, { ...at(hour), acceptBookings: true });
  const place = { $case: 'appointmentReference' as const, value };
  const { participationReference } = booking;
  await calendar.bookings.changeBooking({ ...owned, participationReference, place, ignoreNotice: true, sendMails });
  booking.appointmentReference = value;
}

/** The hour in Berlin of what the person was told before the mail about a version. */
async function hourBefore(
  { participationId }: Booking,
  version: number,
  toldVersion?: number,
): Promise<number | undefined> {
  const { crmId } = owned;
  const { previous } = await calendar.participations.getParticipationMailData({
    crmId,
    participationId,
    version,
    toldVersion,
  });
  return previous && previous.start!.getUTCHours() + 2;
}

const countRows = async ({ participationId }: Booking): Promise<number> =>
  (
    await calendar.database.kysely
      .selectFrom('participationPrevious')
      .select('version')
      .where('participationId', '=', participationId)
      .execute()
  ).length;

describe('what the person was told before a change', () => {
  it('is what the appointment was before it was updated', async () => {
    const booking = await book();
    await update(booking, { ...at(14), description: 'Pilates', noAddress: true });
    const { participationId } = booking;
    const read = { crmId: owned.crmId, participationId, version: 2 };
    const { previous, start } = await calendar.participations.getParticipationMailData(read);
    expect(previous).toEqual({
      start: new Date('2099-06-01T08:00Z'),
      end: new Date('2099-06-01T09:00Z'),
      description: 'Yoga',
      address: { kind: { $case: 'text', value: 'Room 1' } },
    });
    expect(start).toEqual(new Date('2099-06-01T12:00Z'));
    expect(await hourBefore(booking, 1)).toBeUndefined();
  });

  it('is the place from which the booking was moved', async () => {
    const booking = await book();
    await move(booking, 12);
    expect(await hourBefore(booking, 2)).toBe(10);
    await move(booking, 14);
    expect(await hourBefore(booking, 3)).toBe(12);
  });

  it('is what was true before the first of several changes of which the person was not told', async () => {
    const booking = await book();
    await move(booking, 12);
    await update(booking, at(14));
    await update(booking, at(16));
    expect(await hourBefore(booking, 4, 1)).toBe(10);
    expect(await hourBefore(booking, 4, 2)).toBe(12);
    expect(await hourBefore(booking, 4, 3)).toBe(14);
    // The earlier mail was written after the later change.
    expect(await hourBefore(booking, 4, 4)).toBeUndefined();
    expect(await hourBefore(booking, 3, 1)).toBe(10);
  });

  it('does not count changes that nobody sees', async () => {
    const booking = await book();
    await update(booking, { capacity: 5 });
    await calendar.participations.updateParticipation({
      ...owned,
      participationReference: booking.participationReference,
      state: ParticipationState.CANCELED,
      ignoreCapacity: false,
      sendMails: true,
    });
    expect(await countRows(booking)).toBe(0);
  });

  it.each(['update', 'move'] as const)(
    'is not certain after an %s without a mail, until the next mail',
    async (how) => {
      const booking = await book();
      if (how === 'move') await move(booking, 12, false);
      else await update(booking, { ...at(12), sendMails: false });
      expect(await countRows(booking)).toBe(0);
      await update(booking, at(14));
      expect(await hourBefore(booking, 3)).toBeUndefined();
      expect(await hourBefore(booking, 3, 1)).toBeUndefined();
      await move(booking, 16);
      expect(await hourBefore(booking, 4, 3)).toBe(14);
      expect(await hourBefore(booking, 4)).toBe(14);
    },
  );

  it('is not kept for a reservation', async () => {
    const booking = await book(RESERVED);
    await update(booking, at(12));
    expect(await countRows(booking)).toBe(0);
  });

  it('is erased with the customer: with a future booking, and from one that stays', async () => {
    const [coming, cancelled] = [await book(), await book()];
    for (const booking of [coming, cancelled]) {
      await update(booking, at(14));
      expect(await countRows(booking)).toBe(1);
    }
    await calendar.appointments.cancelAppointment({ ...owned, appointmentReference: cancelled.appointmentReference });
    for (const booking of [coming, cancelled]) {
      const { customer } = await calendar.customers.getCustomer({
        crmId: owned.crmId,
        key: {
          $case: 'reference',
          value: { providerReference: owned.providerReference, customerReference: booking.customerReference },
        },
      });
      await calendar.removals.removeCustomer({
        crmId: owned.crmId,
        customerId: customer!.id,
        ignoreFutureAppointments: true,
      });
      expect(await countRows(booking)).toBe(0);
    }
  });
});
