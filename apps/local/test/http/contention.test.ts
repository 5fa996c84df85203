import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, path, type Problem } from './client.ts';
import { createAppointment, createCrm, createPractice, type Practice, type TestCrm, unique } from './crm.ts';
import { query } from './databases.ts';

const clients = 200;
const capacities = [1, 5, 50];
const firstSeed = Number(process.env['CONTENTION_SEED'] ?? Math.floor(Math.random() * 1_000_000));
const seeds = Array.from({ length: Number(process.env['CONTENTION_SEEDS'] ?? 3) }, (_, index) => firstSeed + index);

type State = 'RESERVED' | 'REQUESTED' | 'BOOKED' | 'CANCELED' | 'DELETED';

/** What one client was told last about a participation; GONE: it was refused. */
interface Belief {
  appointmentReference: string;
  reference: string;
  state: State | 'GONE';
  deliberate: boolean;
}

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

// Every call has 2 s: a machine that stalls for so long is not the service's fault, so each is tried once more.
describe(`${clients} clients at once`, { timeout: 120_000, retry: 1 }, () => {
  it.each(capacities.flatMap((capacity) => (['BOOKED', 'RESERVED'] as const).map((state) => [capacity, state] as const)))(
    'get the %i seats of an appointment by creating %s, and no more',
    async (capacity, state) => {
      const appointmentReference = await createAppointment(practice, { capacity });
      const outcomes = await Promise.all(Array.from({ length: clients }, () => create(newBelief(appointmentReference), state)));
      expect(outcomes.filter((outcome) => outcome === 'ok')).toHaveLength(capacity);
      expect(outcomes.filter((outcome) => outcome === 'participation.capacity_exhausted')).toHaveLength(clients - capacity);
      await expectTrueSeats([appointmentReference], []);
    },
  );

  it.each(capacities)('that were waiting get the %i seats by being confirmed, and no more', async (capacity) => {
    const appointmentReference = await createAppointment(practice, { capacity });
    const beliefs = Array.from({ length: clients }, () => newBelief(appointmentReference));
    await Promise.all(beliefs.map((belief) => create(belief, 'REQUESTED')));
    const outcomes = await Promise.all(beliefs.map((belief) => move(belief, 'BOOKED')));
    expect(outcomes.filter((outcome) => outcome === 'ok')).toHaveLength(capacity);
    await expectTrueSeats([appointmentReference], beliefs);
  });

  it.each(seeds)('book, reserve, request, confirm, cancel and book again at random: seed %i', async (seed) => {
    const appointments = await Promise.all(capacities.map((capacity) => createAppointment(practice, { capacity })));
    const beliefs = await Promise.all(Array.from({ length: clients }, (_, index) => playClient(appointments, randomOf(seed * clients + index))));
    await expectTrueSeats(appointments, beliefs.flat());
  });

  it('that repeat one request make one participation', async () => {
    const appointmentReference = await createAppointment(practice, { capacity: 1 });
    const belief = newBelief(appointmentReference);
    const answers = await Promise.all(Array.from({ length: clients }, () => send(belief, 'BOOKED')));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(clients - 1);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    await expectTrueSeats([appointmentReference], [{ ...belief, state: 'BOOKED' }]);
  });

  it('leave no deadlock behind', async () => {
    const [row] = await query<{ deadlocks: string }>('calendar', 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()');
    expect(Number(row!.deadlocks)).toBe(0);
  });
});

/** Two participations one after the other, each moved about; what was cancelled is booked again under another reference. */
async function playClient(appointments: string[], random: () => number): Promise<Belief[]> {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const beliefs: Belief[] = [];
  for (let round = 0; round < 2; round += 1) {
    const belief = newBelief(pick(appointments), random() < 0.05);
    beliefs.push(belief);
    if ((await create(belief, pick(['BOOKED', 'BOOKED', 'RESERVED', 'REQUESTED'] as const))) !== 'ok') continue;
    await move(belief, pick(['BOOKED', 'CANCELED', 'DELETED'] as const));
    if (belief.state !== 'CANCELED') continue;
    const again = newBelief(belief.appointmentReference);
    beliefs.push(again);
    await create(again, 'BOOKED');
  }
  return beliefs;
}

function newBelief(appointmentReference: string, deliberate = false): Belief {
  return { appointmentReference, reference: `${unique('p')}@test`, state: 'GONE', deliberate };
}

async function create(belief: Belief, state: State): Promise<string> {
  const outcome = outcomeOf(await send(belief, state));
  if (outcome === 'ok') belief.state = state;
  return outcome;
}

function send({ appointmentReference, reference, deliberate }: Belief, state: State): Promise<Answer<Problem>> {
  const body = { reference, appointmentReference, customerReference: practice.customer, state };
  return crm.post<Problem>(`${practice.at}/participations`, body, { query: { sendMails: false, ignoreCapacity: deliberate } });
}

async function move(belief: Belief, state: State): Promise<string> {
  const outcome = outcomeOf(await crm.post<Problem>(practice.at + path`/participations/${belief.reference}`, { state }, { query: { sendMails: false } }));
  if (outcome === 'ok') belief.state = state;
  return outcome;
}

const expectedRefusals = ['participation.capacity_exhausted', 'participation.move_not_allowed'];

/** "ok", or the code of a refusal that the rules know. Everything else, such as a 503, fails the test. */
function outcomeOf({ status, text, body }: Answer<Problem>): string {
  if (status === 200 || status === 201) return 'ok';
  expect(status, text).toBe(409);
  expect(expectedRefusals, text).toContain(body.code);
  return body.code;
}

/** The counter equals the rows, there are no more than there is room for, and every participation is what its client was told last. */
async function expectTrueSeats(appointments: string[], beliefs: Belief[]): Promise<void> {
  const seats = await query<{ reference: string; capacity: string; taken: string; active: string; deliberate: string }>(
    'calendar',
    `SELECT a.reference, a.capacity, a.taken,
            count(p.id) FILTER (WHERE p.state IN ('BOOKED', 'RESERVED')) AS active,
            count(p.id) FILTER (WHERE p.state IN ('BOOKED', 'RESERVED') AND p.exempt) AS deliberate
       FROM appointment a LEFT JOIN participation p ON p.crm_id = a.crm_id AND p.appointment_id = a.id
      WHERE a.crm_id = $1 AND a.reference = ANY ($2)
      GROUP BY a.crm_id, a.id`,
    [crm.crmId, appointments],
  );
  expect(seats).toHaveLength(appointments.length);
  for (const { reference, capacity, taken, active, deliberate } of seats) {
    expect(taken, `the counter of ${reference}`).toBe(active);
    expect(Number(active), `the seats of ${reference}`).toBeLessThanOrEqual(Number(capacity) + Number(deliberate));
  }
  const { body } = await crm.get<{ participations: { reference: string; state: string }[] }[]>(`${practice.at}/appointments`);
  const shown = new Map(body.flatMap(({ participations }) => participations.map(({ reference, state }) => [reference, state])));
  for (const { reference, state } of beliefs) expect(shown.get(reference) ?? 'GONE', reference).toBe(state);
}

/** mulberry32: small, and the same numbers for the same seed everywhere. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
