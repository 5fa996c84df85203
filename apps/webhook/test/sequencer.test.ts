import { connectBroker } from '@scheduling/events';
import { createDatabase, type Database } from '@scheduling/postgres';
import { createMigratedDatabase, eventually, longTimeout, startTestNats, testLogger } from '@scheduling/testing';
import fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateWebhookDatabase } from '../src/db/migrate.ts';
import type { WebhookSchema } from '../src/db/schema.ts';
import { sequenceEvents, startSequencer } from '../src/feed/start-sequencer.ts';

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
}

let ids = 0;

/** Ids of one moment that ascend from one call to the next. */
function newId(): string {
  ids += 1;
  return `0197c4ce-5a3e-7000-8000-${ids.toString(16).padStart(12, '0')}`;
}

function arrival(crmId: string, subjectId: string, version: number, named: Pick<Arrival, 'appointmentId' | 'customerId'> = {}): Arrival {
  return { crmId, id: newId(), subjectId, version, ...named };
}

const factOf = (each: Arrival) => ({ appointmentId: null, customerId: null, ...each, type: 'participation.changed', actor: 'service' });

async function arrive(...arrivals: Arrival[]): Promise<void> {
  const facts = arrivals.map(factOf);
  if (facts.length > 0) await database.kysely.insertInto('incomingEvent').values(facts).execute();
}

function sequence(request: { limit?: number; waitSeconds?: number } = {}): Promise<number> {
  return sequenceEvents(database, { limit: 500, waitSeconds: 3_600, ...request });
}

/** Until nothing is left but what waits. */
async function sequenceAll(request: { limit?: number; waitSeconds?: number } = {}): Promise<void> {
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

it.each(['appointmentId', 'customerId'] as const)('an event comes after the first one of what it names as %s, if that is new', async (name) => {
  const [crmId, created, participation] = [randomUUID(), newId(), randomUUID()];
  const old = '01970000-0000-7000-8000-000000000000';
  await arrive(arrival(crmId, participation, 1, { [name]: created }), arrival(crmId, randomUUID(), 1, { [name]: old }));
  await sequenceAll();
  expect((await readAfter(crmId, 0)).map(({ subjectId }) => subjectId)).not.toContain(participation);
  await arrive(arrival(crmId, created, 1));
  await sequenceAll();
  expect((await readAfter(crmId, 0)).map(({ subjectId }) => subjectId).slice(1)).toEqual([created, participation]);
  await arrive(arrival(crmId, participation, 2, { [name]: newId() }));
  await sequence({ waitSeconds: 0 });
  expect((await versionsIn(crmId)).at(-1)).toBe(2);
});

describe('an event whose predecessor is missing', () => {
  it('comes without it after a time, and those that arrived later come behind it', async () => {
    const [crmId, subject] = [randomUUID(), randomUUID()];
    await arrive(arrival(crmId, subject, 1));
    await sequence();
    const [fifth, sixth, fourth] = [arrival(crmId, subject, 5), arrival(crmId, subject, 6), arrival(crmId, subject, 4)];
    await arrive(sixth);
    await database.kysely.updateTable('incomingEvent').set({ arrivedAt: new Date(Date.now() - 60_000) } as never).where('id', '=', sixth.id).execute();
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

  describe('in a process', () => {
    const waitSeconds = 1;
    const databaseWithWaiting = async (): Promise<Database<WebhookSchema>> => {
      const own = createDatabase<WebhookSchema>({ url: await createMigratedDatabase('webhook', migrateWebhookDatabase), applicationName: 'test', logger, ...longTimeout });
      await own.kysely.insertInto('incomingEvent').values({ ...factOf(arrival('crm', randomUUID(), 2)), arrivedAt: new Date(Date.now() - 60_000) } as never).execute();
      return own;
    };
    const versions = async ({ kysely }: Database<WebhookSchema>) => (await kysely.selectFrom('event').select('version').execute()).map(({ version }) => version);

    it('comes without it once nothing has been disturbed for that time', async () => {
      await using nats = await startTestNats();
      await using own = await databaseWithWaiting();
      await using broker = connectBroker({ url: nats.url('webhook'), name: 'webhook', logger });
      const startedMs = performance.now();
      await using _sequencer = startSequencer({ database: own, broker, logger, waitSeconds });
      await eventually(async () => expect(await versions(own)).toEqual([2]));
      expect(performance.now() - startedMs).toBeGreaterThan(waitSeconds * 1_000);
    });

    it('does not come without it while NATS is away, but soon after that', async () => {
      await using nats = await startTestNats();
      await nats.stop();
      await using own = await databaseWithWaiting();
      await using broker = connectBroker({ url: nats.url('webhook'), name: 'webhook', logger });
      const startedMs = performance.now();
      await using _sequencer = startSequencer({ database: own, broker, logger, waitSeconds });
      // Rounds go on meanwhile.
      for (let other = 1; performance.now() - startedMs < 3 * waitSeconds * 1_000; other += 1) {
        await own.kysely.insertInto('incomingEvent').values(factOf(arrival('crm', randomUUID(), 1))).execute();
        await eventually(async () => expect(await versions(own)).toEqual(Array.from({ length: other }, () => 1)));
      }
      await nats.start();
      await eventually(async () => expect(await versions(own)).toContain(2));
    });
  });

  it('does not keep back more than fit into one round', async () => {
    const crmId = randomUUID();
    await arrive(...Array.from({ length: 20 }, () => arrival(crmId, randomUUID(), 2)));
    await arrive(arrival(crmId, randomUUID(), 1));
    expect(await sequence({ limit: 10 })).toBe(1);
  });
});

it('events that have nothing to wait for come in the order of their ids', async () => {
  const crmId = randomUUID();
  const arrivals = Array.from({ length: 50 }, (_, index) => arrival(crmId, randomUUID(), index % 2));
  await arrive(...arrivals.toReversed());
  await sequenceAll({ limit: 20 });
  expect((await readAfter(crmId, 0)).map(({ id }) => id)).toEqual(arrivals.map(({ id }) => id));
});

it('a round that fails changes nothing', async () => {
  const crmId = randomUUID();
  const [recorded, next] = [arrival(crmId, randomUUID(), 1), arrival(crmId, randomUUID(), 1)];
  await arrive(recorded);
  await sequence();
  await arrive(recorded, next);
  await expect(sequence()).rejects.toThrow(/event_crm_id_id_key/);
  await database.kysely.deleteFrom('incomingEvent').where('id', '=', recorded.id).execute();
  await sequence();
  expect((await readAfter(crmId, 0)).map(({ id, sequence: place }) => [id, place])).toEqual([[recorded.id, 1], [next.id, 2]]);
});

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

/** Two processes order the events while they arrive, and a reader follows. */
async function follow({ subjects, seed, chunk, limit }: Plan): Promise<{ arrivals: Arrival[]; read: Map<string, Awaited<ReturnType<typeof readAfter>>> }> {
  const arrivals = subjects.flatMap((versions) => {
    const [crmId, appointmentId] = [randomUUID(), newId()];
    const ofParticipations = versions.flatMap((count) => {
      const subject = randomUUID();
      // The ids of some subjects are in another order than the versions.
      const version = (index: number): number => (count % 2 === 0 ? index + 1 : count - index);
      return [arrival(crmId, subject, 0), ...Array.from({ length: count }, (_, index) => arrival(crmId, subject, version(index), { appointmentId }))];
    });
    return [...ofParticipations, arrival(crmId, appointmentId, 1), arrival(crmId, appointmentId, 2)];
  });
  const shuffled = arrivals.map((each, index) => ({ each, key: Math.imul(seed, (index + 1) * 2_654_435_761) })).toSorted((a, b) => a.key - b.key);
  let left = arrivals.length;
  const arriving = (async () => {
    for (let index = 0; index < shuffled.length; index += chunk) await arrive(...shuffled.slice(index, index + chunk).map(({ each }) => each));
  })();
  const order = async (): Promise<void> => {
    while (left > 0) {
      const moved = await sequence({ limit });
      left -= moved;
    }
  };
  const read = new Map(arrivals.map(({ crmId }) => [crmId, [] as Awaited<ReturnType<typeof readAfter>>]));
  const reading = (async () => {
    while ([...read.values()].flat().length < arrivals.length) {
      for (const [crmId, seen] of read) seen.push(...(await readAfter(crmId, seen.at(-1)?.sequence ?? 0)));
    }
  })();
  await Promise.all([arriving, order(), order(), reading]);
  return { arrivals, read };
}

it('however events arrive, a reader gets all of them, numbered without a gap, with ascending versions', async () => {
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const { arrivals, read } = await follow(plan);
      for (const [crmId, seen] of read) {
        expect(seen.map(({ id }) => id).toSorted()).toEqual(arrivals.filter((each) => each.crmId === crmId).map(({ id }) => id));
        expect(seen.map((each) => each.sequence)).toEqual(seen.map((_, index) => index + 1));
        for (const ofSubject of Map.groupBy(seen.filter(({ version }) => version > 0), ({ subjectId }) => subjectId).values()) {
          expect(ofSubject.map(({ version }) => version)).toEqual(ofSubject.map((_, index) => index + 1));
        }
        const first = seen.find(({ version }) => version > 0);
        expect(arrivals.find(({ id }) => id === first!.id)).not.toHaveProperty('appointmentId');
      }
    }),
    { numRuns: 60 },
  );
}, 60_000);
