export { type Broker, connectBroker, type JetStream, retentionMs, streamName, streamSettings } from './broker.ts';
export { consumerName, type EventDefinition, events } from './events.ts';
export { type ConsumerReport, inspectStream, type StreamReport } from './inspect-stream.ts';
export { type EventAttributes, eventHeaders, isRepeated } from './publish-event.ts';
export { readPublished } from './read-published.ts';
