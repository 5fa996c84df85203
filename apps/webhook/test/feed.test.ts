import { connectBroker } from '@scheduling/events';
import { createDatabase, type Database } from '@scheduling/postgres';
import { createMigratedDatabase, eventually, longTimeout, startTestNats, testLogger } from '@scheduling/testing';
import { createRandom } from '@scheduling/testing/random';
import fc from 'fast-check';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateWebhookDatabase } from '../src/db/migrate.ts';
import type { WebhookSchema } from '../src/db/schema.ts';
import { type IncomingEvent, recordEvents } from '../src/feed/record-events.ts';
import { type Gap, sequenceEvents } from '../src/feed/sequence-events.ts';
import { type Feed, startFeed } from '../src/feed/start-feed.ts';

const logger = testLogger('webhook');
let database: Database<WebhookSchema>;

beforeAll(async () => {
  const url = await createMigratedDatabase('webhook', migrateWebhookDatabase);
  database = createDatabase({ url, applicationName: 'test', logger, ...longTimeout });
});

afterAll(() => database[Symbol.asyncDispose]());

interface Arrival {
  crmId: string;
  id: string;
  subjectId: string;
  version: number;
  appointmentId?: string;
  customerId?: string;
  /** The places among the events about its appointment, and about the one that it left. */
  ordinal?: number;
  previousAppointmentId?: string;
  previousOrdinal?: number;
}

let ids = 0;

/** Ids of one moment that ascend from one call to the next. */
function newId(): string {
  ids += 1;
  return `0197c4ce-5a3e-7000-8000-${ids.toString(16).padStart(12, '0')}`;
}

function arrival(crmId: string, subjectId: string, version: number, more: Partial<Arrival> = {}): Arrival {
  return { crmId, id: newId(), subjectId, version, ...more };
}

const ofAny = {
  type: 'participation.changed',
  providerId: null,
  appointmentId: null,
  customerId: null,
  state: null,
  previousState: null,
  capacity: null,
  exempt: null,
  cause: null,
  actor: 'service',
  ordinal: null,
  previousAppointmentId: null,
  previousOrdinal: null,
};

const factOf = (each: Arrival): IncomingEvent => ({ ...ofAny, ...each });

/** They wait for their places, whether or not they have to. */
async function arrive(...arrivals: Arrival[]): Promise<void> {
  const facts = arrivals.map(factOf);
  if (facts.length > 0) await database.kysely.insertInto('incomingEvent').values(facts).execute();
}

/** Those that do not have to wait get their places. */
function record(...arrivals: Arrival[]): ReturnType<typeof recordEvents> {
  return recordEvents(database, arrivals.map(factOf), 3_600_000);
}

function sequence(request: Partial<Parameters<typeof sequenceEvents>[1]> = {}): Promise<number> {
  return sequenceEvents(database, { limit: 500, waitSeconds: 3_600, ...request });
}

/** Until nothing is left but what waits. */
async function sequenceAll(request: Parameters<typeof sequence>[0] = {}): Promise<void> {
  while ((await sequence(request)) > 0);
}

function readAfter(crmId: string, position: number) {
  return database.kysely
    .selectFrom('event')
    .select(['id', 'subjectId', 'version', 'sequence'])
    .where('crmId', '=', crmId)
    .where('sequence', '>', position)
    .orderBy('sequence')
    .execute();
}

async function versionsIn(crmId: string): Promise<number[]> {
  return (await readAfter(crmId, 0)).map(({ version }) => version);
}

it('an event waits for its predecessor', async () => {
  const [crmId, subject] = [randomUUID(), randomUUID()];
  const [first, second, third] = [arrival(crmId, subject, 1), arrival(crmId, subject, 2), arrival(crmId, subject, 3)];
  await arrive(third, first);
  await sequence();
  expect(await versionsIn(crmId)).toEqual([1]);
  await arrive(second);
  await sequenceAll();
  expect(await versionsIn(crmId)).toEqual([1, 2, 3]);
});

it('an event of another subject does not wait with it', async () => {
  const crmId = randomUUID();
  await arrive(arrival(crmId, randomUUID(), 7), arrival(crmId, randomUUID(), 1), arrival(crmId, randomUUID(), 0));
  await sequence();
  expect(await versionsIn(crmId)).toEqual([1, 0]);
});

it.each(['appointmentId', 'customerId'] as const)(
  'an event comes after the first one of what it names as %s, if that is new',
  async (name) => {
    const [crmId, created, participation] = [randomUUID(), newId(), randomUUID()];
    const old = '01970000-0000-7000-8000-000000000000';
    await arrive(
      arrival(crmId, participation, 1, { [name]: created }),
      arrival(crmId, randomUUID(), 1, { [name]: old }),
    );
    await sequenceAll();
    expect((await readAfter(crmId, 0)).map(({ subjectId }) => subjectId)).not.toContain(participation);
    await arrive(arrival(crmId, created, 1));
    await sequenceAll();
    expect((await readAfter(crmId, 0)).map(({ subjectId }) => subjectId).slice(1)).toEqual([created, participation]);
    await arrive(arrival(crmId, participation, 2, { [name]: newId() }));
    await sequence({ waitSeconds: 0 });
    expect((await versionsIn(crmId)).at(-1)).toBe(2);
  },
);

describe('an event about an appointment', () => {
  /** An old one, whose events are known up to this place. */
  async function appointmentAt(crmId: string, ordinal: number): Promise<string> {
    const id = newId();
    await database.kysely.insertInto('latestVersion').values({ crmId, subjectId: id, version: 1, ordinal }).execute();
    return id;
  }
  const about = (crmId: string, appointmentId: string, ordinal: number, more: Partial<Arrival> = {}) =>
    arrival(crmId, randomUUID(), 1, { appointmentId, ordinal, ...more });
  const idsIn = async (crmId: string) => (await readAfter(crmId, 0)).map(({ id }) => id);

  it('waits for the previous one, whoever that is about', async () => {
    const crmId = randomUUID();
    const [one, other] = [await appointmentAt(crmId, 3), await appointmentAt(crmId, 0)];
    const [fifth, first, fourth] = [about(crmId, one, 5), about(crmId, other, 1), about(crmId, one, 4)];
    await arrive(fifth, first);
    await sequenceAll();
    expect(await idsIn(crmId)).toEqual([first.id]);
    await arrive(fourth);
    expect(await sequence()).toBe(2);
    expect(await idsIn(crmId)).toEqual([first.id, fourth.id, fifth.id]);
  });

  it('waits for the previous ones about both appointments if it is a move, and those about both wait for it', async () => {
    const crmId = randomUUID();
    const [source, target] = [await appointmentAt(crmId, 3), await appointmentAt(crmId, 7)];
    const [afterInSource, afterInTarget] = [about(crmId, source, 6), about(crmId, target, 9)];
    const move = about(crmId, target, 8, { previousAppointmentId: source, previousOrdinal: 5 });
    const before = about(crmId, source, 4);
    await arrive(afterInSource, afterInTarget, move);
    await sequenceAll();
    expect(await idsIn(crmId)).toEqual([]);
    await arrive(before);
    await sequenceAll();
    expect((await idsIn(crmId)).slice(0, 2)).toEqual([before.id, move.id]);
    expect((await idsIn(crmId)).toSorted()).toEqual([afterInSource, afterInTarget, move, before].map(({ id }) => id));
  });

  it('waits with the previous one', async () => {
    const crmId = randomUUID();
    const appointmentId = await appointmentAt(crmId, 1);
    const customerId = newId();
    const [first, second] = [about(crmId, appointmentId, 2, { customerId }), about(crmId, appointmentId, 3)];
    await arrive(first, second);
    await sequenceAll();
    expect(await idsIn(crmId)).toEqual([]);
    const customer = arrival(crmId, customerId, 1);
    await arrive(customer);
    await sequenceAll();
    expect(await idsIn(crmId)).toEqual([customer.id, first.id, second.id]);
  });

  it('comes after a time if the previous one is missing, which is appended if it arrives after all', async () => {
    const crmId = randomUUID();
    const appointmentId = await appointmentAt(crmId, 1);
    const [fifth, fourth, third, second] = [5, 4, 3, 2].map((ordinal) => about(crmId, appointmentId, ordinal));
    await arrive(fifth!);
    await database.kysely
      .updateTable('incomingEvent')
      .set({ arrivedAt: new Date(Date.now() - 60_000) } as never)
      .where('id', '=', fifth!.id)
      .execute();
    await arrive(fourth!, third!);
    await sequenceAll({ waitSeconds: 120 });
    expect(await idsIn(crmId)).toEqual([]);
    await sequenceAll({ waitSeconds: 30 });
    await arrive(second!);
    await sequenceAll();
    expect(await idsIn(crmId)).toEqual([third, fourth, fifth, second].map((each) => each!.id));
  });
});

describe('many events', () => {
  /** More than are looked at together. */
  const many = 2_100;
  const inThePast = (...ids: string[]) =>
    database.kysely
      .updateTable('incomingEvent')
      .set({ arrivedAt: new Date(Date.now() - 60_000) } as never)
      .where('id', 'in', ids)
      .execute();

  it('that wait do not keep back others', async () => {
    const [crmId, subject] = [randomUUID(), randomUUID()];
    await arrive(...Array.from({ length: many }, (_, index) => arrival(crmId, subject, index + 2)));
    await arrive(arrival(randomUUID(), randomUUID(), 1));
    expect(await sequence()).toBe(1);
    await arrive(arrival(crmId, subject, 1));
    await sequenceAll();
    expect(await versionsIn(crmId)).toEqual(Array.from({ length: many + 1 }, (_, index) => index + 1));
  });

  it('that move participations from one appointment to another come together', async () => {
    const [crmId, source, target] = [randomUUID(), newId(), newId()];
    const moves = Array.from({ length: 500 }, (_, index) =>
      arrival(crmId, randomUUID(), 1, {
        appointmentId: target,
        ordinal: index + 1,
        previousAppointmentId: source,
        previousOrdinal: index + 1,
      }),
    );
    await arrive(...moves.toReversed());
    expect(await sequence()).toBe(moves.length);
    expect((await readAfter(crmId, 0)).map(({ id }) => id)).toEqual(moves.map(({ id }) => id));
  });

  it('that come without a missing one come in their order, whatever their ids', async () => {
    const [crmId, appointmentId] = [randomUUID(), newId()];
    const about = (ordinal: number): Arrival => arrival(crmId, randomUUID(), 1, { appointmentId, ordinal });
    const others = Array.from({ length: many }, (_, index) => about(index + 3));
    const second = about(2);
    await arrive(...others, second);
    await inThePast(...others.map(({ id }) => id), second.id);
    await sequenceAll({ waitSeconds: 30 });
    expect((await readAfter(crmId, 0)).map(({ id }) => id)).toEqual([second, ...others].map(({ id }) => id));
  });
});

describe('an event whose predecessor is missing', () => {
  it('comes without it after a time, and those that arrived later come behind it', async () => {
    const [crmId, subject] = [randomUUID(), randomUUID()];
    await arrive(arrival(crmId, subject, 1));
    await sequence();
    const [fifth, sixth, fourth] = [arrival(crmId, subject, 5), arrival(crmId, subject, 6), arrival(crmId, subject, 4)];
    await arrive(sixth);
    await database.kysely
      .updateTable('incomingEvent')
      .set({ arrivedAt: new Date(Date.now() - 60_000) } as never)
      .where('id', '=', sixth.id)
      .execute();
    await arrive(fifth, fourth);
    await sequence({ waitSeconds: 120 });
    expect(await versionsIn(crmId)).toEqual([1]);
    await sequenceAll({ waitSeconds: 30 });
    expect(await versionsIn(crmId)).toEqual([1, 4, 5, 6]);
  });

  it('is not waited for by its successors once it came', async () => {
    const [crmId, subject] = [randomUUID(), randomUUID()];
    await arrive(arrival(crmId, subject, 2));
    await sequence({ waitSeconds: 0 });
    await arrive(arrival(crmId, subject, 3));
    await sequence();
    expect(await versionsIn(crmId)).toEqual([2, 3]);
  });

  it('leaves nothing out: the predecessor is appended when it arrives after all', async () => {
    const [crmId, subject] = [randomUUID(), randomUUID()];
    await arrive(arrival(crmId, subject, 2));
    await sequence({ waitSeconds: 0 });
    await arrive(arrival(crmId, subject, 1));
    await sequence();
    expect(await versionsIn(crmId)).toEqual([2, 1]);
    await arrive(arrival(crmId, subject, 3));
    await sequence();
    expect(await versionsIn(crmId)).toEqual([2, 1, 3]);
  });

  it('is reported when the first event comes without it, in each series that it is missing from, and not again', async () => {
    const [crmId, booking, appointment] = [randomUUID(), randomUUID(), randomUUID()];
    const gaps: Gap[] = [];
    const onGaps = (found: Gap[]) => void gaps.push(...found);
    await arrive(
      arrival(crmId, booking, 1, { appointmentId: appointment, ordinal: 1 }),
      arrival(crmId, booking, 4, { appointmentId: appointment, ordinal: 3 }),
    );
    await sequenceAll({ onGaps });
    expect(gaps).toEqual([]);
    await sequenceAll({ onGaps, waitSeconds: 0 });
    expect(gaps).toEqual([
      { series: `versions of ${booking} of ${crmId}`, first: 2, last: 3 },
      { series: `ordinals of ${appointment} of ${crmId}`, first: 2, last: 2 },
    ]);
    await arrive(
      arrival(crmId, booking, 5, { appointmentId: appointment, ordinal: 4 }),
      arrival(crmId, booking, 2, { appointmentId: appointment, ordinal: 2 }),
    );
    await sequenceAll({ onGaps, waitSeconds: 0 });
    expect(gaps).toHaveLength(2);
    expect(await versionsIn(crmId)).toEqual([1, 4, 5, 2]);
  });

  it('is not waited for by events whose numbers contradict each other once all that wait have waited long enough', async () => {
    const [crmId, booking, appointment] = [randomUUID(), randomUUID(), randomUUID()];
    await arrive(
      arrival(crmId, booking, 2, { appointmentId: appointment, ordinal: 1 }),
      arrival(crmId, booking, 1, { appointmentId: appointment, ordinal: 2 }),
    );
    await sequenceAll();
    expect(await versionsIn(crmId)).toEqual([]);
    await sequenceAll({ waitSeconds: 0 });
    expect(await versionsIn(crmId)).toEqual([2, 1]);
  });

  describe('in a process', () => {
    const waitSeconds = 1;
    const databaseWithWaiting = async (): Promise<Database<WebhookSchema>> => {
      const own = createDatabase<WebhookSchema>({
        url: await createMigratedDatabase('webhook', migrateWebhookDatabase),
        applicationName: 'test',
        logger,
        ...longTimeout,
      });
      await own.kysely
        .insertInto('incomingEvent')
        .values({ ...factOf(arrival('crm', randomUUID(), 2)), arrivedAt: new Date(Date.now() - 60_000) } as never)
        .execute();
      return own;
    };
    const versions = async ({ kysely }: Database<WebhookSchema>) =>
      (await kysely.selectFrom('event').select('version').execute()).map(({ version }) => version);

    it('comes without it once nothing has been disturbed for that time', async () => {
      await using nats = await startTestNats();
      await using own = await databaseWithWaiting();
      await using broker = connectBroker({ url: nats.url('webhook'), name: 'webhook', logger });
      const startedMs = performance.now();
      let missing = 0;
      const onMissing = (count: number): void => {
        missing += count;
      };
      await using _feed = startFeed({ database: own, broker, logger, onMissing, waitSeconds });
      await eventually(async () => expect(await versions(own)).toEqual([2]));
      expect(performance.now() - startedMs).toBeGreaterThan(waitSeconds * 1_000);
      await eventually(() => expect(missing).toBe(1));
    });

    it('does not come without it while NATS is away, but soon after that', async () => {
      await using nats = await startTestNats();
      await nats.stop();
      await using own = await databaseWithWaiting();
      await using broker = connectBroker({ url: nats.url('webhook'), name: 'webhook', logger });
      const startedMs = performance.now();
      await using _feed = startFeed({
        database: own,
        broker,
        logger,
        onMissing: () => undefined,
        waitSeconds,
      });
      // Rounds go on meanwhile.
      for (let other = 1; performance.now() - startedMs < 3 * waitSeconds * 1_000; other += 1) {
        await own.kysely
          .insertInto('incomingEvent')
          .values(factOf(arrival('crm', randomUUID(), 1)))
          .execute();
        await eventually(async () => expect(await versions(own)).toEqual(Array.from({ length: other }, () => 1)));
      }
      await nats.start();
      await eventually(async () => expect(await versions(own)).toContain(2));
    });
  });
});

describe('while another transaction writes the feed, and does not end,', () => {
  const applicationName = 'held-up';

  /** Records events that arrive at once, with the lock held until `meanwhile` ends. */
  async function recordHeldUp(
    count: number,
    meanwhile: (parts: { feed: Feed; recorded: Promise<PromiseSettledResult<boolean>[]> }) => Promise<void>,
  ): Promise<PromiseSettledResult<boolean>[]> {
    await using nats = await startTestNats();
    await using broker = connectBroker({ url: nats.url('webhook'), name: 'webhook', logger });
    await using own = createDatabase<WebhookSchema>({
      url: await createMigratedDatabase('webhook', migrateWebhookDatabase),
      applicationName,
      logger,
      ...longTimeout,
    });
    await using feed = startFeed({ database: own, broker, logger, onMissing: () => undefined });
    const facts = Array.from({ length: count }, () => factOf(arrival('crm', randomUUID(), 1)));
    const recorded = await own.transaction(async (tx) => {
      await sql`SELECT pg_advisory_xact_lock(hashtextextended('sequence_events', 0))`.execute(tx);
      const all = Promise.allSettled(facts.map((fact) => feed.record(fact)));
      await eventually(async () => expect(await waitForLock()).toBe(1));
      await meanwhile({ feed, recorded: all });
      return { all };
    });
    return recorded.all;
  }

  async function waitForLock(): Promise<number> {
    const { rows } = await sql<{ count: number }>`
      SELECT count(*)::int FROM pg_stat_activity WHERE application_name = ${applicationName} AND wait_event_type = 'Lock'`.execute(
      database.kysely,
    );
    return rows[0]!.count;
  }

  it('events fail, and no more than one connection waits', async () => {
    let most = 0;
    const outcomes = await recordHeldUp(60, async ({ recorded }) => {
      const ended = new AbortController();
      void recorded.then(() => ended.abort());
      while (!ended.signal.aborted) most = Math.max(most, await waitForLock());
    });
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['rejected']));
    expect(most).toBe(1);
  });

  it('and this process stops, it records no more than it has begun', async () => {
    const outcomes = await recordHeldUp(120, async ({ feed }) => {
      await feed[Symbol.asyncDispose]();
    });
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(50);
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(70);
  });
});

it('events that have nothing to wait for come in the order of their ids', async () => {
  const crmId = randomUUID();
  const arrivals = Array.from({ length: 50 }, (_, index) => arrival(crmId, randomUUID(), index % 2));
  await arrive(...arrivals.toReversed());
  await sequenceAll({ limit: 20 });
  expect((await readAfter(crmId, 0)).map(({ id }) => id)).toEqual(arrivals.map(({ id }) => id));
});

describe('an event that has just arrived', () => {
  const isWaiting = async (crmId: string) =>
    (await database.kysely.selectFrom('incomingEvent').select('id').where('crmId', '=', crmId).execute()).map(
      ({ id }) => id,
    );

  it('gets its place at once, in the order of the versions, whatever the order in which they arrive', async () => {
    const [crmId, subject] = [randomUUID(), randomUUID()];
    const versions = [1, 2, 3].map((version) => arrival(crmId, subject, version));
    expect(await record(...versions.toReversed())).toMatchObject({ repeated: [] });
    expect(await versionsIn(crmId)).toEqual([1, 2, 3]);
    expect(await isWaiting(crmId)).toEqual([]);
  });

  it('waits for its predecessor, and is not in its way', async () => {
    const [crmId, subject] = [randomUUID(), randomUUID()];
    const [first, second, third] = [arrival(crmId, subject, 1), arrival(crmId, subject, 2), arrival(crmId, subject, 3)];
    expect(await record(third, first)).toEqual({ repeated: [], hasWaiting: true });
    expect([await versionsIn(crmId), await isWaiting(crmId)]).toEqual([[1], [third.id]]);
    await record(second);
    await sequenceAll();
    expect([await versionsIn(crmId), await isWaiting(crmId)]).toEqual([[1, 2, 3], []]);
  });

  it('is recorded once, however often it arrives', async () => {
    const [crmId, subject] = [randomUUID(), randomUUID()];
    const [first, second, third, mail] = [1, 2, 3, 0].map((version) => arrival(crmId, subject, version));
    await record(first!, first!, mail!, third!, third!);
    const { repeated } = await record(mail!, third!, first!, second!);
    expect(repeated.toSorted()).toEqual([first!.id, mail!.id]);
    // As the previous version does it.
    await arrive(first!, mail!);
    await sequenceAll();
    expect(await versionsIn(crmId)).toEqual([1, 0, 2, 3]);
    expect((await readAfter(crmId, 0)).map((each) => each.sequence)).toEqual([1, 2, 3, 4]);
    expect(await isWaiting(crmId)).toEqual([]);
  });

  it('has its place in the order of the versions, whatever is recorded at the same time', async () => {
    const [crmId, subject] = [randomUUID(), randomUUID()];
    const others = Array.from({ length: 30 }, (_, index) => arrival(crmId, subject, index + 1));
    await Promise.all(others.map((each) => record(each)));
    await sequenceAll();
    expect(await versionsIn(crmId)).toEqual(others.map(({ version }) => version));
  });
});

interface Step {
  participation: number;
  appointment: number;
  moves: boolean;
}

const steps = fc.array(
  fc.record<Step>({ participation: fc.nat({ max: 9 }), appointment: fc.nat({ max: 3 }), moves: fc.boolean() }),
  { minLength: 1, maxLength: 60 },
);

/**
 * The events of steps that follow each other: a participation is created, changed or moved in one of few appointments.
 */
function historyOf(crmId: string, plan: Step[]): Arrival[] {
  const appointments = Array.from({ length: 4 }, () => ({ id: newId(), ordinal: 0 }));
  const participations = new Map<number, { id: string; version: number; appointment: (typeof appointments)[number] }>();
  return plan.flatMap((step) => {
    const named = appointments[step.appointment]!;
    const isNew = named.ordinal === 0;
    if (isNew) named.ordinal = 1;
    const opened = isNew ? [arrival(crmId, named.id, 1, { ordinal: 1 })] : [];
    const participation = participations.get(step.participation) ?? { id: newId(), version: 0, appointment: named };
    const source = participation.appointment;
    participations.set(step.participation, participation);
    participation.version += 1;
    if (!step.moves || source === named) {
      source.ordinal += 1;
      return [
        ...opened,
        arrival(crmId, participation.id, participation.version, { appointmentId: source.id, ordinal: source.ordinal }),
      ];
    }
    participation.appointment = named;
    source.ordinal += 1;
    named.ordinal += 1;
    const places = {
      appointmentId: named.id,
      ordinal: named.ordinal,
      previousAppointmentId: source.id,
      previousOrdinal: source.ordinal,
    };
    return [...opened, arrival(crmId, participation.id, participation.version, places)];
  });
}

it('however events about appointments arrive, and whatever their ids, those about each have their order', async () => {
  const plan = fc.record({
    plan: steps,
    seed: fc.integer({ min: 1 }),
    idSeed: fc.integer({ min: 1 }),
    chunk: fc.integer({ min: 1, max: 20 }),
    limit: fc.integer({ min: 1, max: 30 }),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ plan: ofPlan, seed, idSeed, chunk, limit }) => {
      const crmId = randomUUID();
      const history = historyOf(crmId, ofPlan);
      const ids = createRandom(idSeed, 0).shuffled(history.map(({ id }) => id));
      const arrivals = history.map((each, index) => ({ ...each, id: ids[index]! }));
      const inArrival = createRandom(seed, 0).shuffled(arrivals);
      for (let index = 0; index < inArrival.length; index += chunk) {
        const next = inArrival.slice(index, index + chunk);
        // Some arrive again.
        await record(...next, ...inArrival.slice(0, index).slice(-chunk));
        await sequence({ limit });
      }
      await sequenceAll({ limit });
      const byId = new Map(arrivals.map((each) => [each.id, each]));
      const seen = (await readAfter(crmId, 0)).map(({ id }) => byId.get(id)!);
      expect(seen).toHaveLength(arrivals.length);
      const places = seen.flatMap(
        ({ subjectId, appointmentId = subjectId, ordinal, previousAppointmentId, previousOrdinal }) => [
          { about: appointmentId, number: ordinal },
          ...(previousAppointmentId === undefined ? [] : [{ about: previousAppointmentId, number: previousOrdinal }]),
        ],
      );
      const versions = seen.map(({ subjectId, version }) => ({ about: `version of ${subjectId}`, number: version }));
      for (const inOrder of Map.groupBy([...places, ...versions], ({ about }) => about).values()) {
        expect(inOrder.map(({ number }) => number)).toEqual(inOrder.map((_, index) => index + 1));
      }
    }),
    { numRuns: 150 },
  );
}, 60_000);

interface Plan {
  /** How many versions each subject has, by CRM. */
  subjects: number[][];
  /** Sorts the arrivals. */
  seed: number;
  chunk: number;
  limit: number;
}

const plans = fc.record<Plan>({
  subjects: fc.array(fc.array(fc.nat({ max: 6 }), { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 3 }),
  seed: fc.integer({ min: 1 }),
  chunk: fc.integer({ min: 1, max: 20 }),
  limit: fc.integer({ min: 1, max: 30 }),
});

/** Two processes record the events as they arrive, and order those that wait, while a reader follows. */
async function follow({
  subjects,
  seed,
  chunk,
  limit,
}: Plan): Promise<{ arrivals: Arrival[]; read: Map<string, Awaited<ReturnType<typeof readAfter>>> }> {
  const arrivals = subjects.flatMap((versions) => {
    const [crmId, appointmentId] = [randomUUID(), newId()];
    const ofParticipations = versions.flatMap((count) => {
      const subject = randomUUID();
      // The ids of some subjects are in another order than the versions.
      const version = (index: number): number => (count % 2 === 0 ? index + 1 : count - index);
      return [
        arrival(crmId, subject, 0),
        ...Array.from({ length: count }, (_, index) => arrival(crmId, subject, version(index), { appointmentId })),
      ];
    });
    return [...ofParticipations, arrival(crmId, appointmentId, 1), arrival(crmId, appointmentId, 2)];
  });
  const inArrival = createRandom(seed, 0).shuffled(arrivals);
  const halves = new Set([inArrival.slice(0, inArrival.length / 2), inArrival.slice(inArrival.length / 2)]);
  const arriving = [...halves].map(async (half) => {
    for (let index = 0; index < half.length; index += chunk) await record(...half.slice(index, index + chunk));
    halves.delete(half);
  });
  const isWaiting = async (): Promise<boolean> =>
    (await database.kysely.selectFrom('incomingEvent').select('id').limit(1).executeTakeFirst()) !== undefined;
  const order = async (): Promise<void> => {
    while (halves.size > 0 || (await isWaiting())) await sequence({ limit });
  };
  const read = new Map(arrivals.map(({ crmId }) => [crmId, [] as Awaited<ReturnType<typeof readAfter>>]));
  const reading = (async () => {
    while ([...read.values()].flat().length < arrivals.length) {
      for (const [crmId, seen] of read) seen.push(...(await readAfter(crmId, seen.at(-1)?.sequence ?? 0)));
    }
  })();
  await Promise.all([...arriving, order(), order(), reading]);
  return { arrivals, read };
}

it('however events arrive, a reader gets all of them, numbered without a gap, with ascending versions', async () => {
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const { arrivals, read } = await follow(plan);
      for (const [crmId, seen] of read) {
        expect(seen.map(({ id }) => id).toSorted()).toEqual(
          arrivals.filter((each) => each.crmId === crmId).map(({ id }) => id),
        );
        expect(seen.map((each) => each.sequence)).toEqual(seen.map((_, index) => index + 1));
        for (const ofSubject of Map.groupBy(
          seen.filter(({ version }) => version > 0),
          ({ subjectId }) => subjectId,
        ).values()) {
          expect(ofSubject.map(({ version }) => version)).toEqual(ofSubject.map((_, index) => index + 1));
        }
        const first = seen.find(({ version }) => version > 0);
        expect(arrivals.find(({ id }) => id === first!.id)).not.toHaveProperty('appointmentId');
      }
    }),
    { numRuns: 60 },
  );
}, 60_000);
