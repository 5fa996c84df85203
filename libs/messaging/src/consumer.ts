import {
  AckPolicy,
  type Consumer,
  type ConsumerConfig,
  type ConsumerMessages,
  DeliverPolicy,
  type JsMsg,
} from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { type Broker, consumerName, isConsumerMissing, isRepeated, streamName } from '@scheduling/events';
import { type Database, isUnavailable } from '@scheduling/postgres';
import {
  inSpan,
  isUuid,
  type Logger,
  type Metrics,
  newRequestId,
  runWithContext,
  type SpanOptions,
  startLoop,
} from '@scheduling/runtime';
import type { Kysely } from 'kysely';
import { applyOnce, describeFailure, type ReceivedEvent } from './apply-event.ts';
import { type Consumption, measureConsumers } from './consumer-metrics.ts';
import { countFailure, type FailedEvent, putAside } from './event-failures.ts';
import { createInbox, type Inbox } from './inbox.ts';
import type { MessagingSchema } from './schema.ts';
import type { Subscription } from './subscription.ts';

export interface ConsumersOptions<Schema extends MessagingSchema> {
  /** Prefix of the durable consumers' names; all replicas of a service share them. */
  service: string;
  subscriptions: Subscription<Schema>[];
  database: Database<Schema>;
  broker: Broker;
  logger: Logger;
  /** An event that has failed this many times goes to the dead letters; 10 by default. */
  maxAttempts?: number;
  /** How long a fetch waits for events, in milliseconds; 30 s by default. */
  fetchMs?: number;
  /** Where the events are counted. */
  metrics?: Metrics;
}

interface Consuming<Schema extends MessagingSchema> extends ConsumersOptions<Schema> {
  count: (consumer: string, outcome: Consumption) => void;
}

/** A subscription with its durable consumer. */
interface Subscribed<Schema extends MessagingSchema> {
  subscription: Subscription<Schema>;
  /** The name of the consumer. */
  name: string;
  inbox: Inbox<Schema>;
}

/** How many events of a consumer a process handles at the same time, and how many it records. */
const maxInFlight = { handle: 20, record: 500 };
const defaultFetchMs = 30_000;
/** The duration of the next fetch if the consumer may be stuck. */
const suspiciousFetchMs = 5_000;
/**
 * A request that NATS silently lost times out after two of these, unless the clock was set back since it was sent: then
 * after the duration of the fetch and two of these.
 */
const heartbeatMs = 2_500;
/** Longer than a handler and its effect may take; messages of a killed process are redelivered after this time. */
const ackWaitMs = 15_000;
/** How long a process that stops waits for what NATS was just sending to it. */
const drainMs = 1_000;
const maxDelayMs = 30_000;
const defaultMaxAttempts = 10;

/** Consumes every subscription with a durable pull consumer, until disposed of. */
export function startConsumers<Schema extends MessagingSchema>(options: ConsumersOptions<Schema>): AsyncDisposable {
  const consuming = { ...options, count: counterOf(options) };
  const loops = options.subscriptions.map((each) => startConsumer(consuming, each));
  return {
    [Symbol.asyncDispose]: async () => {
      await Promise.all(loops.map((loop) => loop[Symbol.asyncDispose]()));
    },
  };
}

function counterOf<Schema extends MessagingSchema>(options: ConsumersOptions<Schema>): Consuming<Schema>['count'] {
  const { service, subscriptions, database, broker, metrics } = options;
  if (metrics === undefined) return () => undefined;
  const consumers = subscriptions.map(({ definition }) => consumerName(service, definition));
  return measureConsumers({ consumers, db: database.kysely as unknown as Kysely<MessagingSchema>, broker, metrics });
}

/** A deleted stream or consumer, or a lost connection, makes a round fail; the next round looks them up again. */
function startConsumer<Schema extends MessagingSchema>(
  options: Consuming<Schema>,
  subscription: Subscription<Schema>,
): AsyncDisposable {
  const name = consumerName(options.service, subscription.definition);
  const subscribed = { subscription, name, inbox: createInbox(options.database, name) };
  let consumer: Consumer | undefined;
  let silentAt: number | undefined;
  let connection = new AbortController();
  // The client would resume the fetch by itself, but if NATS does not answer at once, only after the duration of a
  // fetch.
  options.broker.onReconnect(() => connection.abort());
  return startLoop({
    name: `the consumer ${name}`,
    logger: options.logger,
    everyMs: 0,
    run: async (_limit, signal) => {
      connection = new AbortController();
      const ended = AbortSignal.any([signal, connection.signal]);
      try {
        consumer ??= await ensureConsumer(options.broker, name, subscription.definition.subject, signal);
        const fetchMs = Math.min(
          options.fetchMs ?? defaultFetchMs,
          silentAt === undefined ? Number.POSITIVE_INFINITY : suspiciousFetchMs,
        );
        const handled = await consumeBatch(options, subscribed, consumer, fetchMs, { stopping: signal, ended });
        silentAt =
          handled > 0 || ended.aborted ? undefined : await replaceWhenStuck(options, consumer, silentAt, signal);
        // NATS may have come back without it.
        if (connection.signal.aborted) consumer = undefined;
        return handled;
      } catch (error) {
        consumer = undefined;
        throw error;
      }
    },
  });
}

async function ensureConsumer(broker: Broker, name: string, subject: string, signal: AbortSignal): Promise<Consumer> {
  const { client, manager } = await broker.jetStream(signal);
  try {
    await manager.consumers.info(streamName, name);
  } catch (error) {
    if (!isConsumerMissing(error)) throw error;
    await manager.consumers.add(streamName, { ...consumerSettings(name, subject), deliver_policy: DeliverPolicy.All });
  }
  return client.consumers.get(streamName, name);
}

function consumerSettings(name: string, subject: string): Partial<ConsumerConfig> {
  return {
    durable_name: name,
    filter_subject: subject,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(ackWaitMs),
    max_deliver: -1,
    max_ack_pending: 1_000,
  };
}

/**
 * Processes the waiting events, or waits for some; a new request per batch wakes a consumer that fell silent. Returns
 * how many they were. Events that arrive while the process stops are given back, for another one to process them at
 * once.
 */
async function consumeBatch<Schema extends MessagingSchema>(
  options: Consuming<Schema>,
  subscribed: Subscribed<Schema>,
  consumer: Consumer,
  fetchMs: number,
  { stopping, ended }: { stopping: AbortSignal; ended: AbortSignal },
): Promise<number> {
  const idleMs = Math.min(heartbeatMs, fetchMs / 2);
  const messages = await consumer.fetch({
    max_messages: 'record' in subscribed.subscription ? maxInFlight.record : maxInFlight.handle,
    expires: fetchMs,
    idle_heartbeat: idleMs,
  });
  // The client counts the missing heartbeats by the clock of the machine.
  const timers = [setTimeout(() => messages.stop(new Error('NATS did not end the fetch')), fetchMs + 2 * idleMs)];
  const stop = (): void => {
    if (!stopping.aborted) return messages.stop();
    drain(messages);
    timers.push(setTimeout(() => messages.stop(), drainMs));
  };
  if (ended.aborted) stop();
  ended.addEventListener('abort', stop, { once: true });
  const running: Promise<void>[] = [];
  const late: JsMsg[] = [];
  try {
    for await (const message of messages) {
      if (stopping.aborted) late.push(message);
      else running.push(processMessage(options, subscribed, message, stopping));
    }
  } finally {
    timers.forEach((timer) => clearTimeout(timer));
    ended.removeEventListener('abort', stop);
    if (late.length > 0) await giveBack(consumer, late);
    await Promise.all(running);
  }
  return running.length;
}

/**
 * Asks NATS for no more, and ends the iteration when it has confirmed that. The client offers only `stop`, which drops
 * what is on its way: NATS would deliver that again when its acknowledgement is overdue.
 */
function drain(messages: ConsumerMessages & { sub?: { drain: () => Promise<void> } }): void {
  messages.sub?.drain().catch(() => messages.stop());
}

/**
 * NATS 2.9 would count the first one as delivered to the fetch that has ended, unless it has noticed that before, and
 * it looks when it is asked for the consumer's state.
 */
async function giveBack(consumer: Consumer, messages: JsMsg[]): Promise<void> {
  await consumer.info().catch(() => undefined);
  for (const message of messages) message.nak();
}

/**
 * Checks a consumer after an empty fetch. One with waiting messages, none of them in delivery, that has delivered
 * nothing since the previous check (`silentAt`) is stuck, and is replaced by one that starts after the last
 * acknowledged message. A single check does not prove that: messages may have arrived after the fetch. Returns the
 * sequence number of the last message delivered if messages wait, for the next check.
 */
async function replaceWhenStuck<Schema extends MessagingSchema>(
  { broker, logger }: ConsumersOptions<Schema>,
  consumer: Consumer,
  silentAt: number | undefined,
  signal: AbortSignal,
): Promise<number | undefined> {
  const {
    name,
    config,
    num_pending: waiting,
    num_ack_pending: inDelivery,
    delivered,
    ack_floor: acknowledged,
  } = await consumer.info();
  if (waiting === 0 || inDelivery > 0) return undefined;
  if (delivered.stream_seq !== silentAt) return delivered.stream_seq;
  const { manager } = await broker.jetStream(signal);
  await consumer.delete();
  await manager.consumers.add(streamName, {
    ...consumerSettings(name, config.filter_subject!),
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: acknowledged.stream_seq + 1,
  });
  logger.warn(
    { consumer: name, waiting },
    'the consumer delivered nothing although messages were waiting, and was replaced',
  );
  return undefined;
}

async function processMessage<Schema extends MessagingSchema>(
  options: Consuming<Schema>,
  { subscription, name: consumer, inbox }: Subscribed<Schema>,
  message: JsMsg,
  stopping: AbortSignal,
): Promise<void> {
  const requestId = message.headers?.get('x-request-id') || newRequestId();
  const span: SpanOptions = {
    kind: 'CONSUMER',
    attributes: () => ({ 'messaging.system': 'nats' }),
    parent: message.headers?.get('traceparent') || undefined,
  };
  await runWithContext({ requestId }, () =>
    inSpan(`process ${subscription.definition.name}`, span, async ({ fail: failSpan }) => {
      try {
        const applied = await applyOnce(inbox, subscription, eventOf(message));
        message.ack();
        options.count(consumer, applied ? 'processed' : 'repeated');
      } catch (error) {
        // Another process gets it at once.
        if (stopping.aborted && isUnavailable(error)) return message.nak();
        failSpan(error);
        options.count(consumer, await fail(options, consumer, message, requestId, error));
      }
    }),
  );
}

/**
 * An unavailable dependency, even the own database, is waited for indefinitely; after any other error the event is
 * retried a few times, then put aside.
 */
async function fail<Schema extends MessagingSchema>(
  options: ConsumersOptions<Schema>,
  consumer: string,
  message: JsMsg,
  requestId: string,
  error: unknown,
): Promise<Consumption> {
  if (isUnavailable(error)) return wait(options, consumer, message, error);
  const { database, logger, maxAttempts = defaultMaxAttempts } = options;
  const event: FailedEvent = { consumer, eventId: eventIdOf(message) };
  try {
    // NATS counts the deliveries that only waited, too.
    const attempts = await countFailure(database, event);
    if (attempts < maxAttempts) {
      const delayMs = Math.min(maxDelayMs, 100 * 2 ** attempts);
      logger.warn({ err: error, consumer, attempts, delayMs }, 'the event could not be processed yet');
      message.nak(delayMs);
      return 'failed';
    }
    await putAside(database, {
      ...event,
      subject: message.subject,
      payload: message.data,
      requestId,
      error: describeFailure(error),
      attempts,
    });
    message.term();
    logger.error({ err: error, consumer, eventId: event.eventId, attempts }, 'the event was dead-lettered');
    return 'dead_letter';
  } catch (recordError) {
    logger.warn({ err: recordError, consumer }, 'the failure of an event could not be recorded yet');
    return wait(options, consumer, message, error);
  }
}

function wait(
  { logger }: Pick<ConsumersOptions<MessagingSchema>, 'logger'>,
  consumer: string,
  message: JsMsg,
  error: unknown,
): Consumption {
  const { deliveryCount: deliveries } = message.info;
  const delayMs = 100 * 2 ** Math.min(deliveries, 5);
  logger.warn({ err: error, consumer, deliveries, delayMs }, 'the event waits for an unavailable dependency');
  message.nak(delayMs);
  return 'waiting';
}

function eventOf(message: JsMsg): ReceivedEvent {
  return {
    id: eventIdOf(message),
    payload: message.data,
    mayBeRepeated: message.info.deliveryCount > 1 || isRepeated(message.headers),
  };
}

/**
 * Events have the id of the outbox row; a message that something else published on the subject gets one derived from
 * its sequence number.
 */
function eventIdOf(message: JsMsg): string {
  const id = message.headers?.get('ce-id') ?? '';
  return isUuid(id) ? id.toLowerCase() : `00000000-0000-0000-0000-${message.seq.toString(16).padStart(12, '0')}`;
}
