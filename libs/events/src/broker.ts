import {
  jetstream,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamInfo,
} from '@nats-io/jetstream';
import { connect, type NatsConnection, nanos, type NodeConnectionOptions } from '@nats-io/transport-node';
import type { Logger, Metrics } from '@scheduling/runtime';
import { setTimeout as delay } from 'node:timers/promises';
import { Gauge } from 'prom-client';
import { connectionOptions } from './connection-options.ts';
import { createTroubleLog, isDenied, isRejectedUser } from './connection-trouble.ts';
import type { EventDefinition } from './events.ts';
import { createListening } from './listening.ts';
import type { NatsSettings } from './nats-settings.ts';
import { parseNatsUrl } from './nats-url.ts';
import { inboxPrefix, nudgeSubject, streamKeeper, streamName } from './nats-users.ts';
import { createPublisher, type Publisher } from './publisher.ts';

/** How long the stream and the outbox keep published events, in milliseconds. */
export const retentionMs = 7 * 24 * 60 * 60 * 1_000;

/** How the stream is created; operators are warned if it differs. */
export const streamSettings = {
  name: streamName,
  subjects: ['scheduling.>'],
  storage: StorageType.File,
  retention: RetentionPolicy.Limits,
  max_age: nanos(retentionMs),
};

const reconnectMs = 500;
/** So that not all clients come back at the same moment. */
const reconnectJitterMs = 100;
const defaultPingMs = 5_000;
const maxUnansweredPings = 2;

export interface JetStream {
  client: JetStreamClient;
  manager: JetStreamManager;
  publisher: Publisher;
}

/**
 * A connection to NATS, established in the background and re-established indefinitely; the service works without it,
 * and its events wait in the outbox.
 */
export interface Broker extends AsyncDisposable {
  /**
   * False while NATS is unavailable, or does not let this process listen: whatever is published meanwhile for {@link
   * listen} is lost.
   */
  readonly connected: boolean;
  /** Waits for the connection and ensures that the stream exists. Rejects when the signal aborts. */
  jetStream(signal: AbortSignal): Promise<JetStream>;
  /**
   * Calls back for every event of this kind that is published while this process is connected: for caches, not for
   * effects.
   */
  listen<Data>(definition: EventDefinition<Data>, onEvent: (data: Data) => void): void;
  /**
   * Notifies every process that is currently connected that there is work; others miss it, so each process must also
   * poll.
   */
  nudge(topic: string): void;
  onNudge(topic: string, listener: () => void): void;
  /**
   * Called when events may have been missed until now: when this process begins to listen, when NATS lets it listen
   * again, and when a lost connection is re-established.
   */
  onReconnect(listener: () => void): void;
}

export interface BrokerOptions extends NatsSettings {
  /** The name of the service, which is that of its NATS user. */
  name: string;
  logger: Logger;
  /** The number of servers that store the stream; 1 by default. */
  streamReplicas?: number;
  /** Where the state of the connection is reported. */
  metrics?: Metrics;
  /**
   * How often NATS must answer, in milliseconds; 5 s by default. A hanging server, or a network that drops packets,
   * closes no connection: it counts as lost when the third answer is due.
   */
  pingMs?: number;
}

export function connectBroker(options: BrokerOptions): Broker {
  const closing = new AbortController();
  const reconnectListeners: (() => void)[] = [];
  const logTrouble = createTroubleLog(options.logger);
  const notifyReconnected = (): void => reconnectListeners.forEach((listener) => listener());
  // Whatever is published while a subject is denied is lost, as without a connection.
  const listening = createListening(notifyReconnected);
  let established: NatsConnection | undefined;
  let publisher: Publisher | undefined;
  let online = false;
  const connecting = connectForever(options, logTrouble, closing.signal).then((connection) => {
    established = connection;
    online = true;
    keepServers(connection, parseNatsUrl(options.url).servers);
    void watch(connection);
    return connection;
  });
  const isConnected = (): boolean => online && !listening.isDenied;
  if (options.metrics) showConnection(options.metrics, isConnected);
  // Users of the connection see the rejection of an aborted attempt; without any user it is not an error.
  connecting.catch(() => undefined);

  async function watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      // A rejected attempt to reconnect counts as a disconnect, too, and success is reported once for each of them.
      if (status.type === 'disconnect' && online) {
        online = false;
        options.logger.warn('lost the connection to NATS');
      } else if (status.type === 'reconnect' && !online) {
        online = true;
        options.logger.info('reconnected to NATS');
        notifyReconnected();
      } else if (status.type === 'error' && (isRejectedUser(status.error) || isDenied(status.error))) {
        logTrouble(status.error);
      }
    }
  }

  return {
    get connected() {
      return isConnected();
    },
    jetStream: async (signal) => {
      const connection = await untilAborted(connecting, signal);
      const manager = await jetstreamManager(connection, { checkAPI: false, timeout: 2_000 });
      await ensureStream(manager, options);
      publisher ??= createPublisher(connection, inboxPrefix(options.name));
      return { client: jetstream(connection, { timeout: 2_000 }), manager, publisher };
    },
    listen: (definition, onEvent) => {
      const begin = (connection: NatsConnection): Promise<void> => {
        listening.listen(connection, definition.subject, ({ data }) =>
          deliver(definition, data, onEvent, options.logger),
        );
        return connection.flush().then(notifyReconnected);
      };
      connecting.then(begin).catch(() => undefined);
    },
    nudge: (topic) => {
      if (online) established?.publish(nudgeSubject(topic));
    },
    onNudge: (topic, listener) => {
      connecting.then((connection) => subscribeToNudge(connection, topic, listener)).catch(() => undefined);
    },
    onReconnect: (listener) => {
      reconnectListeners.push(listener);
    },
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      await established?.close();
    },
  };
}

function subscribeToNudge(connection: NatsConnection, topic: string, listener: () => void): void {
  connection.subscribe(nudgeSubject(topic), { callback: (error) => void (error === null && listener()) });
}

function showConnection(metrics: Metrics, isConnected: () => boolean): void {
  new Gauge({
    name: 'scheduling_nats_connected',
    help: 'Whether this process is connected to NATS (1 or 0)',
    registers: [metrics],
    collect() {
      this.set(Number(isConnected()));
    },
  });
}

/** A malformed event is left out: an error in the callback would end the connection. */
function deliver<Data>(
  definition: EventDefinition<Data>,
  bytes: Uint8Array,
  onEvent: (data: Data) => void,
  logger: Logger,
): void {
  let event: Data;
  try {
    event = definition.decode(bytes);
  } catch (error) {
    logger.warn({ err: error, event: definition.name }, 'ignored a malformed event');
    return;
  }
  onEvent(event);
}

async function connectForever(
  options: BrokerOptions,
  logTrouble: (error: unknown) => void,
  signal: AbortSignal,
): Promise<NatsConnection> {
  for (;;) {
    try {
      return await connect({
        ...connectionOptions(options, options.name),
        timeout: 2_000,
        // By default, it would give up for good when it is rejected twice; the user may be created, or its password
        // corrected, later.
        ignoreAuthErrorAbort: true,
        maxReconnectAttempts: -1,
        ...createReconnectPace(),
        pingInterval: options.pingMs ?? defaultPingMs,
        maxPingOut: maxUnansweredPings,
      });
    } catch (error) {
      logTrouble(error);
      await delay(500, undefined, { signal });
    }
  }
}

/** The client forgets the servers to which it could not connect before the connection was established. */
function keepServers(connection: NatsConnection, servers: string[]): void {
  const known = connection.getServers().map(({ listen }) => listen);
  const forgotten = servers.filter((server) => !known.includes(server));
  if (forgotten.length > 0) connection.setServers([...known, ...forgotten]);
}

/**
 * When to try again: each server once, one immediately after the other, and then a pause. The client adds the pause to
 * the time of the last attempt at a server, by the clock of the machine, and compares the sum with the clock. If the
 * clock was set back since then, it would wait until the clock has caught up. So another one decides when it is time,
 * and then any sum is in the past.
 */
function createReconnectPace(): Pick<NodeConnectionOptions, 'reconnectDelayHandler' | 'reconnectToServer'> {
  let attempts = 0;
  /** Those of the URL, and others of the cluster, of which they tell the client. */
  let servers = 1;
  let attemptedMs = Number.NEGATIVE_INFINITY;
  return {
    reconnectDelayHandler: () => {
      const waitMs = reconnectMs + Math.random() * reconnectJitterMs;
      const isOver = performance.now() - attemptedMs >= waitMs;
      if (isOver) attempts = 0;
      return attempts < servers ? Number.NEGATIVE_INFINITY : waitMs;
    },
    // Called before each attempt.
    reconnectToServer: (known) => {
      servers = known.length;
      attempts += 1;
      attemptedMs = performance.now();
      // The one whose turn it is.
      return null;
    },
  };
}

/**
 * Creates the stream if there is none; its keeper adds missing replicas to an existing one. Other settings changed by
 * an operator are left alone.
 */
async function ensureStream(
  manager: JetStreamManager,
  { name, streamReplicas: replicas = 1 }: BrokerOptions,
): Promise<void> {
  const existing = await findStream(manager);
  if (existing === undefined) await manager.streams.add({ ...streamSettings, num_replicas: replicas });
  else if (name === streamKeeper && existing.config.num_replicas < replicas)
    await manager.streams.update(streamName, { num_replicas: replicas });
}

/** Undefined if there is none. */
export async function findStream(manager: JetStreamManager): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.info(streamName);
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) return undefined;
    throw error;
  }
}

function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
