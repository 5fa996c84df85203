export { consumerName, type Subscription, startConsumers, subscription } from './consumer.ts';
export { type DeadLetterKey, dropDeadLetter, getDeadLetter, listDeadLetters, retryDeadLetter } from './dead-letters.ts';
export { messagingMigrations } from './migrations.ts';
export { appendEvent, outboxJson, outboxRow } from './outbox.ts';
export { startRelay } from './relay.ts';
export { readOutboxState } from './relay-metrics.ts';
export type { MessagingSchema } from './schema.ts';
export { startCleanUp } from './start-clean-up.ts';
