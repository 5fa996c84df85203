import { AckPolicy, DeliverPolicy, type JetStreamManager } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { DomainError } from '@scheduling/errors';
import { reasonOf } from '@scheduling/runtime';
import type { Broker, JetStream } from './broker.ts';
import type { EventDefinition } from './events.ts';
import { isConsumerMissing } from './is-consumer-missing.ts';
import { streamName } from './nats-users.ts';

export interface PublishedEvents<Data> {
  events: Data[];
  /** When the oldest event of any kind in the stream was published; undefined if the stream is empty. */
  reachBackTo: Date | undefined;
}

const connectMs = 1_500;
/** How many are fetched at once, and how long at least one of them may take. */
const batchSize = 500;
const fetchExpiresMs = 1_500;
/** A consumer that its process could not delete expires. */
const inactiveMs = 10_000;

/**
 * Every event of one kind that was published since then and is still in the stream, possibly with duplicates. Rejects
 * with `broker.unavailable`, also if it is called again before it is done.
 *
 * @param name of the temporary consumer that it creates; the permissions of a user contain the names of its consumers
 */
export async function readPublished<Data>(
  broker: Broker,
  name: string,
  definition: EventDefinition<Data>,
  since: Date,
): Promise<PublishedEvents<Data>> {
  try {
    const stream = await broker.jetStream(AbortSignal.timeout(connectMs));
    const { state } = await stream.manager.streams.info(streamName);
    const events = (await readMessages(stream, name, definition.subject, since)).map((bytes) =>
      definition.decode(bytes),
    );
    return { events, reachBackTo: state.messages > 0 ? new Date(state.first_ts) : undefined };
  } catch (error) {
    const text = `Published events cannot be read: ${reasonOf(error)}`;
    throw new DomainError('broker.unavailable', { text, cause: error });
  }
}

async function readMessages(
  { client, manager }: JetStream,
  name: string,
  subject: string,
  since: Date,
): Promise<Uint8Array[]> {
  await deleteLeftover(manager, name);
  const { num_pending: count } = await manager.consumers.add(streamName, {
    name,
    filter_subject: subject,
    ack_policy: AckPolicy.None,
    deliver_policy: DeliverPolicy.StartTime,
    opt_start_time: since.toISOString(),
    inactive_threshold: nanos(inactiveMs),
    mem_storage: true,
  });
  try {
    if (count === 0) return [];
    const consumer = await client.consumers.get(streamName, name);
    const bodies: Uint8Array[] = [];
    while (bodies.length < count) {
      const before = bodies.length;
      const fetched = await consumer.fetch({
        max_messages: Math.min(batchSize, count - before),
        expires: fetchExpiresMs,
      });
      for await (const message of fetched) bodies.push(message.data);
      if (bodies.length === before) throw new Error(`NATS sent only ${before} of ${count} in time`);
    }
    return bodies;
  } finally {
    await manager.consumers.delete(streamName, name);
  }
}

/** A process that was killed could not delete it. */
async function deleteLeftover(manager: JetStreamManager, name: string): Promise<void> {
  try {
    await manager.consumers.delete(streamName, name);
  } catch (error) {
    if (!isConsumerMissing(error)) throw error;
  }
}
