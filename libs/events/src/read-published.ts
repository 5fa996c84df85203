import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { DomainError } from '@scheduling/errors';
import { type Broker, type JetStream, streamName } from './broker.ts';
import type { EventDefinition } from './events.ts';

export interface PublishedEvents<Data> {
  events: Data[];
  /** When the oldest event of any kind in the stream was published; undefined if the stream is empty. */
  reachBackTo: Date | undefined;
}

const connectMs = 1_500;
const fetchExpiresMs = 1_500;
/** A consumer that its process could not delete expires. */
const inactiveMs = 10_000;

/**
 * Every event of one kind that was published since then and is still in the stream, possibly with duplicates. Rejects with
 * `broker.unavailable`.
 */
export async function readPublished<Data>(broker: Broker, definition: EventDefinition<Data>, since: Date): Promise<PublishedEvents<Data>> {
  try {
    const stream = await broker.jetStream(AbortSignal.timeout(connectMs));
    const { state } = await stream.manager.streams.info(streamName);
    const events = (await readMessages(stream, definition.subject, since)).map((bytes) => definition.decode(bytes));
    return { events, reachBackTo: state.messages > 0 ? new Date(state.first_ts) : undefined };
  } catch (error) {
    throw new DomainError('broker.unavailable', { cause: error });
  }
}

async function readMessages({ client, manager }: JetStream, subject: string, since: Date): Promise<Uint8Array[]> {
  const { name, num_pending: count } = await manager.consumers.add(streamName, {
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
    for await (const message of await consumer.fetch({ max_messages: count, expires: fetchExpiresMs })) bodies.push(message.data);
    if (bodies.length < count) throw new Error(`${bodies.length} of ${count} events came`);
    return bodies;
  } finally {
    await manager.consumers.delete(streamName, name);
  }
}
