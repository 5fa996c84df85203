export {
  type Child,
  type ChildExit,
  describeExit,
  type OnSpawn,
  spawnChild,
  type SpawnOptions,
  waitUntilReady,
} from './child.ts';
export { freePort } from './free-port.ts';
export { type InboxServer, startInbox } from './inbox.ts';
export { lastLines } from './log-file.ts';
export { type NatsServer, startNats } from './nats.ts';
export { type PostgresServer, startPostgres } from './postgres.ts';
export {
  childrenOf,
  processHasStopped,
  processIsAlive,
  type ProcessIdentity,
  processStartTime,
  signalProcess,
  stopProcess,
} from './process-table.ts';
export { createStandby } from './standby.ts';
export { isReachable, waitUntil } from './wait-until.ts';
export { type OnCall, startWebhookReceiver, type WebhookEvent, type WebhookReceiver } from './webhook-receiver.ts';
export { withClient } from './with-client.ts';
