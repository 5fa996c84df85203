import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  freshReference,
  listAppointments,
  newParticipation,
  owned,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';
import { listSlots, newBooking, newTimeslot } from './slots-under-test.ts';

const { BOOKED, RESERVED } = ParticipationState;
const minute = 60_000;
const day = 24 * 60 * minute;

const sandbox = { crmId: 'sandbox', providerReference: 'p1' };
const otherSandbox = { ...sandbox, crmId: 'other-sandbox' };

let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar();
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await setAhead(0);
});

const setClock = async (now: Date | undefined, { crmId } = sandbox) =>
  (await calendar.clocks.setSandboxClock({ crmId, now })).clock!;
const setAhead = (ms: number, owner = sandbox) => setClock(new Date(Date.now() + ms), owner);

/** On a full minute, this long after the real present. */
const inFuture = (ms: number): Date => new Date(Math.ceil((Date.now() + ms) / minute) * minute);

async function reserve(owner: typeof sandbox) {
  const appointmentReference = await createAppointment(calendar, owner);
  const customerReference = await createCustomer(calendar, owner);
  const request = newParticipation({ appointmentReference, customerReference }, { ...owner, state: RESERVED });
  const { participation } = await calendar.participations.createParticipation(request);
  return {
    ...owner,
    appointmentReference,
    customerReference,
    participationReference: request.reference,
    expiresAt: participation.expiresAt!,
  };
}

type Reservation = Awaited<ReturnType<typeof reserve>>;

const confirm = (reservation: Reservation) =>
  calendar.participations.updateParticipation({
    ...reservation,
    state: BOOKED,
    ignoreCapacity: false,
    sendMails: false,
  });

const isStored = async ({ crmId, participationReference }: Reservation): Promise<boolean> => {
  const row = await calendar.database.kysely
    .selectFrom('participation')
    .select('id')
    .where('crmId', '=', crmId)
    .where('reference', '=', participationReference)
    .executeTakeFirst();
  return row !== undefined;
};

describe('the clock of a sandbox', () => {
  it('shows the real time until it is set, goes on from there, and can be set back to the real time', async () => {
    const untouched = (await calendar.clocks.getSandboxClock({ crmId: 'other-sandbox' })).clock!;
    expect(untouched.aheadMs).toBe(0);
    expect(Math.abs(untouched.now!.getTime() - Date.now())).toBeLessThan(10_000);

    const christmas = new Date('2027-12-24T18:00:00Z');
    const set = await setClock(christmas);
    expect(set.now!.getTime()).toBeGreaterThanOrEqual(christmas.getTime());
    expect(set.aheadMs).toBeGreaterThan(30 * day);
    const later = (await calendar.clocks.getSandboxClock({ crmId: 'sandbox' })).clock!;
    expect(later.aheadMs).toBe(set.aheadMs);
    expect(later.now!.getTime()).toBeGreaterThan(set.now!.getTime());

    expect((await setClock(undefined)).aheadMs).toBe(0);
    expect((await calendar.clocks.getSandboxClock({ crmId: 'sandbox' })).clock!.aheadMs).toBe(0);
  });

  it('is at most 10 years from the real time', async () => {
    for (const year of [2000, 2099]) {
      const refused = await refusal(setClock(new Date(Date.UTC(year, 0, 1))));
      expect(refused).toMatchObject({
        code: 'sandbox.invalid',
        errors: [{ pointer: '/now', detail: 'must be at most 10 years from the real time' }],
      });
    }
  });

  it('is none of another CRM', async () => {
    expect((await refusal(setClock(new Date(), owned))).code).toBe('sandbox.not_found');
    expect((await refusal(calendar.clocks.getSandboxClock({ crmId: 'one' }))).code).toBe('sandbox.not_found');
    expect((await refusal(calendar.clocks.getSandboxClock({ crmId: 'unknown' }))).code).toBe('crm.not_found');
    expect(
      await calendar.database.kysely.selectFrom('sandboxClock').select('crmId').where('crmId', '=', 'one').execute(),
    ).toEqual([]);
  });
});

describe('a reservation of a sandbox', () => {
  it('expires when its clock is set forward, is removed with its event, and no other CRM loses one', async () => {
    const [reservation, other, real] = [await reserve(sandbox), await reserve(otherSandbox), await reserve(owned)];
    const removed = calendar.database.kysely
      .selectFrom('participation')
      .select('id')
      .where('reference', '=', reservation.participationReference);
    const { id } = await removed.executeTakeFirstOrThrow();
    await setAhead(4 * minute);
    expect((await refusal(confirm(reservation))).code).toBe('participation.not_found');
    await vi.waitFor(async () => expect(await isStored(reservation)).toBe(false), { timeout: 5_000, interval: 50 });
    const recorded = await calendar.database.kysely
      .selectFrom('outbox')
      .select('data')
      .where('subject', '=', events.participationChangedSilently.subject)
      .execute();
    const changes = recorded
      .map(({ data }) => events.participationChangedSilently.fromJson(data!))
      .filter(({ participationId }) => participationId === id);
    expect(changes.map(({ cause }) => cause)).toContain(ParticipationChangeCause.REMOVED);
    await confirm(other);
    await confirm(real);
  });

  it('expires three minutes later by the clock, also if that is far from the real time', async () => {
    for (const ahead of [30 * day, -30 * day]) {
      await setAhead(ahead);
      const { now } = (await calendar.clocks.getSandboxClock(sandbox)).clock!;
      const reservation = await reserve(sandbox);
      const lastsMs = reservation.expiresAt.getTime() - now!.getTime();
      // It is told in whole seconds.
      expect(lastsMs).toBeGreaterThan(3 * minute - 1_000);
      expect(lastsMs).toBeLessThan(4 * minute);
      await confirm(reservation);
    }
  });

  it('that is over by the real time only is kept, although the removal of others goes on', async () => {
    await setAhead(-day);
    const kept = await reserve(sandbox);
    const gone = await reserve(otherSandbox);
    await setAhead(4 * minute, otherSandbox);
    await vi.waitFor(async () => expect(await isStored(gone)).toBe(false), { timeout: 5_000, interval: 50 });
    expect(await isStored(kept)).toBe(true);
    await confirm(kept);
  });
});

describe('by the clock of a sandbox', () => {
  it('slots are listed and booked, and a timeslot begins that names no start', async () => {
    const start = inFuture(2 * day);
    const timeslot = newTimeslot({
      start: start.toISOString(),
      end: new Date(start.getTime() + 60 * minute).toISOString(),
    });
    await calendar.timeslots.createTimeslots({ ...sandbox, timeslots: [timeslot] });
    const own = { ...sandbox, resourceReference: timeslot.resourceReference, from: undefined, to: undefined };
    const book = () => {
      const place = {
        $case: 'timeslot' as const,
        value: { timeslotReference: timeslot.reference, start: start.toISOString(), productReference: 'product@test' },
      };
      return calendar.bookings.bookSlot(newBooking(place, sandbox));
    };
    expect(await listSlots(calendar, own)).toHaveLength(2);
    await setClock(new Date(start.getTime() + minute));
    expect(await listSlots(calendar, own)).toHaveLength(1);
    expect((await refusal(book())).reason).toBe('too_soon');

    const { timeslots } = await calendar.timeslots.createTimeslots({
      ...sandbox,
      timeslots: [newTimeslot({ start: undefined, end: new Date(start.getTime() + 31 * minute).toISOString() })],
    });
    expect(timeslots[0]!.start.getTime()).toBe(start.getTime() + minute);

    await setAhead(0);
    expect((await book()).created).toBe(true);
  });

  it('an appointment is archived', async () => {
    const appointmentReference = await createAppointment(calendar, {
      ...sandbox,
      start: '2027-06-01T10:00',
      end: '2027-06-01T11:00',
    });
    const isArchived = async () =>
      JSON.parse((await calendar.appointments.getAppointment({ ...sandbox, appointmentReference })).json.toString())
        .archived;
    await setClock(new Date('2028-05-30T12:00:00Z'));
    expect(await isArchived()).toBe(false);
    await setClock(new Date('2028-06-01T12:00:00Z'));
    expect(await isArchived()).toBe(true);
    const listed = await listAppointments(calendar, { ...sandbox, includeArchived: false });
    expect(listed.map(({ reference }) => reference)).not.toContain(appointmentReference);
  });

  it('an appointment of a person who is deleted is in the future', async () => {
    const start = inFuture(2 * day);
    const period = { start: start.toISOString(), end: new Date(start.getTime() + 60 * minute).toISOString() };
    const appointmentReference = await createAppointment(calendar, { ...sandbox, ...period });
    const customerReference = await createCustomer(calendar, sandbox);
    await calendar.participations.createParticipation(
      newParticipation({ appointmentReference, customerReference }, sandbox),
    );
    const { id: customerId } = await calendar.database.kysely
      .selectFrom('customer')
      .select('id')
      .where('reference', '=', customerReference)
      .executeTakeFirstOrThrow();
    const remove = () =>
      calendar.removals.removeCustomer({ crmId: 'sandbox', customerId, ignoreFutureAppointments: false });
    expect((await refusal(remove())).code).toBe('customer.has_future_appointments');
    await setClock(new Date(start.getTime() + 2 * day));
    expect((await remove()).removed).toEqual([]);
  });

  it('participations are anonymised', async () => {
    const [reference, canary] = [
      freshReference('embedded'),
      { name: 'Canary', email: 'canary@example.com', state: BOOKED },
    ];
    const participations = [{ ...canary, reference }];
    const appointmentReference = await createAppointment(calendar, {
      ...sandbox,
      start: '2027-06-01T10:00',
      end: '2027-06-01T11:00',
      participations,
    });
    const isKept = async () =>
      (await calendar.appointments.getAppointment({ ...sandbox, appointmentReference })).json.includes('Canary');
    await setClock(new Date('2027-06-12T00:00:00Z'));
    await using _early = await calendar.startReplica({ ANONYMISE_AFTER_DAYS: '11' });
    await using _late = await calendar.startReplica({ ANONYMISE_AFTER_DAYS: '10' });
    await vi.waitFor(async () => expect(await isKept()).toBe(false), { timeout: 10_000, interval: 50 });
  });
});
