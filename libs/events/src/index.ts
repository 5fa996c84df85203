export { type Broker, connectBroker, type JetStream, retentionMs, streamSettings } from './broker.ts';
export { isDenied, isRejectedUser } from './connection-trouble.ts';
export {
  type ConsumedEvent,
  consumedEvents,
  consumerName,
  type ConsumingService,
  consumingServices,
  type CrmEventType,
  crmEventTypes,
  type EventData,
  type EventDefinition,
  type EventJson,
  eventOf,
  events,
  isCrmEventType,
  notACrmEventType,
} from './events.ts';
export { type ConsumerReport, inspectNats, type NatsReport, type StreamReport } from './inspect-nats.ts';
export { isConsumerMissing } from './is-consumer-missing.ts';
export {
  createNatsPasswords,
  type NatsPasswords,
  natsUsersConfiguration,
  passwordVariable,
} from './nats-configuration.ts';
export { type NatsSettings, readNatsSettings, readOptionalNatsSettings } from './nats-settings.ts';
export {
  natsUsers,
  type NatsUser,
  permissionsOf,
  providerReplayConsumer,
  replayConsumer,
  revocationReplayConsumer,
  streamName,
  userReplayConsumer,
} from './nats-users.ts';
export { type EventAttributes, eventHeaders, isRepeated } from './publish-event.ts';
export type { OutgoingEvent, Publication, Publisher } from './publisher.ts';
export { readPublished } from './read-published.ts';
