export { listAuditEntries, recordAction, recordPart } from './audit.ts';
export { messagingCleanUps } from './clean-ups.ts';
export { startConsumers } from './consumer.ts';
export {
  type DeadLetterKey,
  dropDeadLetter,
  getDeadLetter,
  listDeadLetters,
  retryDeadLetter,
  type RetryOptions,
} from './dead-letters.ts';
export { messagingMigrations } from './migrations.ts';
export { appendEvent, originJson, outboxJson } from './outbox.ts';
export { startRelay } from './relay.ts';
export { type OutboxState, selectOutboxState } from './relay-metrics.ts';
export type { MessagingSchema } from './schema.ts';
export {
  type Effect,
  type EffectCall,
  recordings,
  type Subscription,
  subscription,
  subscriptions,
} from './subscription.ts';
