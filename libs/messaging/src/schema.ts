import type { Generated } from 'kysely';

/** The tables of the outbox and the inbox, in the database of every service that publishes or consumes. */
export interface MessagingSchema {
  outbox: OutboxTable;
  outboxPosition: OutboxPositionTable;
  inbox: InboxTable;
  deadLetter: DeadLetterTable;
}

export interface OutboxTable {
  id: Generated<string>;
  subject: string;
  type: string;
  payload: Uint8Array;
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

export interface DeadLetterTable {
  consumer: string;
  eventId: string;
  subject: string;
  payload: Uint8Array;
  requestId: string;
  error: string;
  attempts: number;
  failedAt: Generated<Date>;
}
