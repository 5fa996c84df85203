import { retentionMs } from '@scheduling/events';
import { ago, type CleanUp } from '@scheduling/postgres';
import type { MessagingSchema } from './schema.ts';

const everyMs = 60 * 60 * 1_000;

/**
 * Sent events are kept as long as the stream keeps them, like the failures of events. An inbox row must outlive every
 * redelivery and refill, and the audit trail a yearly review.
 */
export const messagingCleanUps: CleanUp<MessagingSchema>[] = [
  { table: 'outbox', column: 'sentAt', before: ago(`${retentionMs} milliseconds`), everyMs },
  { table: 'inbox', column: 'processedAt', before: ago(`${2 * retentionMs} milliseconds`), everyMs },
  { table: 'eventFailure', column: 'failedAt', before: ago(`${retentionMs} milliseconds`), everyMs },
  { table: 'auditEntry', column: 'recordedAt', before: ago('400 days'), everyMs },
];
