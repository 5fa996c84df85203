import type { Generated } from 'kysely';

/** The tables of the outbox and the inbox, in the database of every service that publishes or consumes. */
export interface MessagingSchema {
  outbox: OutboxTable;
  outbox_position: OutboxPositionTable;
  inbox: InboxTable;
  dead_letter: DeadLetterTable;
}

export interface OutboxTable {
  id: Generated<string>;
  subject: string;
  type: string;
  payload: Uint8Array;
  request_id: string;
  /** The span in which the fact came about (W3C Trace Context), when it is traced. */
  traceparent: string | null;
  created_at: Generated<Date>;
  sent_at: Date | null;
}

/** Where the stream stood when the last event was acknowledged; one row. */
export interface OutboxPositionTable {
  id: Generated<boolean>;
  stream_created: string;
  sequence: number;
  event_id: string;
  /** Set while what the stream lost is published again: the last of it, by id. */
  refill_after: string | null;
  /** When the loss was detected: what was sent later is in the stream. */
  refill_until: Date | null;
}

export interface InboxTable {
  consumer: string;
  event_id: string;
  processed_at: Generated<Date>;
}

export interface DeadLetterTable {
  consumer: string;
  event_id: string;
  subject: string;
  payload: Uint8Array;
  request_id: string;
  error: string;
  attempts: number;
  failed_at: Generated<Date>;
}
