import { waitUntil } from '@scheduling/embedded';
import type { Unit } from '@scheduling/stack';
import { createRandom, type Random } from '@scheduling/testing/random';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { applyEvent, createMirror, type Mirror } from '../feed-mirror.ts';
import type { Appointment } from '../answers.ts';
import { createAppointment } from '@scheduling/test-stack/crm';
import { type FeedEvent, readFeed, readFeedPage } from '../feed.ts';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';
import { kill, whileHanging } from './processes.ts';
import { deliberately, type Office, openOffice, write } from './random-writers.ts';
import { stackForFaults } from './stack-with-faults.ts';

const firstSeed = Number(process.env['MIRROR_SEED'] ?? Math.floor(Math.random() * 1_000_000));
/** Every run has another seed: MIRROR_SEEDS sets how many a run plays. */
const seeds = Array.from({ length: Number(process.env['MIRROR_SEEDS'] ?? 1) }, (_, index) => firstSeed + index);

const writersPerOffice = 4;
const killed: Unit[] = ['calendar', 'calendar', 'nats', 'nats', 'webhook', 'webhook', 'webhook'];
const answersBetweenKills = 300;
/** So many requests are answered while a process hangs before it is killed. */
const backlog = 120;
const pollMs = 100;
const progressMs = 60_000;
/**
 * What was being delivered when a process was killed is delivered again after 15 s; the rest depends on the machine.
 */
const completeMs = 120_000;

let stack: TestStack;
beforeAll(async () => void (stack = await stackForFaults()), 400_000);

describe('a mirror that knows only the events of the feed, while clients change the calendar at random and processes are killed,', () => {
  it.each(seeds)(
    'is right after each event, and equals the API in the end, with seed %i',
    { timeout: 600_000 },
    async (seed) => {
      const offices = [await openOffice(stack, { sandbox: false }), await openOffice(stack, { sandbox: true })];
      const readers = offices.map(startReader);
      const working = new AbortController();
      const writers = offices.flatMap((office, index) =>
        Array.from({ length: writersPerOffice }, (_, writer) =>
          write(office, createRandom(seed, index * writersPerOffice + writer), working.signal),
        ),
      );
      const disturbing = killProcesses(offices, createRandom(seed, writers.length)).finally(() => working.abort());
      await Promise.all([disturbing, ...writers, ...readers.map((reader) => follow(reader, working.signal))]);
      readers.forEach(expectRight);
      for (const reader of readers) await expectComplete(reader);
      for (const reader of readers) await expectMuchToCompare(reader);
    },
  );
});

async function killProcesses(offices: Office[], random: Random): Promise<void> {
  const countAnswers = (): number => offices.reduce((sum, { answered }) => sum + answered, 0);
  const letWrite = async (answers: number): Promise<void> => {
    const wanted = countAnswers() + answers;
    await waitUntil(() => countAnswers() >= wanted, { what: 'requests to be answered', timeoutMs: progressMs });
  };
  await letWrite(answersBetweenKills);
  for (const unit of random.shuffled(killed)) {
    // Without calendar no request is answered with more than 503. What the others have not yet processed comes again,
    // later than what follows it.
    if (unit === 'calendar') await kill(stack, unit);
    else await whileHanging(stack, unit, () => letWrite(backlog).then(() => kill(stack, unit)));
    await letWrite(answersBetweenKills);
  }
}

/** Somebody who reads the feed of a CRM as it grows. */
interface Reader {
  office: Office;
  mirror: Mirror;
  /** The query of the next page. */
  next: Record<string, string>;
  read: string[];
  contradictions: string[];
}

function startReader(office: Office): Reader {
  return { office, mirror: createMirror(), next: { limit: '50' }, read: [], contradictions: [] };
}

async function follow(reader: Reader, until: AbortSignal): Promise<void> {
  const readOn = async (): Promise<boolean> => {
    await readToEnd(reader);
    return until.aborted;
  };
  await waitUntil(readOn, { what: 'the changes to end', timeoutMs: completeMs * 2, intervalMs: pollMs });
}

async function readToEnd(reader: Reader): Promise<void> {
  for (let isEnd = false; !isEnd;) {
    const { events, next } = await readFeedPage(reader.office.practice.crm, reader.next);
    isEnd = next['after'] === reader.next['after'];
    reader.next = next;
    for (const event of events) {
      reader.read.push(event.id);
      reader.contradictions.push(...applyEvent(reader.mirror, event));
    }
  }
}

/** Shows the first of them, which may have caused the others. */
function expectRight({ contradictions }: Reader): void {
  expect(contradictions.slice(0, 5)).toEqual([]);
}

/** Nothing happens any more, except that reservations expire. */
async function expectComplete(reader: Reader): Promise<void> {
  const { practice } = reader.office;
  await createAppointment(practice, { capacity: 3 });
  const isComplete = async (): Promise<void> => {
    await readToEnd(reader);
    if (reader.contradictions.length > 0) return;
    const events = await readFeed(practice.crm, { limit: '1000' });
    expect(reader.read).toEqual(events.map(({ id }) => id));
    expect(shownBy(reader.mirror, events)).toEqual(await shownByApi(reader.office));
  };
  await vi.waitFor(isComplete, { timeout: completeMs, interval: 500 });
  expectRight(reader);
}

/** An appointment that is in both. */
interface Shown {
  reference: string;
  state: string;
  capacity: number;
  /** The reference of each participation, unless its customer was erased, and its state. */
  participations: string[];
}

/** The events say which references their ids have now. */
function shownBy({ appointments }: Mirror, events: FeedEvent[]): Shown[] {
  const references = new Map(events.map(({ data }) => [data.id, data.reference]));
  const shown = [...appointments].map(([id, { state, capacity, participations }]) => ({
    reference: references.get(id) ?? id,
    state,
    capacity,
    participations: [...participations]
      .map(
        ([participationId, participation]) =>
          `${references.get(participationId) ?? 'anonymous'} ${participation.state}`,
      )
      .toSorted(),
  }));
  return byReference(shown);
}

async function shownByApi({ practice: { crm, at } }: Office): Promise<Shown[]> {
  const { status, body } = await crm.get<Appointment[]>(`${at}/appointments`);
  expect(status).toBe(200);
  const shown = body.map(({ reference, state, capacity, participations }) => ({
    reference,
    state,
    capacity,
    participations: participations
      .map((each) => `${each.reference.replace(/^anonymous-.*/, 'anonymous')} ${each.state}`)
      .toSorted(),
  }));
  return byReference(shown);
}

function byReference(shown: Shown[]): Shown[] {
  return shown.toSorted((one, other) => one.reference.localeCompare(other.reference));
}

const mirroredTypes = [
  ...['created', 'changed', 'cancelled', 'deleted'].map((change) => `appointment.${change}`),
  ...['created', 'changed', 'moved', 'removed'].map((change) => `participation.${change}`),
];

/** Otherwise the mirror could hardly have been wrong. */
async function expectMuchToCompare({ office }: Reader): Promise<void> {
  expect(office.rejectedAsFull).toBeGreaterThan(100);
  const events = await readFeed(office.practice.crm, { limit: '1000' });
  expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(mirroredTypes));
  const seated = events.filter(
    ({ type, data }) => type === 'participation.created' && data.reference !== null && data.state !== 'REQUESTED',
  );
  expect(seated.filter(({ data }) => data.ignoreCapacity !== data.reference!.startsWith(deliberately))).toEqual([]);
}
