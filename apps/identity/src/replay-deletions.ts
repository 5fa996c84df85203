import { type Broker, type EventDefinition, readPublished } from '@scheduling/events';
import { recordAction } from '@scheduling/messaging';
import type { Transaction } from 'kysely';
import type { IdentitySchema } from './db/schema.ts';
import type { IdentityDependencies } from './dependencies.ts';

export interface Replay {
  /** When the backup was made. */
  since: Date;
  /** Where the previous part ended; undefined for the first. */
  continuation: string | undefined;
}

/** What was deleted. */
export interface DeletedId {
  crmId: string;
  id: string;
}

/** Deletions of one kind. */
export interface Deletions<Data, Kept> {
  definition: EventDefinition<Data>;
  /** Of the temporary consumer that reads the events. */
  consumer: string;
  action: Parameters<typeof recordAction>[1];
  idOf(data: Data): DeletedId;
  /** Publishes the deletions again, except those of what is not to be deleted, which it returns. */
  repeat(tx: Transaction<IdentitySchema>, part: DeletedId[]): Promise<Kept[]>;
}

export interface ReplayedPart<Kept> {
  replayed: number;
  kept: Kept[];
  eventsReachBackTo: Date | undefined;
  continuation: string | undefined;
}

/** Such a part, and reading the events for it, takes some tenths of a second, of the 2 s that a call may take. */
const maxPerPart = 1_000;

/**
 * Repeats the deletions that were published since a backup was made, after any of the databases was restored from it:
 * those of one part, in one transaction. The deletions are known from the events in NATS, which are kept for 7 days; they
 * are published again as new events, so other services repeat them, too. Rejects with `broker.unavailable`.
 */
export async function replayDeletions<Data, Kept>(
  { database }: IdentityDependencies,
  broker: Broker,
  { since, continuation }: Replay,
  { definition, consumer, action, idOf, repeat }: Deletions<Data, Kept>,
): Promise<ReplayedPart<Kept>> {
  const published = await readPublished(broker, consumer, definition, since);
  const deleted = new Map(published.events.map(idOf).map((it) => [`${it.crmId} ${it.id}`, it]));
  const { part, next } = takePart(deleted, continuation);
  const kept = await database.transaction(async (tx) => {
    if (continuation === undefined) await recordAction(tx, action, since.toISOString());
    return repeat(tx, part);
  });
  return {
    replayed: part.length - kept.length,
    kept,
    eventsReachBackTo: published.reachBackTo,
    continuation: next,
  };
}

/**
 * Every call sorts the deletions in the same way, so parts neither overlap nor leave any out, although the parts before
 * have been published again.
 */
function takePart(
  deleted: Map<string, DeletedId>,
  continuation: string | undefined,
): { part: DeletedId[]; next: string | undefined } {
  const left = [...deleted.keys()].filter((key) => key > (continuation ?? '')).toSorted();
  const keys = left.slice(0, maxPerPart);
  return { part: keys.map((key) => deleted.get(key)!), next: keys.length < left.length ? keys.at(-1) : undefined };
}
