import {
  type CreateAppointmentRequest,
  type CreateParticipationRequest,
  type CreateSeriesRequest,
  type CreateTimeslotsRequest,
  ParticipationState,
  TimeslotState,
  type UpdateParticipationRequest,
} from '@scheduling/contracts/calendar/v1';
import { eventually, repeatable, testRepeatableOperations, withKey } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  eventsOf,
  freshReference,
  newAppointment,
  newParticipation,
  owned,
  readAppointments,
  refusal,
  seatsOf,
  startCalendar,
} from './calendar-under-test.ts';

const { BOOKED, CANCELED, REQUESTED, RESERVED } = ParticipationState;
let calendar: CalendarUnderTest;

beforeAll(async () => {
  calendar = await startCalendar();
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

const ownedBy = (crmId: string) => ({ crmId, providerReference: 'p1' });

/** Without a reference: only the key distinguishes a repeated request from a new one. */
function newTimeslots(crmId: string): CreateTimeslotsRequest {
  const window = {
    resourceReference: freshReference('resource'),
    end: '2099-06-01T12:00',
    raster: 30,
    defaultCapacity: 2,
    defaultAcceptBookings: true,
  };
  const timeslot = { ...window, state: TimeslotState.BOOKABLE };
  return { ...ownedBy(crmId), timeslots: [{ ...timeslot, start: '2099-06-01T10:00' }, timeslot] };
}

const timeslots = repeatable<CreateTimeslotsRequest>({
  name: 'create timeslots',
  prepare: async (crmId) => newTimeslots(crmId),
  change: (request) => ({ ...request, timeslots: request.timeslots.slice(1) }),
  send: (request) => calendar.timeslots.createTimeslots(request),
  prepareRefused: async (crmId) => {
    const [first, second] = newTimeslots(crmId).timeslots;
    const reference = freshReference('timeslot');
    await calendar.timeslots.createTimeslots({ ...ownedBy(crmId), timeslots: [{ ...first!, reference }] });
    return {
      request: { ...ownedBy(crmId), timeslots: [{ ...second!, reference }] },
      code: 'timeslot.reference_taken',
      repair: () => calendar.timeslots.deleteTimeslot({ ...ownedBy(crmId), timeslotReference: reference }),
    };
  },
});

const participant = () => ({
  reference: freshReference('embedded'),
  name: 'Ada',
  email: 'ada@example.com',
  state: BOOKED,
});

const appointments = repeatable<CreateAppointmentRequest>({
  name: 'create appointment',
  prepare: async (crmId) => newAppointment({ ...ownedBy(crmId), participations: [participant()] }),
  change: (request) => ({ ...request, capacity: 7 }),
  send: (request) => calendar.appointments.createAppointment(request),
  prepareRefused: async (crmId) => {
    const participations = [participant()];
    const appointmentReference = await createAppointment(calendar, { ...ownedBy(crmId), participations });
    return {
      request: newAppointment({ ...ownedBy(crmId), participations }),
      code: 'participation.reference_taken',
      repair: () =>
        calendar.appointments.deleteAppointments({
          ...ownedBy(crmId),
          target: { $case: 'appointmentReference', value: appointmentReference },
        }),
    };
  },
});

function newSeries(crmId: string): CreateSeriesRequest {
  return {
    ...ownedBy(crmId),
    spanFrom: '2099-06-01T09:00',
    spanTo: '2099-06-01T12:00',
    raster: 60,
    weekdays: [],
    capacity: 3,
    acceptBookings: true,
    resourceReference: 'resource@test',
    productReference: freshReference('product'),
  };
}

const series = repeatable<CreateSeriesRequest>({
  name: 'create series',
  prepare: async (crmId) => newSeries(crmId),
  change: (request) => ({ ...request, raster: 30 }),
  send: (request) => calendar.appointments.createSeries(request),
  prepareRefused: async (crmId) => {
    const reference = freshReference('provider');
    const provider = { crmId, reference, ownerReference: 'owner@crm', accountReference: 'account@crm', name: 'Name' };
    return {
      request: { ...newSeries(crmId), providerReference: reference },
      code: 'provider.not_found',
      repair: () => calendar.identity.createProvider(provider),
    };
  },
});

async function newBooking(
  crmId: string,
  overrides: Partial<CreateParticipationRequest> = {},
): Promise<CreateParticipationRequest> {
  const appointmentReference = await createAppointment(calendar, ownedBy(crmId));
  const customerReference = await createCustomer(calendar, ownedBy(crmId));
  return newParticipation(
    { appointmentReference, customerReference },
    { ...ownedBy(crmId), message: 'See you', ...overrides },
  );
}

const participations = repeatable<CreateParticipationRequest>({
  name: 'create participation',
  // Without the key, a repeated request would be rejected.
  prepare: (crmId) => newBooking(crmId, { onDuplicateRaise: true }),
  change: (request) => ({ ...request, sendMails: false }),
  send: (request) => calendar.participations.createParticipation(request),
  prepareRefused: async (crmId) => {
    const [first, second] = [await newBooking(crmId), await newBooking(crmId)];
    await calendar.participations.createParticipation(first);
    return {
      request: { ...second, appointmentReference: first.appointmentReference },
      code: 'participation.capacity_exhausted',
      repair: () => cancel(first),
    };
  },
});

const cancel = ({ crmId, reference: participationReference }: CreateParticipationRequest) =>
  calendar.participations.updateParticipation({
    ...ownedBy(crmId),
    participationReference,
    state: CANCELED,
    ignoreCapacity: false,
    sendMails: true,
  });

async function newMove(crmId: string, appointmentReference?: string): Promise<UpdateParticipationRequest> {
  const request = await newBooking(crmId, {
    state: REQUESTED,
    ...(appointmentReference !== undefined && { appointmentReference }),
  });
  await calendar.participations.createParticipation(request);
  return {
    ...ownedBy(crmId),
    participationReference: request.reference,
    state: BOOKED,
    message: 'Yes',
    ignoreCapacity: false,
    sendMails: true,
  };
}

const moves = repeatable<UpdateParticipationRequest>({
  name: 'update participation',
  prepare: (crmId) => newMove(crmId),
  change: (request) => ({ ...request, state: CANCELED }),
  send: (request) => calendar.participations.updateParticipation(request),
  prepareRefused: async (crmId) => {
    const booking = await newBooking(crmId);
    await calendar.participations.createParticipation(booking);
    return {
      request: await newMove(crmId, booking.appointmentReference),
      code: 'participation.capacity_exhausted',
      repair: () => cancel(booking),
    };
  },
});

testRepeatableOperations([timeslots, appointments, series, participations, moves], () => ({
  pool: calendar.database.pool,
  tables: ['timeslot', 'appointment', 'participation', 'participation_message', 'outbox'],
  crmIds: ['one', 'two'],
}));

describe('a repeated booking', () => {
  it('returns the first one, with its status and one event, even where it would be rejected on its own', async () => {
    const [key, request] = [randomUUID(), await newBooking('one', { onDuplicateRaise: true })];
    const book = () => calendar.participations.createParticipation(request);
    const first = await withKey(key, book);
    expect(await withKey(key, book)).toEqual(first);
    expect(first).toMatchObject({ created: true });
    expect(await eventsOf(calendar, request.reference)).toHaveLength(1);
    expect(await seatsOf(calendar, request.appointmentReference)).toBe(1);
    expect(await refusal(book())).toMatchObject({ code: 'participation.reference_taken' });
  });

  it('that moved an existing participation does not move it again', async () => {
    const request = await newBooking('one', { state: REQUESTED });
    await calendar.participations.createParticipation(request);
    const key = randomUUID();
    const book = () => withKey(key, () => calendar.participations.createParticipation({ ...request, state: BOOKED }));
    expect(await book()).toMatchObject({ created: false, participation: { state: BOOKED } });
    await cancel(request);
    expect(await book()).toMatchObject({ created: false, participation: { state: CANCELED } });
    expect(await eventsOf(calendar, request.reference)).toHaveLength(3);
  });

  it('whose reservation has expired is told so, and reserves nothing again', async () => {
    const [key, request] = [randomUUID(), await newBooking('one', { state: RESERVED })];
    const reserve = () => withKey(key, () => calendar.participations.createParticipation(request));
    await reserve();
    await calendar.database.kysely
      .updateTable('participation')
      .set({ reservedUntil: new Date(0) })
      .where('reference', '=', request.reference)
      .execute();
    expect(await refusal(reserve())).toMatchObject({ category: 'not_found', code: 'participation.not_found' });
    // Its sweeper runs immediately; the others are idle until the reservation would have expired.
    await using _sweeping = await calendar.startReplica();
    await eventually(async () => expect(await seatsOf(calendar, request.appointmentReference)).toBe(0));
  });

  it('succeeds after a lost answer: the client timed out and retries until it is answered', async () => {
    const [key, request] = [randomUUID(), await newBooking('one', { onDuplicateRaise: true })];
    const book = () => withKey(key, () => calendar.participations.createParticipation(request));
    // Either of the two may be told to wait.
    const lost = Promise.allSettled([book()]);
    const answer = await eventually(book);
    expect(answer).toMatchObject({ created: true });
    await lost;
    expect(await eventsOf(calendar, request.reference)).toHaveLength(1);
  });
});

describe('what was deleted before the request is repeated', () => {
  it('is omitted from an answer with several items', async () => {
    const [slotsKey, seriesKey] = [randomUUID(), randomUUID()];
    const [slots, plan] = [newTimeslots('one'), newSeries('one')];
    const createSlots = () => withKey(slotsKey, () => calendar.timeslots.createTimeslots(slots));
    const [first, second] = (await createSlots()).timeslots;
    await calendar.timeslots.deleteTimeslot({ ...owned, timeslotReference: first!.reference });
    expect(await createSlots()).toEqual({ timeslots: [second], created: true });
    await calendar.timeslots.deleteTimeslot({ ...owned, timeslotReference: second!.reference });
    expect(await refusal(createSlots())).toMatchObject({ category: 'not_found', code: 'timeslot.not_found' });

    const createSeries = () => withKey(seriesKey, () => calendar.appointments.createSeries(plan));
    const { seriesId, json } = await createSeries();
    const all = readAppointments(json);
    await calendar.appointments.deleteAppointments({
      ...owned,
      target: { $case: 'appointmentReference', value: all[1]!.reference },
    });
    expect(readAppointments((await createSeries()).json)).toEqual(all.toSpliced(1, 1));
    await calendar.appointments.deleteAppointments({ ...owned, target: { $case: 'seriesId', value: seriesId } });
    expect(await refusal(createSeries())).toMatchObject({ category: 'not_found', code: 'series.not_found' });
  });

  it('is not created again', async () => {
    const [key, request] = [randomUUID(), newAppointment()];
    const create = () => withKey(key, () => calendar.appointments.createAppointment(request));
    await create();
    await calendar.appointments.deleteAppointments({
      ...owned,
      target: { $case: 'appointmentReference', value: request.reference },
    });
    expect(await refusal(create())).toMatchObject({ category: 'not_found', code: 'appointment.not_found' });
  });

  it('is erased with the person: no key of an erased customer’s bookings remains', async () => {
    const request = await newBooking('one');
    const other = await newBooking('one');
    await withKey('key of the erased', () => calendar.participations.createParticipation(request));
    await withKey('key of the other', () => calendar.participations.createParticipation(other));
    const find = (reference: string) =>
      calendar.database.kysely
        .selectFrom('participation')
        .select(['id', 'customerId'])
        .where('reference', '=', reference)
        .executeTakeFirstOrThrow();
    const [erased, staying] = [await find(request.reference), await find(other.reference)];
    await calendar.removals.removeCustomer({
      crmId: 'one',
      customerId: erased.customerId!,
      ignoreFutureAppointments: true,
    });
    const keys = await calendar.database.kysely.selectFrom('idempotencyKey').select('resourceIds').execute();
    const kept = keys.flatMap(({ resourceIds: ids }) => ids);
    expect(kept).toContain(staying.id);
    expect(kept).not.toContain(erased.id);
  });
});
