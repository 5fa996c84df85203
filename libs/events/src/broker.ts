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
import { connect, type NatsConnection, nanos } from '@nats-io/transport-node';
import type { Logger, Metrics } from '@scheduling/runtime';
import { setTimeout as delay } from 'node:timers/promises';
import { Gauge } from 'prom-client';
import type { EventDefinition } from './events.ts';

/** The one stream of all events. */
export const streamName = 'scheduling';
/** How long the stream and the outbox keep what was published, in milliseconds. */
export const retentionMs = 7 * 24 * 60 * 60 * 1_000;

/** How the stream is made, and what operators are told when it is otherwise. */
export const streamSettings = {
  name: streamName,
  subjects: ['scheduling.>'],
  storage: StorageType.File,
  retention: RetentionPolicy.Limits,
  max_age: nanos(retentionMs),
};

/**
 * A server that hangs, or a network that swallows packets, breaks no connection. It counts as lost after 3 s without an answer: within the 5 s
 * in which a revoked key must stop working (interface 5), whoever caches keys has to know that revocations are not heard.
 */
const pingIntervalMs = 1_000;
const maxUnansweredPings = 2;

export interface JetStream {
  client: JetStreamClient;
  manager: JetStreamManager;
}

/** A connection to NATS that is made in the background and made again for ever; the service works without it, and its events wait in the outbox. */
export interface Broker extends AsyncDisposable {
  /** False while NATS is away: what arrives meanwhile on {@link listen} is lost. */
  readonly connected: boolean;
  /** Waits for the connection and makes sure that the stream exists. Rejects when the signal aborts. */
  jetStream(signal: AbortSignal): Promise<JetStream>;
  /** Calls back for every event of this kind that is published while this process is connected: for caches, not for effects. */
  listen<Data>(definition: EventDefinition<Data>, onEvent: (data: Data) => void): void;
  /** Tells every process that is connected at this moment that something is to be done; lost for all others, so each has to look by itself now and then. */
  nudge(topic: string): void;
  onNudge(topic: string, listener: () => void): void;
  /** Called when the connection was lost and is back. */
  onReconnect(listener: () => void): void;
}

export interface BrokerOptions {
  url: string;
  name: string;
  logger: Logger;
  /** On how many servers the stream is kept; 1 when not given. */
  streamReplicas?: number;
  /** Where it is shown whether there is a connection. */
  metrics?: Metrics;
}

export function connectBroker(options: BrokerOptions): Broker {
  const closing = new AbortController();
  const reconnectListeners: (() => void)[] = [];
  let established: NatsConnection | undefined;
  let connected = false;
  const connecting = connectForever(options, closing.signal).then((connection) => {
    established = connection;
    connected = true;
    void watch(connection);
    return connection;
  });
  if (options.metrics) showConnection(options.metrics, () => connected);
  // Whoever needs the connection sees the rejection of an aborted attempt; nobody needing it is no error.
  connecting.catch(() => undefined);

  async function watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === 'disconnect') {
        connected = false;
        options.logger.warn('lost the connection to NATS');
      } else if (status.type === 'reconnect') {
        connected = true;
        options.logger.info('reconnected to NATS');
        for (const listener of reconnectListeners) listener();
      }
    }
  }

  return {
    get connected() {
      return connected;
    },
    jetStream: async (signal) => {
      const connection = await untilAborted(connecting, signal);
      const manager = await jetstreamManager(connection, { checkAPI: false, timeout: 2_000 });
      await ensureStream(manager, options.streamReplicas ?? 1);
      return { client: jetstream(connection, { timeout: 2_000 }), manager };
    },
    listen: (definition, onEvent) => {
      void connecting.then((connection) => {
        connection.subscribe(definition.subject, {
          callback: (error, message) => {
            if (error === null) onEvent(definition.decode(message.data));
          },
        });
      }, () => undefined);
    },
    nudge: (topic) => {
      if (connected) established?.publish(nudgeSubject(topic));
    },
    onNudge: (topic, listener) => {
      void connecting.then((connection) => {
        connection.subscribe(nudgeSubject(topic), { callback: listener });
      }, () => undefined);
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

/** Outside of the stream's subjects. */
function nudgeSubject(topic: string): string {
  return `scheduling-nudge.${topic}`;
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

async function connectForever(options: BrokerOptions, signal: AbortSignal): Promise<NatsConnection> {
  for (;;) {
    try {
      return await connect({
        servers: options.url,
        name: options.name,
        timeout: 2_000,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 500,
        pingInterval: pingIntervalMs,
        maxPingOut: maxUnansweredPings,
      });
    } catch (error) {
      options.logger.warn({ err: error }, 'NATS does not respond, retrying');
      await delay(500, undefined, { signal });
    }
  }
}

/** Makes the stream when there is none, and gives one with fewer replicas what it lacks. For the rest, one that an operator has made stays as it is. */
async function ensureStream(manager: JetStreamManager, replicas: number): Promise<void> {
  const existing = await findStream(manager);
  if (existing === undefined) await manager.streams.add({ ...streamSettings, num_replicas: replicas });
  else if (existing.config.num_replicas < replicas) await manager.streams.update(streamName, { num_replicas: replicas });
}

/** Undefined when there is none. */
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
