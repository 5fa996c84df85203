import { AppointmentState, ParticipationState } from '@scheduling/contracts/calendar/v1';
import {
  AppointmentChange,
  type AppointmentChanged,
  ParticipationChangeCause,
  type ParticipationChanged,
} from '@scheduling/contracts/events/v1';
import { type EventJson, eventOf, events } from '@scheduling/events';
import { runWithContext } from '@scheduling/runtime';
import { eventually } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Calendar,
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  freshReference,
  newAppointment,
  newParticipation,
  owned,
  readAppointments,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';
import { createTimeslot, customerOf, newBooking, placeIn } from './slots-under-test.ts';

const actor = 'crm:sk_one234567';
const { RESERVED, REQUESTED, BOOKED, CANCELED, DELETED } = ParticipationState;
const { participationChanged, appointmentChanged } = events;

let calendar: CalendarUnderTest;
/** For it, the reservations of the others have expired. */
let late: Calendar;
let customerReference: string;
let lastEvent: string;

beforeAll(async () => {
  calendar = await startCalendar({ RESERVATION_SWEEPER: 'off' });
  late = await calendar.startReplicaAt('181 seconds', { RESERVATION_SWEEPER: 'off' });
  customerReference = await createCustomer(calendar);
  // The first booking fetches the customer.
  await calendar.participations.createParticipation(
    newParticipation({ appointmentReference: await createAppointment(calendar), customerReference }),
  );
}, 180_000);
afterAll(async () => {
  await late?.[Symbol.asyncDispose]();
  await calendar?.[Symbol.asyncDispose]();
});

beforeEach(async () => {
  lastEvent = (
    await calendar.database.kysely.selectFrom('outbox').select('id').orderBy('id', 'desc').executeTakeFirstOrThrow()
  ).id;
});

const asCrm = <T>(work: () => Promise<T>): Promise<T> => runWithContext({ requestId: randomUUID(), actor }, work);

interface Recorded {
  id: string;
  about: string;
  event: ParticipationChanged | AppointmentChanged;
}

/** What was recorded since the test began, in this order. */
async function recorded(): Promise<Recorded[]> {
  const rows = await calendar.database.kysely
    .selectFrom('outbox')
    .select(['id', 'subject', 'data'])
    .where('id', '>', lastEvent)
    .orderBy('id')
    .execute();
  return rows.map(({ id, subject, data }) =>
    subject === appointmentChanged.subject
      ? { id, about: 'appointment', event: appointmentChanged.fromJson(data!) }
      : { id, about: 'participation', event: participationChanged.fromJson(data!) },
  );
}

/**
 * The same in short: what it is about, the version, what happened, the states, and who did it unless it was the CRM.
 */
async function summary(): Promise<string[]> {
  return (await recorded()).map(({ event }) => {
    const by = event.actor === actor ? '' : ` by ${event.actor}`;
    if ('change' in event)
      return `appointment ${event.version} ${event.change.replace(/^APPOINTMENT_CHANGE_/, '')}${by}`;
    const state = (name: ParticipationState) => name.replace(/^PARTICIPATION_STATE_/, '').replace('UNSPECIFIED', '-');
    return `participation ${event.version} ${event.cause.replace(/^PARTICIPATION_CHANGE_CAUSE_/, '')} ${state(event.fromState)} ${state(event.toState)}${by}`;
  });
}

/**
 * Where the events of a participation or an appointment do not lead, version by version, to what its table contains.
 */
async function contradictions(): Promise<string[]> {
  const { kysely } = calendar.database;
  const rows = await kysely.selectFrom('outbox').select(['id as eventId', 'subject', 'data']).orderBy('id').execute();
  const expected = new Map<string, { version: number; state: string }>();
  const lastMails = new Map<string, string>();
  const wrong: string[] = [];
  for (const { eventId, subject, data } of rows) {
    const isAppointment = subject === appointmentChanged.subject;
    const event = isAppointment ? appointmentChanged.fromJson(data!) : participationChanged.fromJson(data!);
    const id = 'change' in event ? event.appointmentId : event.participationId;
    const before = expected.get(id) ?? { version: 0, state: 'UNSPECIFIED' };
    const from = event.fromState.replace(/^(PARTICIPATION|APPOINTMENT)_STATE_/, '');
    if (event.version !== before.version + 1 || from !== before.state)
      wrong.push(`${id} ${before.version} ${before.state} then ${event.version} from ${from}`);
    if ('notify' in event && event.notify) {
      if (event.previousMailEventId !== lastMails.get(id))
        wrong.push(
          `${id} ${event.version} follows the mail of ${event.previousMailEventId}, not of ${lastMails.get(id)}`,
        );
      lastMails.set(id, eventId);
    }
    expected.set(id, {
      version: event.version,
      state: 'change' in event ? appointmentStates[event.change]! : event.toState.replace('PARTICIPATION_STATE_', ''),
    });
  }
  const { rows: present } = await sql<{ id: string; version: number | null; state: string }>`
    SELECT id, version, state FROM participation UNION ALL SELECT id, NULL, state FROM appointment`.execute(kysely);
  for (const { id, version, state } of present) {
    const last = expected.get(id);
    if (last?.state !== state || (version !== null && last.version !== version))
      wrong.push(`${id} is ${state} ${version}, but was recorded as ${JSON.stringify(last)}`);
    expected.delete(id);
  }
  for (const [id, { state }] of expected)
    if (state !== 'UNSPECIFIED') wrong.push(`${id} is gone, but was recorded as ${state}`);
  return wrong;
}

interface Seats {
  capacity: number;
  taken: number;
  eventCount: number;
}

/**
 * Where the events about an appointment, in the order of their ordinals, have a gap, give a seat that it does not have,
 * or do not lead to what its table contains.
 */
async function wrongSeats(): Promise<string[]> {
  const { kysely } = calendar.database;
  const rows = await kysely.selectFrom('outbox').select(['subject', 'data']).execute();
  const present = new Map(
    (await kysely.selectFrom('appointment').select(['id', 'capacity', 'taken', 'eventCount']).execute()).map(
      ({ id, ...seats }) => [id, seats],
    ),
  );
  const changes = rows.flatMap(({ subject, data }) =>
    subject === appointmentChanged.subject
      ? changesOfAppointment(appointmentChanged.fromJson(data!))
      : changesOfSeats(participationChanged.fromJson(data!)),
  );
  return [...Map.groupBy(changes, ({ appointmentId }) => appointmentId)].flatMap(([id, ofAppointment]) => {
    const seats: Seats = { capacity: 0, taken: 0, eventCount: 0 };
    const wrong: string[] = [];
    for (const { ordinal, capacity = seats.capacity, taken, exempt } of ofAppointment.toSorted(
      (a, b) => a.ordinal - b.ordinal,
    )) {
      if (ordinal !== seats.eventCount + 1) wrong.push(`${id} has ${ordinal} after ${seats.eventCount}`);
      Object.assign(seats, { capacity, taken: seats.taken + taken, eventCount: ordinal });
      if (taken > 0 && !exempt && seats.taken > capacity)
        wrong.push(`${id} gives seat ${seats.taken} of ${capacity} at ${ordinal}`);
    }
    const row = present.get(id);
    if (row !== undefined && !isDeepStrictEqual(row, seats))
      wrong.push(`${id} is ${JSON.stringify(row)}, but was recorded as ${JSON.stringify(seats)}`);
    return wrong;
  });
}

/** What an event says about one appointment. `taken` is the change of its taken seats. */
interface SeatChange {
  appointmentId: string;
  ordinal: number;
  capacity?: number;
  taken: number;
  exempt: boolean;
}

function changesOfAppointment({ appointmentId, ordinal, capacity, change }: AppointmentChanged): SeatChange[] {
  return [
    { appointmentId, ordinal, ...(change !== AppointmentChange.DELETED && { capacity }), taken: 0, exempt: false },
  ];
}

function changesOfSeats({
  appointmentId,
  ordinal,
  previousAppointmentId,
  previousOrdinal,
  fromState,
  toState,
  exempt,
}: ParticipationChanged): SeatChange[] {
  const [before, after] = [fromState, toState].map((state) => Number(state === RESERVED || state === BOOKED));
  if (previousAppointmentId === undefined) return [{ appointmentId, ordinal, taken: after! - before!, exempt }];
  return [
    { appointmentId: previousAppointmentId, ordinal: previousOrdinal, taken: -before!, exempt },
    { appointmentId, ordinal, taken: after!, exempt },
  ];
}

const appointmentStates: Partial<Record<AppointmentChange, string>> = {
  [AppointmentChange.CREATED]: 'ACTIVE',
  [AppointmentChange.UPDATED]: 'ACTIVE',
  [AppointmentChange.CANCELLED]: 'CANCELLED',
  [AppointmentChange.DELETED]: 'UNSPECIFIED',
};

const update = (participationReference: string, state: ParticipationState, at: Calendar = calendar) =>
  asCrm(() =>
    at.participations.updateParticipation({
      ...owned,
      participationReference,
      state,
      ignoreCapacity: false,
      sendMails: true,
    }),
  );

const updateAppointment = (
  appointmentReference: string,
  changes: { capacity?: number; description?: string; sendMails?: boolean },
) =>
  asCrm(() =>
    calendar.appointments.updateAppointment({
      ...owned,
      appointmentReference,
      noAddress: false,
      sendMails: true,
      ...changes,
    }),
  );

async function idOf(table: 'appointment' | 'participation' | 'customer', reference: string): Promise<string> {
  return (
    await calendar.database.kysely
      .selectFrom(table)
      .select('id')
      .where('reference', '=', reference)
      .executeTakeFirstOrThrow()
  ).id;
}

const embedded = (state: 'BOOKED' | 'RESERVED' | 'REQUESTED') => ({
  reference: freshReference('embedded'),
  name: 'Somebody',
  email: 'somebody@example.com',
  state: ParticipationState[state],
});

describe('an appointment', () => {
  it('is created with its participations, updated and deleted', async () => {
    const participations = [embedded('BOOKED'), embedded('RESERVED')];
    const appointmentReference = await asCrm(() => createAppointment(calendar, { capacity: 3, participations }));
    await updateAppointment(appointmentReference, { description: 'Changed' });
    const [made, first] = await recorded();
    const appointmentId = await idOf('appointment', appointmentReference);
    const { providerId } = await calendar.database.kysely
      .selectFrom('appointment')
      .select('providerId')
      .where('id', '=', appointmentId)
      .executeTakeFirstOrThrow();
    expect(made!.event).toEqual({
      crmId: 'one',
      appointmentId,
      providerId,
      actor,
      version: 1,
      change: AppointmentChange.CREATED,
      fromState: AppointmentState.UNSPECIFIED,
      ordinal: 1,
      capacity: 3,
    });
    expect(first!.event).toMatchObject({
      crmId: 'one',
      appointmentId,
      providerId,
      actor,
      customerId: undefined,
      notify: false,
      notifyProvider: false,
      decided: false,
    });
    await asCrm(() =>
      calendar.appointments.deleteAppointments({
        ...owned,
        target: { $case: 'appointmentReference', value: appointmentReference },
      }),
    );
    expect((await summary()).toSorted()).toEqual([
      'appointment 1 CREATED',
      'appointment 2 UPDATED',
      'appointment 3 DELETED',
      'participation 1 CREATED - BOOKED',
      'participation 1 CREATED - RESERVED',
      'participation 2 APPOINTMENT_CHANGED BOOKED BOOKED',
      'participation 2 REMOVED RESERVED -',
      'participation 3 REMOVED BOOKED -',
    ]);
  });

  it('is updated if something is different, cancelled with its participations, and deleted afterwards', async () => {
    const appointmentReference = await asCrm(() =>
      createAppointment(calendar, { participations: [embedded('BOOKED')] }),
    );
    for (const capacity of [7, 7, 8]) await updateAppointment(appointmentReference, { capacity });
    await asCrm(() => calendar.appointments.cancelAppointment({ ...owned, appointmentReference }));
    await asCrm(() => calendar.appointments.cancelAppointment({ ...owned, appointmentReference }));
    await asCrm(() =>
      calendar.appointments.deleteAppointments({
        ...owned,
        target: { $case: 'appointmentReference', value: appointmentReference },
      }),
    );
    expect(await summary()).toEqual([
      'appointment 1 CREATED',
      'participation 1 CREATED - BOOKED',
      'appointment 2 UPDATED',
      'appointment 3 UPDATED',
      'participation 2 APPOINTMENT_CANCELLED BOOKED CANCELED',
      'appointment 4 CANCELLED',
      'participation 3 REMOVED CANCELED -',
      'appointment 5 DELETED',
    ]);
  });

  it('says the new capacity with each update', async () => {
    const appointmentReference = await asCrm(() => createAppointment(calendar, { capacity: 1 }));
    for (const capacity of [7, 0, 8]) await updateAppointment(appointmentReference, { capacity });
    const capacities = (await recorded()).map(({ event }) => 'change' in event && event.capacity);
    expect(capacities).toEqual([1, 7, 0, 8]);
  });

  it('of a series is created and deleted like any other', async () => {
    const { participations: _none, reference: _reference, start: _start, end: _end, ...details } = newAppointment();
    const series = { ...details, spanFrom: '2099-06-01T10:00', spanTo: '2099-06-01T12:00', raster: 60, weekdays: [] };
    const { seriesId } = await asCrm(() => calendar.appointments.createSeries(series));
    await asCrm(() =>
      calendar.appointments.deleteAppointments({ ...owned, target: { $case: 'seriesId', value: seriesId } }),
    );
    expect(await summary()).toEqual([
      'appointment 1 CREATED',
      'appointment 1 CREATED',
      'appointment 2 DELETED',
      'appointment 2 DELETED',
    ]);
  });

  it('that exists is not created again', async () => {
    const request = newAppointment();
    await asCrm(() => calendar.appointments.createAppointment(request));
    await asCrm(() => calendar.appointments.createAppointment(request));
    expect(await summary()).toEqual(['appointment 1 CREATED']);
  });
});

describe('a participation', () => {
  it('says where it is and whose', async () => {
    const appointmentReference = await createAppointment(calendar);
    const request = newParticipation({ appointmentReference, customerReference });
    await asCrm(() => calendar.participations.createParticipation(request));
    await update(request.reference, DELETED);
    await update(request.reference, CANCELED);
    const [, ...changes] = await recorded();
    const ids = {
      appointmentId: await idOf('appointment', appointmentReference),
      customerId: await idOf('customer', customerReference),
    };
    expect(changes.map(({ event }) => event)).toMatchObject([
      { ...ids, version: 1, cause: ParticipationChangeCause.CREATED, toState: BOOKED, notify: true },
      {
        ...ids,
        version: 2,
        cause: ParticipationChangeCause.UPDATED,
        fromState: BOOKED,
        toState: DELETED,
        notify: false,
        notifyProvider: false,
        decided: false,
      },
      { ...ids, version: 3, cause: ParticipationChangeCause.UPDATED, fromState: DELETED, toState: CANCELED },
    ]);
  });

  it('names the change whose mail comes before its own', async () => {
    const appointmentReference = await createAppointment(calendar);
    const request = newParticipation({ appointmentReference, customerReference });
    await asCrm(() => calendar.participations.createParticipation(request));
    await updateAppointment(appointmentReference, { description: 'Changed silently', sendMails: false });
    await updateAppointment(appointmentReference, { description: 'Changed' });
    await asCrm(() => calendar.appointments.cancelAppointment({ ...owned, appointmentReference }));
    const changes = (await recorded()).flatMap(({ id, event }) => ('notify' in event ? [{ id, ...event }] : []));
    expect(changes).toMatchObject([{ notify: true }, { notify: false }, { notify: true }, { notify: true }]);
    const [created, , changed] = changes;
    expect(changes.map(({ previousMailEventId }) => previousMailEventId)).toEqual([
      undefined,
      undefined,
      created!.id,
      changed!.id,
    ]);
  });

  it('says whether a mail has put it into the calendar of its person', async () => {
    const appointmentReference = await createAppointment(calendar, { capacity: 3 });
    const [silent, requested, confirmed] = [{ sendMails: false }, { state: REQUESTED }, { state: REQUESTED }].map(
      (fields) => newParticipation({ appointmentReference, customerReference }, fields),
    );
    for (const request of [silent!, requested!, confirmed!]) await calendar.participations.createParticipation(request);
    await update(confirmed!.reference, BOOKED);
    await asCrm(() => calendar.appointments.cancelAppointment({ ...owned, appointmentReference }));
    const ids = await Promise.all(
      [silent!, requested!, confirmed!].map(({ reference }) => idOf('participation', reference)),
    );
    const cancellations = (await recorded()).flatMap(({ event }) =>
      'cause' in event && event.cause === ParticipationChangeCause.APPOINTMENT_CANCELLED ? [event] : [],
    );
    const neverInvited = new Map(cancellations.map((event) => [event.participationId, event.neverInvited]));
    expect(ids.map((id) => neverInvited.get(id))).toEqual([true, true, false]);
  });

  it('whose reservation expires is removed by the service, whoever finds it', async () => {
    const appointmentReference = await createAppointment(calendar);
    const reserve = () => newParticipation({ appointmentReference, customerReference }, { state: RESERVED });
    await asCrm(() => calendar.participations.createParticipation(reserve()));
    await asCrm(() => late.participations.createParticipation(reserve()));
    expect((await summary()).slice(1)).toEqual([
      'participation 1 CREATED - RESERVED',
      'participation 2 REMOVED RESERVED - by service',
      'participation 1 CREATED - RESERVED',
    ]);
    await using later = await calendar.startReplicaAt('362 seconds', { RESERVATION_SWEEPER: 'on' });
    await eventually(async () =>
      expect((await summary()).slice(4)).toEqual(['participation 2 REMOVED RESERVED - by service']),
    );
    expect(later).toBeDefined();
  });

  it('is removed with its customer', async () => {
    const customer = await createCustomer(calendar);
    const appointmentReference = await createAppointment(calendar);
    await calendar.participations.createParticipation(
      newParticipation({ appointmentReference, customerReference: customer }),
    );
    const customerId = await idOf('customer', customer);
    await asCrm(() => calendar.removals.removeCustomer({ crmId: 'one', customerId, ignoreFutureAppointments: true }));
    await asCrm(() => calendar.removals.removeCustomer({ crmId: 'one', customerId, ignoreFutureAppointments: true }));
    expect((await summary()).slice(2)).toEqual(['participation 2 REMOVED BOOKED -']);
    expect((await recorded()).at(-1)!.event).toMatchObject({
      customerId,
      appointmentId: await idOf('appointment', appointmentReference),
    });
  });
});

describe('a booking', () => {
  it('makes an appointment, takes it along when it moves, and ends it when it leaves', async () => {
    const timeslot = await createTimeslot(calendar);
    const request = newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference));
    await asCrm(() => calendar.bookings.bookSlot(request));
    const place = placeIn(timeslot, '11:30');
    const changed = await asCrm(() =>
      calendar.bookings.changeBooking({
        ...owned,
        participationReference: request.reference,
        place,
        ignoreNotice: false,
        sendMails: true,
      }),
    );
    await updateAppointment(changed.participation.appointmentReference, { capacity: 9 });
    await update(request.reference, CANCELED);
    expect(await summary()).toEqual([
      'appointment 1 CREATED',
      'participation 1 CREATED - BOOKED',
      'appointment 1 CREATED',
      'participation 2 MOVED BOOKED BOOKED',
      'appointment 2 CANCELLED',
      'appointment 2 UPDATED',
      'participation 3 UPDATED BOOKED CANCELED',
      'appointment 3 CANCELLED',
    ]);
    const all = await recorded();
    const appointmentIds = all.map(({ event }) => event.appointmentId);
    expect(appointmentIds).toEqual([0, 0, 2, 2, 0, 2, 2, 2].map((index) => appointmentIds[index]));
  });

  it('that is held and expires takes its appointment with it', async () => {
    const timeslot = await createTimeslot(calendar);
    await asCrm(() => calendar.bookings.bookSlot(newBooking(placeIn(timeslot, '10:30'), { state: RESERVED })));
    await asCrm(() => late.bookings.bookSlot(newBooking(placeIn(timeslot, '10:30'), { state: RESERVED })));
    expect(await summary()).toEqual([
      'appointment 1 CREATED',
      'participation 1 CREATED - RESERVED',
      'participation 2 REMOVED RESERVED - by service',
      'appointment 2 DELETED by service',
      'appointment 1 CREATED',
      'participation 1 CREATED - RESERVED',
    ]);
  });

  it('that is held and expires ends its appointment before it can be cancelled: then it is unknown, or cancelled once', async () => {
    const cancelLate = (appointmentReference: string) =>
      asCrm(() => late.appointments.cancelAppointment({ ...owned, appointmentReference }));
    const timeslot = await createTimeslot(calendar, { defaultCapacity: 2 });
    const hold = await asCrm(() =>
      calendar.bookings.bookSlot(newBooking(placeIn(timeslot, '10:30'), { state: RESERVED })),
    );
    expect(await refusal(cancelLate(hold.participation.appointmentReference))).toMatchObject({
      code: 'appointment.not_found',
    });
    expect(await summary()).toEqual([
      'appointment 1 CREATED',
      'participation 1 CREATED - RESERVED',
      'participation 2 REMOVED RESERVED - by service',
      'appointment 2 DELETED by service',
    ]);
    // Somebody has been in this one.
    const booking = newBooking(placeIn(timeslot, '11:00'), customerOf(customerReference));
    const { participation } = await asCrm(() => calendar.bookings.bookSlot(booking));
    await asCrm(() => calendar.bookings.bookSlot(newBooking(placeIn(timeslot, '11:00'), { state: RESERVED })));
    await update(booking.reference, CANCELED);
    const cancelled = await cancelLate(participation.appointmentReference);
    expect(readAppointments(cancelled.json)).toMatchObject([
      { state: 'CANCELLED', participations: [{ state: 'CANCELED' }] },
    ]);
    expect((await summary()).slice(7)).toEqual([
      'participation 2 UPDATED BOOKED CANCELED',
      'participation 2 REMOVED RESERVED - by service',
      'appointment 2 CANCELLED by service',
    ]);
  });

  it('ends its appointment when its customer is removed', async () => {
    const customer = await createCustomer(calendar);
    const request = newBooking(placeIn(await createTimeslot(calendar), '10:30'), customerOf(customer));
    await asCrm(() => calendar.bookings.bookSlot(request));
    await calendar.removals.removeCustomer({
      crmId: 'one',
      customerId: await idOf('customer', customer),
      ignoreFutureAppointments: true,
    });
    expect((await summary()).slice(2)).toEqual([
      'participation 2 REMOVED BOOKED - by service',
      'appointment 2 CANCELLED by service',
    ]);
  });
});

it('whatever the tests above did, its events lead, version by version, to what the tables contain', async () => {
  expect(await contradictions()).toEqual([]);
  expect(await wrongSeats()).toEqual([]);
});

it('whatever the tests above did, each kind of event has only fields of its message, with values that it can hold', async () => {
  const rows = await calendar.database.kysely.selectFrom('outbox').select(['subject', 'data']).execute();
  const kinds = new Set<string>();
  for (const { subject, data } of rows) {
    const { encode, decode, toJson, fromJson } = eventOf(subject)!;
    const given = Object.fromEntries(Object.entries(data!).filter(([, value]) => value !== null));
    expect(toJson(decode(encode(fromJson(data!))))).toEqual({ ...toJson(fromJson({})), ...given });
    kinds.add(String(data!['cause'] ?? data!['change']));
  }
  // All that SQL functions record.
  const { UPDATED, MOVED, REMOVED } = ParticipationChangeCause;
  const ofParticipations = [ParticipationChangeCause.CREATED, UPDATED, MOVED, REMOVED];
  const ofAppointments = [AppointmentChange.CREATED, AppointmentChange.CANCELLED, AppointmentChange.DELETED];
  expect([...kinds]).toEqual(expect.arrayContaining([...ofParticipations, ...ofAppointments]));
});

it('SQL functions record a participation with every field of the message', async () => {
  const ids = {
    participationId: randomUUID(),
    appointmentId: randomUUID(),
    providerId: randomUUID(),
    customerId: randomUUID(),
  };
  const message: ParticipationChanged = {
    crmId: 'one',
    ...ids,
    version: 300,
    cause: ParticipationChangeCause.MOVED,
    fromState: RESERVED,
    toState: DELETED,
    notify: true,
    notifyProvider: false,
    decided: true,
    changeId: randomUUID(),
    actor,
    previousMailEventId: randomUUID(),
    neverInvited: true,
    exempt: true,
    ordinal: 301,
    previousAppointmentId: randomUUID(),
    previousOrdinal: 302,
  };
  const row = {
    crm_id: message.crmId,
    id: ids.participationId,
    appointment_id: ids.appointmentId,
    customer_id: ids.customerId,
    state: 'DELETED',
    version: message.version,
    invited: false,
    exempt: true,
  };
  const origin = { hasMail: true, actor, decided: true, changeId: message.changeId };
  const { rows } = await sql<{ data: EventJson }>`
    SELECT participation_changed_data(row, ${ids.providerId}, 'MOVED', 'RESERVED', ${JSON.stringify(origin)}::jsonb, ${message.previousMailEventId},
                                      ${message.ordinal}, ${message.previousAppointmentId}, ${message.previousOrdinal}) AS data
      FROM jsonb_populate_record(NULL::participation, ${JSON.stringify(row)}) AS row`.execute(calendar.database.kysely);
  expect(rows[0]!.data).toEqual(participationChanged.toJson(message));
});
