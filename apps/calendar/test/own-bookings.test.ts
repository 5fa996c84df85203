import {
  type CreateAppointmentRequest,
  type OwnBooking,
  type OwnPlace,
  ParticipationState,
} from '@scheduling/contracts/calendar/v1';
import { eventually, newNamedKey } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseNamedKeys } from '@scheduling/runtime';
import { createLinkTokens } from '../src/person/link-token.ts';
import {
  allEnded,
  type CalendarUnderTest,
  countWaiting,
  createCustomer,
  eventsOf,
  freshReference,
  newAppointment,
  refusal,
  seatsOf,
  startCalendar,
} from './calendar-under-test.ts';
import { newBooking, newTimeslot } from './slots-under-test.ts';

// Every test has a sandbox of its own day: its clock can be set.
const owner = { crmId: 'sandbox', providerReference: 'p1' };
const start = new Date('2031-06-02T08:00:00Z');
const hours = (count: number): Date => new Date(start.getTime() + count * 3_600_000);

const keys = newNamedKey('first');
let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar({ LINK_KEYS: keys });
});
afterAll(() => calendar[Symbol.asyncDispose]());

const setClock = (now: Date, crmId = owner.crmId) => calendar.clocks.setSandboxClock({ crmId, now });
const setRules = (rules: { changeNotice?: number; confirmation?: 'CONFIRMATION_BOOKED' | 'CONFIRMATION_REQUESTED' }) =>
  calendar.bookings.updateBookingRules({ ...owner, noHorizon: false, ...rules });

/** A booking of a free place of a timeslot, on the half hours from 10:00 to 12:00 in Berlin, and its link. */
async function bookPlace(state: ParticipationState = ParticipationState.BOOKED, capacity = 1) {
  const timeslot = newTimeslot({ start: '2031-06-02T10:00', end: '2031-06-02T12:00', defaultCapacity: capacity });
  await calendar.timeslots.createTimeslots({ ...owner, timeslots: [timeslot] });
  const customerReference = await createCustomer(calendar, owner);
  const place = {
    $case: 'timeslot' as const,
    value: { timeslotReference: timeslot.reference, start: '2031-06-02T10:00', productReference: 'product@test' },
  };
  const customer =
    state === ParticipationState.RESERVED
      ? undefined
      : ({ $case: 'customerReference', value: customerReference } as const);
  const request = { ...newBooking(place, { state, customer }), ...owner, ignoreNotice: true };
  const { participation } = await calendar.bookings.bookSlot(request);
  const { reference, appointmentReference } = participation;
  return { timeslot, customerReference, reference, appointmentReference, token: await linkOf(reference) };
}

/** Another person's booking of the same appointment. */
async function joinAppointment(appointmentReference: string): Promise<void> {
  const customerReference = await createCustomer(calendar, owner);
  const customer = { $case: 'customerReference', value: customerReference } as const;
  const place = { $case: 'appointmentReference', value: appointmentReference } as const;
  const request = { ...newBooking(place, { state: ParticipationState.BOOKED, customer }), ...owner };
  await calendar.bookings.bookSlot(request);
}

async function linkOf(participationReference: string): Promise<string> {
  return (await calendar.participations.getParticipationLink({ ...owner, participationReference })).token;
}

const idOf = async (reference: string): Promise<string> =>
  (await calendar.participations.getParticipation({ ...owner, participationReference: reference })).id;

const stateOf = async (reference: string): Promise<ParticipationState> =>
  (await calendar.participations.getParticipation({ ...owner, participationReference: reference })).participation.state;

const moveTo = (participationReference: string, state: ParticipationState) =>
  calendar.participations.updateParticipation({
    ...owner,
    participationReference,
    state,
    ignoreCapacity: false,
    sendMails: false,
  });

const placeAt = (timeslotReference: string, minutes: number): OwnPlace => ({
  kind: { $case: 'timeslot', value: { timeslotReference, start: new Date(start.getTime() + minutes * 60_000) } },
});

/** OK, or the code of the refusal. */
async function outcomeOf(call: Promise<{ booking?: OwnBooking | undefined }>): Promise<string> {
  try {
    await call;
    return 'OK';
  } catch {
    return (await refusal(call)).code;
  }
}

describe('what a person can do', () => {
  const { RESERVED, REQUESTED, BOOKED, CANCELED, DELETED } = ParticipationState;
  const times = { early: hours(-48), late: hours(-1), over: hours(1) };
  const gone = ['link.not_found', 'link.not_found', 'link.not_found', 'link.not_found'];
  const refused = ['OK', 'link.not_allowed', 'link.not_allowed', 'link.not_allowed'];
  /** To see, to confirm, to move, to cancel. */
  const cases: [ParticipationState, keyof typeof times, string[]][] = [
    [RESERVED, 'early', refused],
    [REQUESTED, 'early', ['OK', 'link.not_allowed', 'OK', 'OK']],
    [REQUESTED, 'late', ['OK', 'link.not_allowed', 'link.too_late', 'OK']],
    [REQUESTED, 'over', ['OK', 'link.not_allowed', 'link.too_late', 'link.too_late']],
    [BOOKED, 'early', ['OK', 'OK', 'OK', 'OK']],
    [BOOKED, 'late', ['OK', 'OK', 'link.too_late', 'link.too_late']],
    [BOOKED, 'over', ['OK', 'link.too_late', 'link.too_late', 'link.too_late']],
    [CANCELED, 'early', ['OK', 'link.not_allowed', 'link.not_allowed', 'OK']],
    [DELETED, 'early', gone],
  ];
  it.each(cases)(
    'with a booking that is %s depends on its state and on the change notice: %s',
    async (state, time, expected) => {
      await setClock(times.early);
      await setRules({ changeNotice: 120, confirmation: 'CONFIRMATION_BOOKED' });
      const isOver = state === CANCELED || state === DELETED;
      const { timeslot, reference, token } = await bookPlace(isOver ? BOOKED : state);
      if (isOver) await moveTo(reference, state);
      await setClock(times[time]);
      const { persons } = calendar;
      const outcomes = [
        await outcomeOf(persons.getOwnBooking({ token })),
        await outcomeOf(persons.confirmAttendance({ token })),
        await outcomeOf(persons.moveOwnBooking({ token, place: placeAt(timeslot.reference, 90) })),
        await outcomeOf(persons.cancelOwnBooking({ token })),
      ];
      expect(outcomes).toEqual(expected);
      if (expected === gone) {
        expect((await refusal(linkOf(reference))).code).toBe('link.not_found');
        return;
      }
      const { booking } = await persons.getOwnBooking({ token });
      expect(booking?.state).toBe(expected[3] === 'OK' ? CANCELED : state);
      expect([booking!.cancellable, booking!.movable, booking!.confirmable]).toEqual([false, false, false]);
    },
  );
});

describe('a booking that its person', () => {
  beforeAll(async () => {
    await setClock(hours(-48));
    await setRules({ changeNotice: 0, confirmation: 'CONFIRMATION_BOOKED' });
  });

  it('cancels frees its place, once, with one mail, and says who did it and why', async () => {
    const { reference, appointmentReference, token } = await bookPlace();
    const cancel = () => calendar.persons.cancelOwnBooking({ token, message: 'I am ill.' });
    const { booking, alreadyCancelled } = await cancel();
    expect(booking).toMatchObject({ state: ParticipationState.CANCELED, version: 2 });
    const again = await cancel();
    expect([alreadyCancelled, again.alreadyCancelled, again.booking?.version]).toEqual([false, true, 2]);
    expect(await seatsOf(calendar, appointmentReference, owner.crmId)).toBe(0);
    const events = await eventsOf(calendar, reference);
    expect(events.map(({ toState, actor, notify }) => ({ toState, actor, notify }))).toEqual([
      { toState: ParticipationState.BOOKED, actor: 'service', notify: true },
      { toState: ParticipationState.CANCELED, actor: 'service', notify: true },
    ]);
    const { participation } = await calendar.participations.getParticipation({
      ...owner,
      participationReference: reference,
    });
    expect(participation.messages).toEqual(['I am ill.']);
  });

  it('was shown at another time is neither cancelled nor confirmed nor moved there, but what is done stays so', async () => {
    const { timeslot, reference, appointmentReference, token } = await bookPlace();
    const open = newAppointment({
      ...owner,
      acceptBookings: true,
      start: '2031-06-03T10:00',
      end: '2031-06-03T10:30',
      resourceReference: timeslot.resourceReference,
    });
    await calendar.appointments.createAppointment(open);
    const { persons } = calendar;
    const place: OwnPlace = { kind: { $case: 'appointmentReference', value: open.reference } };
    const shown = [start, new Date('2031-06-03T08:00:00Z')] as const;
    const present = [hours(4), new Date('2031-06-03T12:00:00Z')] as const;
    const confirm = (time: Date) => outcomeOf(persons.confirmAttendance({ token, start: time }));
    const move = (time: Date) => outcomeOf(persons.moveOwnBooking({ token, place, start: time }));
    const cancel = (time: Date) => outcomeOf(persons.cancelOwnBooking({ token, message: 'I am ill.', start: time }));
    const change = { ...owner, noAddress: false, sendMails: false };
    for (const times of [
      { appointmentReference, start: '2031-06-02T14:00', end: '2031-06-02T14:30' },
      { appointmentReference: open.reference, start: '2031-06-03T14:00', end: '2031-06-03T14:30' },
    ])
      await calendar.appointments.updateAppointment({ ...change, ...times });

    const changes = await eventsOf(calendar, reference);
    const { booking } = await persons.getOwnBooking({ token });
    const refused = [await confirm(shown[0]), await move(shown[1]), await cancel(shown[0])];
    expect(refused).toEqual(['link.changed', 'slot.unavailable', 'link.changed']);
    for (const time of [new Date(present[0].getTime() + 1), new Date('+275760-09-13T00:00:00Z')])
      expect(await cancel(time)).toBe('link.changed');
    const unchanged = { ...booking, now: expect.any(Date) as Date };
    expect((await persons.getOwnBooking({ token })).booking).toEqual(unchanged);
    expect(await eventsOf(calendar, reference)).toEqual(changes);

    expect([await confirm(present[0]), await confirm(shown[0])]).toEqual(['OK', 'OK']);
    expect([await move(present[1]), await move(shown[1])]).toEqual(['OK', 'OK']);
    expect([await cancel(present[1]), await cancel(shown[1])]).toEqual(['OK', 'OK']);
    const { participation } = await calendar.participations.getParticipation({
      ...owner,
      participationReference: reference,
    });
    expect(participation).toMatchObject({ state: ParticipationState.CANCELED, messages: ['I am ill.'] });
  });

  it('was shown at another time is too late to cancel rather than changed', async () => {
    const { token } = await bookPlace();
    await setRules({ changeNotice: 60 * 48 + 1 });
    expect(await outcomeOf(calendar.persons.cancelOwnBooking({ token, start: hours(1) }))).toBe('link.too_late');
    await setRules({ changeNotice: 0 });
  });

  it('cancels can have a message of 500 characters at most', async () => {
    const { token } = await bookPlace();
    const tooLong = calendar.persons.cancelOwnBooking({ token, message: '😀'.repeat(501) });
    expect(await refusal(tooLong)).toMatchObject({ code: 'participation.invalid', errors: [{ pointer: '/message' }] });
    const { booking } = await calendar.persons.cancelOwnBooking({ token, message: '😀'.repeat(500) });
    expect(booking?.state).toBe(ParticipationState.CANCELED);
  });

  it('will attend says so, until its time, address or title changes, with an event and without a mail', async () => {
    const { timeslot, reference, token } = await bookPlace();
    const confirm = () => calendar.persons.confirmAttendance({ token });
    expect((await confirm()).booking).toMatchObject({ version: 2, confirmable: false });
    expect((await confirm()).booking?.version).toBe(2);
    const mailVersion = async () => {
      const request = { crmId: owner.crmId, participationId: await idOf(reference), version: 1 };
      return (await calendar.participations.getParticipationMailData(request)).currentVersion;
    };
    // A mail that was sent before says all that there is to say.
    expect(await mailVersion()).toBe(1);
    const shown = async () =>
      (await calendar.participations.getParticipation({ ...owner, participationReference: reference })).participation;
    expect((await shown()).attendanceConfirmedAt).toEqual(expect.any(String));
    expect((await eventsOf(calendar, reference)).at(-1)).toMatchObject({ version: 2, silent: true, notify: false });
    const { booking } = await calendar.persons.moveOwnBooking({ token, place: placeAt(timeslot.reference, 30) });
    expect(booking).toMatchObject({ version: 3, confirmable: true });
    expect(await mailVersion()).toBe(3);
    expect(await shown()).not.toHaveProperty('attendanceConfirmedAt');
    const { appointmentReference } = await shown();
    const address = { kind: { $case: 'text' as const, value: 'Room 2' } };
    for (const [change, isForgotten] of [
      [{ capacity: 2 }, false],
      [{ description: 'Cut' }, true],
      [{ address }, true],
      [{ end: '2031-06-02T11:05' }, true],
    ] as const) {
      await confirm();
      const request = { ...owner, appointmentReference, noAddress: false, sendMails: false, ...change };
      await calendar.appointments.updateAppointment(request);
      expect('attendanceConfirmedAt' in (await shown())).toBe(!isForgotten);
    }
  });

  it('moves keeps its link and its state, and the link shows where it is now', async () => {
    for (const state of [ParticipationState.BOOKED, ParticipationState.REQUESTED]) {
      const { timeslot, token } = await bookPlace(state);
      const place = placeAt(timeslot.reference, 90);
      const { booking } = await calendar.persons.moveOwnBooking({ token, place });
      expect(booking).toMatchObject({ state, start: hours(1.5), version: 2 });
      expect((await calendar.persons.moveOwnBooking({ token, place })).booking?.version).toBe(2);
      expect((await calendar.persons.getOwnBooking({ token })).booking?.start).toEqual(hours(1.5));
    }
  });

  it('can move five times, and not at all once the provider confirms bookings', async () => {
    const { timeslot, token } = await bookPlace();
    const move = (minutes: number) =>
      outcomeOf(calendar.persons.moveOwnBooking({ token, place: placeAt(timeslot.reference, minutes) }));
    await setRules({ confirmation: 'CONFIRMATION_REQUESTED' });
    expect(await move(30)).toBe('link.not_allowed');
    await setRules({ confirmation: 'CONFIRMATION_BOOKED' });
    const outcomes = [];
    for (const minutes of [30, 60, 90, 0, 30, 60]) outcomes.push(await move(minutes));
    expect(outcomes).toEqual(['OK', 'OK', 'OK', 'OK', 'OK', 'link.not_allowed']);
    expect((await calendar.persons.getOwnBooking({ token })).booking).toMatchObject({
      movable: false,
      cancellable: true,
    });
  });

  it('can be moved only to places that are as long and as expensive, and only those are listed', async () => {
    const { timeslot, token } = await bookPlace();
    const open = async (fields: Partial<CreateAppointmentRequest>) => {
      const appointment = newAppointment({
        ...owner,
        acceptBookings: true,
        start: '2031-06-03T10:00',
        end: '2031-06-03T10:30',
        resourceReference: timeslot.resourceReference,
        description: 'Group',
        address: { kind: { $case: 'address', value: { city: 'Berlin' } } },
        ...fields,
      });
      await calendar.appointments.createAppointment(appointment);
      return appointment.reference;
    };
    const longer = await open({ start: '2031-06-03T12:00', end: '2031-06-03T13:00' });
    const expensive = await open({
      start: '2031-06-03T14:00',
      end: '2031-06-03T14:30',
      price: { value: 999, currency: 'EUR' },
    });
    const other = await open({ start: '2031-06-03T16:00', end: '2031-06-03T16:30', productReference: 'other@test' });
    const same = await open({});
    const { times } = await calendar.persons.listOwnTimes({ token });
    expect(times.filter(({ place }) => place?.kind?.$case === 'appointmentReference')).toEqual([
      {
        start: new Date('2031-06-03T08:00:00Z'),
        end: new Date('2031-06-03T08:30:00Z'),
        place: { kind: { $case: 'appointmentReference', value: same } },
        description: 'Group',
        address: { kind: { $case: 'address', value: { city: 'Berlin' } } },
      },
    ]);
    const outcomes = [];
    for (const value of [longer, expensive, other, same])
      outcomes.push(
        await outcomeOf(
          calendar.persons.moveOwnBooking({ token, place: { kind: { $case: 'appointmentReference', value } } }),
        ),
      );
    expect(outcomes).toEqual(['slot.unavailable', 'slot.unavailable', 'slot.unavailable', 'OK']);
  });

  it('cannot be moved to a time that no calendar has', async () => {
    const { timeslot, token } = await bookPlace();
    for (const time of ['+275760-09-13T00:00:00Z', '+010000-01-01T00:00:00Z', '-000001-01-01T00:00:00Z']) {
      const value = { timeslotReference: timeslot.reference, start: new Date(time) };
      const move = calendar.persons.moveOwnBooking({ token, place: { kind: { $case: 'timeslot', value } } });
      expect(await outcomeOf(move)).toBe('slot.unavailable');
    }
  });

  it('can be moved only to places for the same product, and on resources where that is offered', async () => {
    const { token, timeslot } = await bookPlace();
    const other = newTimeslot({ start: '2031-06-02T10:00', end: '2031-06-02T12:00' });
    await calendar.timeslots.createTimeslots({ ...owner, timeslots: [other] });
    const massage = newAppointment({
      ...owner,
      productReference: 'massage@test',
      acceptBookings: true,
      start: '2031-06-03T10:00',
      end: '2031-06-03T10:30',
      resourceReference: timeslot.resourceReference,
    });
    await calendar.appointments.createAppointment(massage);
    const move = (place: OwnPlace) => outcomeOf(calendar.persons.moveOwnBooking({ token, place }));
    const toMassage: OwnPlace = { kind: { $case: 'appointmentReference', value: massage.reference } };
    expect([await move(toMassage), await move(placeAt(other.reference, 30))]).toEqual([
      'slot.unavailable',
      'slot.unavailable',
    ]);
    const resources = [timeslot, other].map(({ resourceReference }) => ({ resourceReference, name: 'Room' }));
    const offer = { productReference: 'product@test', name: 'Haircut', duration: 30, resources };
    await calendar.bookings.updateBookingRules({ ...owner, noHorizon: false, offers: { offers: [offer] } });
    expect([await move(toMassage), await move(placeAt(other.reference, 30))]).toEqual(['slot.unavailable', 'OK']);
    await calendar.bookings.updateBookingRules({ ...owner, noHorizon: false, offers: { offers: [] } });
  });
});

describe('the times to which a booking can be moved', () => {
  it('are those of a week, among them ones that it would block itself, and each of them can be taken', async () => {
    await setClock(hours(-48));
    const { token, reference } = await bookPlace();
    const week = await calendar.persons.listOwnTimes({ token });
    expect(week).toMatchObject({ monday: '2031-06-02', hasPrevious: true, hasNext: true });
    expect(week.times.map(({ start: time }) => time)).toEqual([hours(0.5), hours(1), hours(1.5)]);
    for (const { place, start: time, end } of week.times) {
      const { booking } = await calendar.persons.moveOwnBooking({ token, place: place! });
      expect(booking).toMatchObject({ start: time, end });
    }
    for (const [date, monday] of [
      ['2031-05-01', '2031-05-26'],
      ['2041-06-05', '2041-06-03'],
      ['+275760-09-13', '9999-12-20'],
    ] as const)
      expect((await calendar.persons.listOwnTimes({ token, date })).monday).toBe(monday);
    expect(await outcomeOf(calendar.persons.listOwnTimes({ token, date: 'tomorrow' }))).toBe('slot.invalid');
    await moveTo(reference, ParticipationState.CANCELED);
    expect((await calendar.persons.listOwnTimes({ token })).times).toEqual([]);
  });

  it('include those that overlap the booking, if it is longer than the raster', async () => {
    const timeslot = newTimeslot({ start: '2031-06-02T10:00', end: '2031-06-02T12:00' });
    await calendar.timeslots.createTimeslots({ ...owner, timeslots: [timeslot] });
    const customerReference = await createCustomer(calendar, owner);
    const value = {
      timeslotReference: timeslot.reference,
      start: '2031-06-02T10:00',
      duration: 60,
      productReference: 'p',
    };
    const request = newBooking(
      { $case: 'timeslot', value },
      { state: ParticipationState.BOOKED, customer: { $case: 'customerReference', value: customerReference } },
    );
    const { participation } = await calendar.bookings.bookSlot({ ...request, ...owner });
    const token = await linkOf(participation.reference);
    const { times } = await calendar.persons.listOwnTimes({ token });
    expect(times.map(({ start: time }) => time)).toEqual([hours(0.5), hours(1)]);
    const { booking } = await calendar.persons.moveOwnBooking({ token, place: times[0]!.place! });
    expect(booking).toMatchObject({ start: hours(0.5), end: hours(1.5) });
  });
});

describe('a link', () => {
  const see = (token: string) => outcomeOf(calendar.persons.getOwnBooking({ token }));
  beforeAll(() => setClock(hours(-48)));

  it('does not work if a single bit of it is another one, or if it is written in another way', async () => {
    const { token } = await bookPlace();
    const bytes = Buffer.from(token, 'base64url');
    const flipped = Array.from({ length: bytes.length * 8 }, (_, bit) => {
      const copy = Buffer.from(bytes);
      copy[bit >> 3]! ^= 1 << (bit & 7);
      return copy.toString('base64url');
    });
    const others = [
      `${token}A`,
      `${token}=`,
      `${token}\u0100`,
      `ü${token}`,
      token.slice(0, -1),
      bytes.toString('base64'),
      '',
      'x'.repeat(5_000),
    ];
    // One by one: hundreds at once would have to wait for their turn.
    for (const wrong of [...flipped, ...others].filter((text) => text !== token))
      expect(await see(wrong), wrong).toBe('link.not_found');
    expect(await see(token)).toBe('OK');
  });

  it('works only if it was signed with a key of this service, for this person, booking and CRM', async () => {
    const { reference } = await bookPlace();
    const link = { purpose: 'booking', crmId: owner.crmId, participationId: await idOf(reference) } as const;
    const address = 'person@example.com';
    const own = createLinkTokens(parseNamedKeys(keys)!);
    const foreign = createLinkTokens(parseNamedKeys(newNamedKey('first'))!);
    expect(await see(own.issue(link, address))).toBe('OK');
    expect(await see(own.issue(link, 'PERSON@Example.com'))).toBe('OK');
    const wrong = [
      own.issue(link, undefined),
      own.issue(link, 'other@example.com'),
      own.issue({ ...link, crmId: 'other-sandbox' }, address),
      own.issue({ ...link, participationId: randomUUID() }, address),
      foreign.issue(link, address),
    ];
    expect(await Promise.all(wrong.map(see))).toEqual(wrong.map(() => 'link.not_found'));
  });

  it('survives the rotation of the keys as long as its own is one of them', async () => {
    const { token } = await bookPlace();
    await using during = await calendar.startReplica({ LINK_KEYS: `${newNamedKey('second')},${keys}` });
    expect(await outcomeOf(during.persons.getOwnBooking({ token }))).toBe('OK');
    await using after = await calendar.startReplica({ LINK_KEYS: newNamedKey('second') });
    expect(await outcomeOf(after.persons.getOwnBooking({ token }))).toBe('link.not_found');
  });

  it('is dead once the address is another one, and the person erased or the participation gone', async () => {
    const corrected = await bookPlace();
    const { customers } = calendar;
    const customer = { ...owner, customerReference: corrected.customerReference };
    await customers.updateCustomer({ ...customer, email: 'right@example.com' });
    expect(await see(corrected.token)).toBe('link.not_found');
    expect(await see(await linkOf(corrected.reference))).toBe('OK');

    const erased = await bookPlace();
    const key = { $case: 'reference' as const, value: { ...owner, customerReference: erased.customerReference } };
    const customerId = (await customers.getCustomer({ crmId: owner.crmId, key })).customer!.id;
    await calendar.removals.removeCustomer({ crmId: owner.crmId, customerId, ignoreFutureAppointments: true });
    expect(await see(erased.token)).toBe('link.not_found');

    const deleted = await bookPlace();
    await calendar.appointments.deleteAppointments({
      ...owner,
      target: { $case: 'appointmentReference', value: deleted.appointmentReference },
    });
    expect(await see(deleted.token)).toBe('link.not_found');
  });

  it('of an embedded participant works until the appointment has been over for 30 days', async () => {
    const reference = freshReference('embedded');
    const appointment = newAppointment({
      ...owner,
      start: '2031-06-02T10:00',
      end: '2031-06-02T11:00',
      participations: [{ reference, name: 'Ada', email: 'ada@example.com', state: ParticipationState.BOOKED }],
    });
    await calendar.appointments.createAppointment(appointment);
    const token = await linkOf(reference);
    const { booking } = await calendar.persons.getOwnBooking({ token });
    expect(booking).toMatchObject({ name: 'Ada', maskedEmail: 'a***@example.com' });
    await setClock(hours(1 + 30 * 24 - 0.1));
    expect(await see(token)).toBe('OK');
    await setClock(hours(1 + 30 * 24));
    expect(await see(token)).toBe('link.not_found');
    expect((await refusal(linkOf(reference))).code).toBe('link.not_found');
  });
});

it('50 persons and a CRM who cancel and move one booking at once leave it in one state, with the seats that this takes', async () => {
  await setClock(hours(-48));
  // In one process, calls of the same function that wait at the same moment are made one after another.
  await using replica = await calendar.startReplica();
  const replicas = [calendar, replica];
  for (const everyNth of [1, 5, 5]) {
    const { timeslot, reference, appointmentReference, token } = await bookPlace(ParticipationState.BOOKED, 2);
    await joinAppointment(appointmentReference);
    const target = newTimeslot({
      resourceReference: timeslot.resourceReference,
      start: '2031-06-04T10:00',
      end: '2031-06-04T12:00',
      defaultCapacity: 2,
    });
    await calendar.timeslots.createTimeslots({ ...owner, timeslots: [target] });
    const place: OwnPlace = {
      kind: {
        $case: 'timeslot',
        value: { timeslotReference: target.reference, start: new Date('2031-06-04T08:00:00Z') },
      },
    };
    const calls = Array.from({ length: 50 }, (_, person) =>
      outcomeOf(
        person % everyNth === 0
          ? replicas[person % 2]!.persons.cancelOwnBooking({ token })
          : replicas[person % 2]!.persons.moveOwnBooking({
              token,
              place: person % 2 === 0 ? place : placeAt(timeslot.reference, 30),
            }),
      ),
    );
    const byCrm = moveTo(reference, ParticipationState.CANCELED).catch(() => undefined);
    const outcomes = await allEnded(calls);
    await byCrm;
    const busy = ['slot.busy', 'participation.busy', 'service.unavailable'];
    const expected = new Set(['OK', 'link.not_allowed', 'slot.unavailable', ...busy]);
    expect(outcomes.filter((outcome) => !expected.has(outcome))).toEqual([]);
    expect(await stateOf(reference)).toBe(ParticipationState.CANCELED);
    const changes = await eventsOf(calendar, reference);
    expect(changes.filter(({ toState }) => toState === ParticipationState.CANCELED)).toHaveLength(1);
    expect(changes.map(({ version }) => version)).toEqual(changes.map((_, index) => index + 1));
    expect(await seatsOf(calendar, appointmentReference, owner.crmId)).toBe(1);
    const { rows } = await sql<{ taken: number }>`
      SELECT taken FROM appointment WHERE resource_reference = ${timeslot.resourceReference} AND reference <> ${appointmentReference}`.execute(
      calendar.database.kysely,
    );
    expect(rows.filter(({ taken }) => taken !== 0)).toEqual([]);
  }
});

it('a person who cancels twice, in two processes that both wait for the same booking, frees one seat', async () => {
  await setClock(hours(-48));
  await using replica = await calendar.startReplica();
  const { reference, appointmentReference, token } = await bookPlace(ParticipationState.BOOKED, 2);
  await joinAppointment(appointmentReference);
  const cancellations = await calendar.database.transaction(async (tx) => {
    await sql`SELECT FROM appointment WHERE reference = ${appointmentReference} FOR UPDATE`.execute(tx);
    const calls = [calendar, replica].map((each) => outcomeOf(each.persons.cancelOwnBooking({ token })));
    await eventually(async () => expect(await countWaiting(calendar, '%cancel_own_booking%')).toBe(2));
    return calls;
  });
  expect(await Promise.all(cancellations)).toEqual(['OK', 'OK']);
  expect(await seatsOf(calendar, appointmentReference, owner.crmId)).toBe(1);
  expect(await eventsOf(calendar, reference)).toHaveLength(2);
});

it('however many open the pages of a CRM, its own calls find a connection to the database', async () => {
  await setClock(hours(-48));
  const { reference, token } = await bookPlace();
  const visitors = await calendar.database.transaction(async (tx) => {
    await sql`LOCK TABLE timeslot`.execute(tx);
    const calls = Array.from({ length: 40 }, () => outcomeOf(calendar.persons.listOwnTimes({ token })));
    await eventually(async () => expect(await countWaiting(calendar)).toBeGreaterThan(0));
    expect(await stateOf(reference)).toBe(ParticipationState.BOOKED);
    expect(await countWaiting(calendar)).toBe(1);
    return calls;
  });
  expect(await Promise.all(visitors)).toContain('OK');
});
