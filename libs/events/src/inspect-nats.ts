import {
  JetStreamApiError,
  jetstreamManager,
  type ConsumerInfo,
  type JetStreamManager,
  type StreamConfig,
} from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { findStream } from './broker.ts';
import { connectionOptions } from './connection-options.ts';
import type { NatsSettings } from './nats-settings.ts';
import { type NatsUser, streamName } from './nats-users.ts';

/** NATS as an operator sees it. */
export interface NatsReport {
  /** Whether NATS refuses clients that give no user. */
  requiresUser: boolean;
  /** Undefined if it does not exist. */
  stream: StreamReport | undefined;
}

/** The stream of all events. */
export interface StreamReport {
  config: StreamConfig;
  messages: number;
  /** The stream is in a cluster of servers, so it can have replicas. */
  clustered: boolean;
  /** Replicas that do not answer or lag behind. */
  laggingReplicas: string[];
  consumers: ConsumerReport[];
  /** The server's clock, if it reports it. */
  serverTime: Date | undefined;
}

export interface ConsumerReport {
  name: string;
  /** Events that no replica of the service has received yet. */
  pending: number;
  /** Events that are being processed or are waiting for redelivery. */
  unacknowledged: number;
  /** When the oldest of both was published. */
  oldest: Date | undefined;
}

const timeoutMs = 3_000;

const user: NatsUser = 'doctor';

/**
 * Reads the state of the stream and its consumers. Changes nothing. Rejects if NATS does not answer, or rejects the
 * user.
 */
export async function inspectNats(settings: NatsSettings): Promise<NatsReport> {
  const connection = await connect({ ...connectionOptions(settings, user), timeout: timeoutMs, reconnect: false });
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: timeoutMs });
    return { requiresUser: connection.info?.auth_required === true, stream: await inspectStream(manager) };
  } finally {
    await connection.close();
  }
}

async function inspectStream(manager: JetStreamManager): Promise<StreamReport | undefined> {
  const info = await findStream(manager);
  if (info === undefined) return undefined;
  const consumers: ConsumerReport[] = [];
  for await (const consumer of manager.consumers.list(streamName)) consumers.push(await describe(manager, consumer));
  const { ts } = info as { ts?: string };
  return {
    config: info.config,
    messages: info.state.messages,
    clustered: info.cluster?.name !== undefined,
    laggingReplicas: (info.cluster?.replicas ?? [])
      .filter(({ offline, current }) => offline || !current)
      .map(({ name }) => name),
    consumers,
    serverTime: ts === undefined ? undefined : new Date(ts),
  };
}

async function describe(manager: JetStreamManager, info: ConsumerInfo): Promise<ConsumerReport> {
  const waiting = info.num_pending + info.num_ack_pending > 0;
  return {
    name: info.name,
    pending: info.num_pending,
    unacknowledged: info.num_ack_pending,
    oldest: waiting ? await publishedNext(manager, info) : undefined,
  };
}

/**
 * When the first event after the last acknowledged one was published. It may have been acknowledged or have expired in
 * the meantime.
 */
async function publishedNext(manager: JetStreamManager, info: ConsumerInfo): Promise<Date | undefined> {
  try {
    // The server accepts both together; the client's types allow only one of them at a time.
    const query = { seq: info.ack_floor.stream_seq + 1, next_by_subj: info.config.filter_subject ?? '>' };
    const message = await manager.streams.getMessage(streamName, query);
    return message?.time;
  } catch (error) {
    if (error instanceof JetStreamApiError) return undefined;
    throw error;
  }
}
