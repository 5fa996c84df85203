import { type BookSlotRequest, ParticipationState, TimeslotState } from '@scheduling/contracts/calendar/v1';
import { DomainError } from '@scheduling/errors';
import { eventually, isTooSlow, patiently } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  allEnded,
  type Calendar,
  type CalendarUnderTest,
  countWaiting,
  createCustomer,
  freshReference,
  owned,
  startCalendar,
} from './calendar-under-test.ts';
import { createTimeslot, customerOf, newBooking, newTimeslot, placeIn } from './slots-under-test.ts';

let calendar: CalendarUnderTest;
let replicas: Calendar[];
let customerReference: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  calendar = stack.use(await startCalendar());
  // For the late one, reservations of the others have expired.
  const late = stack.use(await calendar.startReplicaAt('181 seconds'));
  replicas = [calendar, stack.use(await calendar.startReplica()), late];
  customerReference = await createCustomer(calendar);
}, 180_000);
afterAll(() => stack.disposeAsync());

const callers = 200;
const rounds = 10;
const clients = 20;
const seconds = Number(process.env['SLOTS_SECONDS'] ?? 3);

describe(`${callers} callers at once`, { timeout: 120_000 }, () => {
  it.each(Array.from({ length: rounds }, (_, index) => (index % 3) ** 2 + 1))(
    'get the %i seats of one slot and no more',
    async (defaultCapacity) => {
      const timeslot = await createTimeslot(calendar, { defaultCapacity });
      const outcomes = await allEnded(
        Array.from({ length: callers }, (_, index) => {
          const request = newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference));
          return patiently(() => outcomeOf(replicas[index % 2]!.bookings.bookSlot(request)));
        }),
      );
      expect(
        Object.fromEntries(
          Map.groupBy(outcomes, String)
            .entries()
            .map(([outcome, { length }]) => [outcome, length]),
        ),
      ).toEqual({
        booked: defaultCapacity,
        'slot.unavailable full': callers - defaultCapacity,
      });
      expect(await appointmentsOf(timeslot.resourceReference)).toEqual([
        { capacity: defaultCapacity, taken: defaultCapacity, seats: defaultCapacity, state: 'ACTIVE' },
      ]);
    },
  );
});

describe('a request that is repeated while the first one waits', () => {
  it('gets the booking that the first one made, of the last seat', async () => {
    const timeslot = await createTimeslot(calendar);
    const request = newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference));
    const answers = await sendWhileLocked(timeslot.reference, ({ bookings }) => bookings.bookSlot(request));
    expect(new Set(answers.map(({ created }) => created))).toEqual(new Set([false, true]));
    expect(answers[0]!.participation).toEqual(answers[1]!.participation);
    expect(await appointmentsOf(timeslot.resourceReference)).toMatchObject([{ taken: 1, seats: 1 }]);
  });

  it('finds the booking where the first one has moved it, to the last seat', async () => {
    const timeslot = await createTimeslot(calendar);
    const request = newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference));
    await calendar.bookings.bookSlot(request);
    const movement = {
      ...owned,
      participationReference: request.reference,
      place: placeIn(timeslot, '11:00'),
      ignoreNotice: false,
      sendMails: true,
    };
    const answers = await sendWhileLocked(timeslot.reference, ({ bookings }) => bookings.changeBooking(movement));
    expect(answers[0]).toEqual(answers[1]);
    expect(answers[0]!.participation).toMatchObject({ reference: request.reference, state: ParticipationState.BOOKED });
    const active = (await appointmentsOf(timeslot.resourceReference)).filter(({ state }) => state === 'ACTIVE');
    expect(active).toEqual([{ capacity: 1, taken: 1, seats: 1, state: 'ACTIVE' }]);
  });

  /** Sends the request to two replicas. Both have begun before either can lock the timeslot. */
  async function sendWhileLocked<Answer>(
    timeslotReference: string,
    send: (replica: Calendar) => Promise<Answer>,
  ): Promise<Answer[]> {
    const answers: Promise<Answer>[] = [];
    await calendar.database.kysely.transaction().execute(async (tx) => {
      await sql`SELECT FROM timeslot WHERE crm_id = ${owned.crmId} AND reference = ${timeslotReference} FOR UPDATE`.execute(
        tx,
      );
      for (const replica of replicas.slice(0, 2)) {
        answers.push(send(replica));
        await eventually(async () => expect(await countWaiting(calendar)).toBe(answers.length));
      }
    });
    return allEnded(answers);
  }
});

describe('a booking that has waited for the lock of', () => {
  it.each([
    ['nothing', { defaultCapacity: 2, defaultAcceptBookings: true }, { capacity: 2, acceptBookings: true }],
    ['more seats', { defaultCapacity: 7 }, { capacity: 7, acceptBookings: true }],
    ['private appointments', { defaultAcceptBookings: false }, { capacity: 2, acceptBookings: false }],
  ])('its timeslot makes an appointment as the timeslot is by then: %s', async (_, change, expected) => {
    const [timeslot, other] = [await createTimeslot(calendar, { defaultCapacity: 2 }), await createTimeslot(calendar)];
    const booking = newBooking(placeIn(other, '10:30'), customerOf(customerReference));
    await calendar.bookings.bookSlot(booking);
    const movement = { ...owned, participationReference: booking.reference, ignoreNotice: false, sendMails: true };
    const answers = await sendWhileUpdating('timeslot', timeslot.reference, change, [
      () => calendar.bookings.bookSlot(newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference))),
      () => calendar.bookings.changeBooking({ ...movement, place: placeIn(timeslot, '11:30') }),
    ]);
    for (const { participation } of answers)
      expect(await getAppointment(participation.appointmentReference)).toMatchObject(expected);
  });

  it('its timeslot is refused if that has no capacity by then, and is made if it has one by then', async () => {
    const [closing, opening] = [
      await createTimeslot(calendar, { defaultCapacity: 2 }),
      await createTimeslot(calendar, { defaultCapacity: 0 }),
    ];
    const book = (timeslot: { reference: string }) => () =>
      outcomeOf(calendar.bookings.bookSlot(newBooking(placeIn(timeslot, '10:30'))));
    expect(await sendWhileUpdating('timeslot', closing.reference, { defaultCapacity: 0 }, [book(closing)])).toEqual([
      'slot.unavailable closed',
    ]);
    expect(await appointmentsOf(closing.resourceReference)).toEqual([]);
    expect(await sendWhileUpdating('timeslot', opening.reference, { defaultCapacity: 3 }, [book(opening)])).toEqual([
      'booked',
    ]);
    expect(await appointmentsOf(opening.resourceReference)).toMatchObject([{ capacity: 3, taken: 1 }]);
  });

  it('the appointment that it leaves takes along what that is by then', async () => {
    const timeslot = await createTimeslot(calendar);
    const booking = newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference));
    const { appointmentReference } = (await calendar.bookings.bookSlot(booking)).participation;
    const movement = {
      ...owned,
      participationReference: booking.reference,
      place: placeIn(timeslot, '11:30', { productReference: undefined }),
      ignoreNotice: false,
      sendMails: true,
    };
    const present = { description: 'Renamed', contactReference: 'somebody@test' };
    const [moved] = await sendWhileUpdating('appointment', appointmentReference, present, [
      () => calendar.bookings.changeBooking(movement),
    ]);
    expect(await getAppointment(moved!.participation.appointmentReference)).toMatchObject(present);
  });

  it('the timeslot that offers an open appointment is refused if that is hidden by then', async () => {
    const timeslot = await createTimeslot(calendar, { defaultCapacity: 2 });
    const { participation } = await calendar.bookings.bookSlot(
      newBooking(placeIn(timeslot, '10:30'), customerOf(customerReference)),
    );
    const join = newBooking({ $case: 'appointmentReference', value: participation.appointmentReference });
    const outcomes = await sendWhileUpdating('timeslot', timeslot.reference, { state: 'CREATED' }, [
      () => outcomeOf(calendar.bookings.bookSlot(join)),
    ]);
    expect(outcomes).toEqual(['slot.unavailable closed']);
  });

  const getAppointment = async (appointmentReference: string) =>
    JSON.parse(
      (await calendar.appointments.getAppointment({ ...owned, appointmentReference })).json.toString(),
    ) as Record<string, unknown>;

  /** Sends them while an update of the row is not committed. All of them wait for it before it is. */
  async function sendWhileUpdating<Answer>(
    table: 'timeslot' | 'appointment',
    reference: string,
    change: object,
    requests: (() => Promise<Answer>)[],
  ): Promise<Answer[]> {
    const answers: Promise<Answer>[] = [];
    await calendar.database.kysely.transaction().execute(async (tx) => {
      await tx
        .selectFrom(table)
        .select('id')
        .where('crmId', '=', owned.crmId)
        .where('reference', '=', reference)
        .forUpdate()
        .executeTakeFirstOrThrow();
      await tx
        .updateTable(table)
        .set(change)
        .where('crmId', '=', owned.crmId)
        .where('reference', '=', reference)
        .execute();
      for (const request of requests) {
        answers.push(request());
        await eventually(async () => expect(await countWaiting(calendar)).toBe(answers.length));
      }
    });
    return allEnded(answers);
  }
});

describe(`${clients} clients for ${seconds} s`, { timeout: (seconds + 60) * 1_000 }, () => {
  it('book, hold, move, leave and let reservations expire while others change the timeslots: nothing overlaps, the seats are those that are taken, and what is made was offered', async () => {
    const resourceReference = freshReference('resource');
    const openings = Array.from({ length: 4 }, (_, index) => ({
      reference: freshReference('timeslot'),
      resourceReference,
      raster: [30, 45, 20, 60][index]!,
      defaultCapacity: (index % 2) + 1,
      start: `2099-06-01T${['10:00', '10:15', '10:00', '09:30'][index]}`,
    }));
    for (const opening of openings) await createTimeslot(calendar, opening);
    let checks = 0;
    const endsAt = performance.now() + seconds * 1_000;
    const outcomes = new Map<string, number>();
    const hasSeen = (outcome: string, least: number): boolean => (outcomes.get(outcome) ?? 0) > least;
    // A busy machine takes longer to get into every situation often enough.
    const hasSeenEnough = (): boolean =>
      hasSeen('booked', 10 * seconds) && hasSeen('slot.unavailable taken', seconds) && moves > seconds && checks > 10;
    const isRunning = (): boolean => performance.now() < endsAt || !hasSeenEnough();
    const count = async (call: Promise<unknown>): Promise<boolean> => {
      const outcome = await outcomeOf(call).catch((error: unknown) => {
        if (isTooSlow(error)) return 'too slow';
        throw error;
      });
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      return outcome === 'booked';
    };
    await allEnded([
      ...Array.from({ length: clients }, (_, index) =>
        playClient(replicas[index % replicas.length]!, openings, isRunning, count),
      ),
      changeTimeslots(calendar, openings, isRunning, count),
      changeOffers(calendar, openings, isRunning, count),
      (async () => {
        for (; isRunning(); checks += 1) expect(await findViolations(resourceReference)).toEqual([]);
      })(),
    ]);
    expect(await findViolations(resourceReference)).toEqual([]);
    const unexpected = [...outcomes.keys()].filter((outcome) => !expectedOutcomes.has(outcome.split(' ')[0]!));
    expect(unexpected).toEqual([]);
    expect(hasSeenEnough()).toBe(true);
  });

  it('cause no deadlock', async () => {
    await stack.disposeAsync();
    expect(await calendar.countDeadlocks()).toBe(0);
  });
});

/** How many bookings were moved. */
let moves = 0;

const expectedOutcomes = new Set([
  'booked',
  'too',
  'slot.unavailable',
  'slot.busy',
  'timeslot.not_found',
  'timeslot.has_appointments',
  'timeslot.reference_taken',
  'participation.not_found',
  'appointment.not_found',
  'participation.move_not_allowed',
]);

type Opening = Pick<
  ReturnType<typeof newTimeslot>,
  'reference' | 'resourceReference' | 'raster' | 'start' | 'defaultCapacity'
>;
type Count = (call: Promise<unknown>) => Promise<boolean>;

/** Books at random, in a timeslot or beside what it has booked last, and moves or leaves what it has booked before. */
async function playClient(
  replica: Calendar,
  openings: Opening[],
  isRunning: () => boolean,
  count: Count,
): Promise<void> {
  const booked: string[] = [];
  let last: string | undefined;
  const book = async (request: BookSlotRequest): Promise<void> => {
    last = (await replica.bookings.bookSlot(request)).participation.appointmentReference;
  };
  while (isRunning()) {
    const person = Math.random() < 0.5 ? customerOf(customerReference) : {};
    const beside: BookSlotRequest['place'] =
      last !== undefined && Math.random() < 0.2 ? { $case: 'appointmentReference', value: last } : undefined;
    const request = newBooking(beside ?? anyPlace(openings), person);
    if (await count(book(request))) booked.push(request.reference);
    const toMove = pick(booked);
    const movement = { ...owned, place: anyPlace(openings), ignoreNotice: false, sendMails: false };
    if (
      toMove !== undefined &&
      (await count(replica.bookings.changeBooking({ ...movement, participationReference: toMove })))
    )
      moves += 1;
    if (booked.length > 2 || Math.random() < 0.3) {
      const participationReference = booked.shift();
      const move = { ...owned, state: ParticipationState.CANCELED, ignoreCapacity: false, sendMails: false };
      if (participationReference !== undefined)
        await count(replica.participations.updateParticipation({ ...move, participationReference }));
    }
  }
}

function anyPlace(openings: Opening[]): ReturnType<typeof placeIn> {
  const opening = pick(openings)!;
  const time = new Date(Date.parse(`${opening.start}Z`) + Math.floor(Math.random() * 4) * opening.raster * 60_000);
  return placeIn(opening, time.toISOString().slice(11, 16));
}

/**
 * What a timeslot offers, one of these at any moment: the capacities that are private are different ones, and without a
 * capacity nothing can be made.
 */
const offersOf = ({ defaultCapacity }: Opening) => [
  { defaultCapacity, defaultAcceptBookings: true },
  { defaultCapacity: defaultCapacity + privateCapacity, defaultAcceptBookings: false },
  { defaultCapacity: 0, defaultAcceptBookings: true },
];
const privateCapacity = 10;

/** Changes what the timeslots offer, all the time. */
async function changeOffers(
  { timeslots }: Calendar,
  openings: Opening[],
  isRunning: () => boolean,
  count: Count,
): Promise<void> {
  while (isRunning()) {
    const opening = pick(openings)!;
    await count(
      timeslots.updateTimeslot({ ...owned, timeslotReference: opening.reference, ...pick(offersOf(opening)) }),
    );
  }
}

/** Hides a timeslot, shows it again, changes its raster, deletes it and creates it again. */
async function changeTimeslots(
  { timeslots }: Calendar,
  openings: Opening[],
  isRunning: () => boolean,
  count: Count,
): Promise<void> {
  while (isRunning()) {
    const opening = pick(openings)!;
    const key = { ...owned, timeslotReference: opening.reference };
    const change = pick([
      { state: TimeslotState.CREATED },
      { state: TimeslotState.BOOKABLE },
      { raster: 15 },
      { raster: opening.raster },
      undefined,
    ]);
    if (change !== undefined) await count(timeslots.updateTimeslot({ ...key, ...change }));
    else if (await count(timeslots.deleteTimeslot(key)))
      await count(timeslots.createTimeslots({ ...owned, timeslots: [newTimeslot(opening)] }));
  }
}

function pick<T>(values: T[]): T | undefined {
  return values[Math.floor(Math.random() * values.length)];
}

/** `booked` for every success. */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'booked';
  } catch (error) {
    if (!(error instanceof DomainError) || isTooSlow(error)) throw error;
    return [error.code, error.reason].filter((part) => part !== undefined).join(' ');
  }
}

/**
 * Pairs of active appointments that overlap, and appointments whose counter is not the number of those who have a seat,
 * or that no timeslot has ever offered, as of one moment.
 */
async function findViolations(resourceReference: string): Promise<unknown[]> {
  const { rows } = await sql`
    WITH place AS (
      SELECT *, (SELECT count(*) FROM participation WHERE participation.crm_id = appointment.crm_id AND appointment_id = appointment.id AND participation.state IN ('BOOKED', 'RESERVED')) AS seats
        FROM appointment WHERE crm_id = ${owned.crmId} AND resource_reference = ${resourceReference})
    SELECT 'overlap' AS violation, one.id::text || ' ' || other.id AS places FROM place AS one JOIN place AS other ON one.id < other.id
     WHERE one.state = 'ACTIVE' AND other.state = 'ACTIVE' AND one.starts_at < other.ends_at AND other.starts_at < one.ends_at
     UNION ALL
    SELECT 'seats', format('%s: %s taken, %s seats, capacity %s', id, taken, seats, capacity) FROM place WHERE taken <> seats OR taken > capacity
     UNION ALL
    SELECT 'offer', format('%s: capacity %s, accepts %s', id, capacity, accept_bookings) FROM place WHERE capacity = 0 OR accept_bookings = (capacity > ${privateCapacity})`.execute(
    calendar.database.kysely,
  );
  return rows;
}

async function appointmentsOf(resourceReference: string): Promise<{ state: string }[]> {
  const { rows } = await sql<{ state: string }>`
    SELECT capacity, taken, (SELECT count(*) FROM participation WHERE participation.crm_id = appointment.crm_id AND appointment_id = appointment.id) AS seats, state
      FROM appointment WHERE crm_id = ${owned.crmId} AND resource_reference = ${resourceReference}`.execute(
    calendar.database.kysely,
  );
  return rows;
}
