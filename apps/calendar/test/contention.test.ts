import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { DomainError } from '@scheduling/errors';
import { translatePostgresError } from '@scheduling/postgres';
import { eventually, isTooSlow, patiently } from '@scheduling/testing';
import fc from 'fast-check';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  allEnded,
  type Calendar,
  type CalendarUnderTest,
  countWaiting,
  createAppointment,
  createCustomer,
  listAppointments,
  newParticipation,
  owned,
  startCalendar,
} from './calendar-under-test.ts';

let calendar: CalendarUnderTest;
let replicas: Calendar[];
let customerReference: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  calendar = stack.use(await startCalendar());
  replicas = [calendar, stack.use(await calendar.startReplica())];
  customerReference = await createCustomer(calendar);
}, 180_000);
afterAll(() => stack.disposeAsync());

const callers = 200;
const capacities = [1, 5, 50];
const firstSeed = Number(process.env['CONTENTION_SEED'] ?? Math.floor(Math.random() * 1_000_000));
/** One seed is 600 random participations, and every run has another: CONTENTION_SEEDS sets how many a run plays. */
const seeds = Array.from({ length: Number(process.env['CONTENTION_SEEDS'] ?? 1) }, (_, index) => firstSeed + index);

/**
 * What one caller knows about its participation: the last state it received. Unknown once a call has timed out: it may
 * still be executed at any time.
 */
interface Belief {
  appointmentReference: string;
  reference: string;
  state: keyof typeof ParticipationState | 'GONE' | 'UNKNOWN';
}

/** What a caller does with one participation. */
const plan = fc.record({
  appointment: fc.nat(capacities.length - 1),
  state: fc.constantFrom('BOOKED', 'RESERVED', 'REQUESTED'),
  ignoreCapacity: fc.nat(19).map((number) => number === 0),
  moves: fc.tuple(
    fc.constantFrom('BOOKED', 'CANCELED', 'STAY', 'END'),
    fc.constantFrom('BOOKED', 'CANCELED', 'DELETED', 'STAY'),
  ),
  repeats: fc.nat(9).map((number) => number < 3),
});
const threePlans = fc.array(plan, { minLength: 3, maxLength: 3 });
type Plan = typeof plan extends fc.Arbitrary<infer Value> ? Value : never;

/** What takes the last seat. */
const waysToTakeIt = ['a new booking', 'a confirmation'] as const;

describe('the last seat', () => {
  beforeAll(async () => {
    // Whoever writes a participation waits in the middle of its transaction, until the test lets it go on.
    await sql`
      CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN new; END'`.execute(
      calendar.database.kysely,
    );
    await sql`CREATE TRIGGER wait_for_the_test BEFORE INSERT OR UPDATE ON participation FOR EACH ROW EXECUTE FUNCTION wait_for_the_test()`.execute(
      calendar.database.kysely,
    );
  });
  afterAll(() => sql`DROP FUNCTION wait_for_the_test CASCADE`.execute(calendar.database.kysely));

  it.each(waysToTakeIt.flatMap((first) => waysToTakeIt.map((second) => [first, second] as const)))(
    'is taken by %s, and not by %s that begins in the meantime',
    // Whoever is too slow has lost its place behind the lock, so the whole is done again.
    (first, second) => patiently(() => expectFirstToGetSeat(first, second)),
  );

  async function expectFirstToGetSeat(...ways: (typeof waysToTakeIt)[number][]): Promise<void> {
    const appointmentReference = await createAppointment(calendar, { capacity: 1 });
    const takers = await Promise.all(ways.map((way, index) => prepare(way, index, appointmentReference)));
    const outcomes: Promise<string>[] = [];
    await calendar.database.kysely.transaction().execute(async (tx) => {
      await sql`SELECT pg_advisory_xact_lock(1)`.execute(tx);
      for (const take of takers) {
        outcomes.push(take());
        const waiting = eventually(async () => expect(await countWaiting(calendar)).toBe(outcomes.length));
        await Promise.race([waiting, Promise.all(outcomes)]);
      }
    });
    expect(await allEnded(outcomes)).toEqual(['ok', 'participation.capacity_exhausted']);
    await expectTrueSeats([appointmentReference]);
  }

  async function prepare(
    way: (typeof waysToTakeIt)[number],
    index: number,
    appointmentReference: string,
  ): Promise<() => Promise<string>> {
    const isNew = way === 'a new booking';
    const request = newParticipation(
      { appointmentReference, customerReference },
      { state: isNew ? ParticipationState.BOOKED : ParticipationState.REQUESTED },
    );
    if (isNew) return () => create(index, request);
    expect(await create(index, request)).toBe('ok');
    return () => update(index, request.reference, 'BOOKED');
  }
});

describe(`${callers} callers at once`, { timeout: 120_000 }, () => {
  it.each(capacities)('get the %i seats of an appointment and no more', async (capacity) => {
    const appointmentReference = await createAppointment(calendar, { capacity });
    const requests = Array.from({ length: callers }, () =>
      newParticipation({ appointmentReference, customerReference }),
    );
    const answers = await allEnded(requests.map((request, index) => patiently(() => create(index, request))));
    expect(answers.filter((answer) => answer === 'ok')).toHaveLength(capacity);
    expect(answers.filter((answer) => answer === 'participation.capacity_exhausted')).toHaveLength(callers - capacity);
    await expectTrueSeats([appointmentReference]);
  });

  it.each(capacities)(
    'with requested participations get the %i seats on confirmation and no more',
    async (capacity) => {
      const appointmentReference = await createAppointment(calendar, { capacity });
      const requests = Array.from({ length: callers }, () =>
        newParticipation({ appointmentReference, customerReference }, { state: ParticipationState.REQUESTED }),
      );
      await allEnded(requests.map((request, index) => patiently(() => create(index, request))));
      const answers = await allEnded(
        requests.map((request, index) => patiently(() => update(index, request.reference, 'BOOKED'))),
      );
      expect(answers.filter((answer) => answer === 'ok')).toHaveLength(capacity);
      await expectTrueSeats([appointmentReference]);
    },
  );

  it.each(seeds)(
    'book, reserve, request, confirm, cancel and let reservations expire at random: seed %i',
    async (seed) => {
      const appointments = await Promise.all(capacities.map((capacity) => createAppointment(calendar, { capacity })));
      const beliefs = await allEnded(
        fc
          .sample(threePlans, { seed, numRuns: callers, unbiased: true })
          .map((plans, index) => playCaller(index, appointments, plans)),
      );
      await expectTrueSeats(appointments);
      await expectBeliefs(beliefs.flat());
    },
  );

  it('cause no deadlock', async () => {
    await stack.disposeAsync();
    expect(await calendar.countDeadlocks()).toBe(0);
  });
});

/** Three participations one after the other, each moved several times. */
async function playCaller(index: number, appointments: string[], plans: Plan[]): Promise<Belief[]> {
  const beliefs: Belief[] = [];
  for (const plan of plans) {
    const request = newParticipation(
      { appointmentReference: appointments[plan.appointment]!, customerReference },
      { state: ParticipationState[plan.state], ignoreCapacity: plan.ignoreCapacity },
    );
    const belief: Belief = {
      appointmentReference: request.appointmentReference,
      reference: request.reference,
      state: 'GONE',
    };
    beliefs.push(belief);
    const created = await outcomeOrUnknown(create(index, request));
    if (created === 'unknown') belief.state = 'UNKNOWN';
    if (created !== 'ok') continue;
    belief.state = plan.state;
    for (const to of plan.moves) {
      if (to === 'STAY') continue;
      if (to === 'END') {
        if (await patiently(() => endReservation(request.reference))) belief.state = 'GONE';
        continue;
      }
      const moved = await outcomeOrUnknown(update(index, request.reference, to));
      if (moved === 'ok') belief.state = to;
      if (moved !== 'unknown') continue;
      belief.state = 'UNKNOWN';
      break;
    }
    // The same caller repeats its request, as after a lost answer.
    if (belief.state === 'BOOKED' && plan.repeats)
      await outcomeOrUnknown(create(index, { ...request, state: ParticipationState.BOOKED }));
  }
  return beliefs;
}

/** Lets one reservation expire. */
async function endReservation(reference: string): Promise<boolean> {
  const { numUpdatedRows } = await calendar.database.kysely
    .updateTable('participation')
    .set({ reservedUntil: sql<Date>`scheduling_now()` })
    .where('crmId', '=', owned.crmId)
    .where('reference', '=', reference)
    .where('state', '=', 'RESERVED')
    .executeTakeFirst()
    .catch((error: unknown) => {
      throw translatePostgresError(error);
    });
  return numUpdatedRows > 0n;
}

function create(
  index: number,
  request: Parameters<Calendar['participations']['createParticipation']>[0],
): Promise<string> {
  return outcomeOf(replicas[index % replicas.length]!.participations.createParticipation(request));
}

function update(
  index: number,
  participationReference: string,
  state: 'BOOKED' | 'CANCELED' | 'DELETED',
): Promise<string> {
  const request = {
    ...owned,
    participationReference,
    state: ParticipationState[state],
    ignoreCapacity: false,
    sendMails: true,
  };
  return outcomeOf(replicas[index % replicas.length]!.participations.updateParticipation(request));
}

const expectedRefusals = new Set([
  'participation.capacity_exhausted',
  'participation.move_not_allowed',
  'participation.not_found',
]);

/** "ok", or the error code if the rules provide for it. Rejects with everything else. */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'ok';
  } catch (error) {
    if (error instanceof DomainError && expectedRefusals.has(error.code)) return error.code;
    throw error;
  }
}

/** Not retried: a seat may be freed in between, which the first call then takes although the second was rejected. */
async function outcomeOrUnknown(call: Promise<string>): Promise<string> {
  return call.catch((error: unknown) => {
    if (isTooSlow(error)) return 'unknown';
    throw error;
  });
}

async function expectTrueSeats(appointments: string[]): Promise<void> {
  const { rows } = await sql<{
    reference: string;
    taken: number;
    capacity: number;
    active: number;
    deliberate: number;
  }>`
    SELECT a.reference, a.taken, a.capacity,
           count(p.id) FILTER (WHERE p.state IN ('BOOKED', 'RESERVED')) AS active,
           count(p.id) FILTER (WHERE p.state IN ('BOOKED', 'RESERVED') AND p.exempt) AS deliberate
      FROM appointment a LEFT JOIN participation p ON p.crm_id = a.crm_id AND p.appointment_id = a.id
     WHERE a.crm_id = ${owned.crmId} AND a.reference = ANY(${appointments})
     GROUP BY a.crm_id, a.id`.execute(calendar.database.kysely);
  expect(rows).toHaveLength(appointments.length);
  for (const row of rows) {
    expect(row.taken, `the counter of ${row.reference}`).toBe(row.active);
    expect(row.active, `the seats of ${row.reference}`).toBeLessThanOrEqual(row.capacity + row.deliberate);
  }
}

async function expectBeliefs(beliefs: Belief[]): Promise<void> {
  const shown = new Map<string, string>();
  const appointments = await patiently(() => listAppointments(calendar, { ...owned, includeArchived: true }));
  for (const { reference, state } of appointments.flatMap(({ participations }) => participations))
    shown.set(reference, state);
  const told = beliefs.filter((belief) => belief.state !== 'UNKNOWN');
  expect(told).not.toEqual([]);
  for (const belief of told) expect(shown.get(belief.reference) ?? 'GONE', belief.reference).toBe(belief.state);
}
