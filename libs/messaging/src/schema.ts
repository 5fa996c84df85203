import type { EventJson } from '@scheduling/events';
import type { ColumnType, Generated } from 'kysely';

/** The tables of the outbox, the inbox and the audit trail, in the database of every service. */
export interface MessagingSchema {
  outbox: OutboxTable;
  outboxPosition: OutboxPositionTable;
  inbox: InboxTable;
  eventFailure: EventFailureTable;
  deadLetter: DeadLetterTable;
  auditEntry: AuditEntryTable;
}

export interface OutboxTable {
  id: Generated<string>;
  subject: string;
  /** Null in a row from before the migration 0001-event-data, which has the message itself. */
  data: EventJson | null;
  type: ColumnType<string | null, never, never>;
  payload: ColumnType<Uint8Array | null, never, never>;
  requestId: string;
  /** The span in which the event occurred (W3C Trace Context), if it is traced. */
  traceparent: string | null;
  createdAt: Generated<Date>;
  sentAt: Date | null;
}

/** The stream's position when the last event was acknowledged; one row. */
export interface OutboxPositionTable {
  id: Generated<boolean>;
  streamCreated: string;
  sequence: number;
  eventId: string;
  /** Set while lost events are published again: the id of the last one done. */
  refillAfter: string | null;
  /** When the loss was detected: events sent later are in the stream. */
  refillUntil: Date | null;
}

export interface InboxTable {
  consumer: string;
  eventId: string;
  processedAt: Generated<Date>;
}

/**
 * How often an event has failed that is tried again; not counted are deliveries that only waited for a dependency. A
 * row of an event that was processed later is no longer used.
 */
export interface EventFailureTable {
  consumer: string;
  eventId: string;
  failures: number;
  failedAt: Generated<Date>;
}

export interface DeadLetterTable {
  consumer: string;
  eventId: string;
  subject: string;
  payload: Uint8Array;
  requestId: string;
  error: string;
  /** How often it failed, also when an operator retried it. */
  attempts: number;
  failedAt: Generated<Date>;
}

/** What an operator has changed. */
export interface AuditEntryTable {
  id: Generated<string>;
  recordedAt: Generated<Date>;
  operator: string;
  action: string;
  target: string;
  requestId: string;
}
