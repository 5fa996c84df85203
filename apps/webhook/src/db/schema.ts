import type { MessagingSchema } from '@scheduling/messaging';
import type { IdempotencySchema } from '@scheduling/postgres';
import type { ColumnType, Generated } from 'kysely';

export interface WebhookSchema extends MessagingSchema, IdempotencySchema {
  event: EventTable;
  eventCounter: EventCounterTable;
  removedEvent: RemovedEventTable;
  incomingEvent: IncomingEventTable;
  latestVersion: LatestVersionTable;
  webhook: WebhookTable;
  webhookAttempt: WebhookAttemptTable;
  webhookTest: WebhookTestTable;
}

/** An event as other services report it: ids, states and codes, nothing personal. */
interface EventColumns {
  crmId: string;
  /** A UUID of version 7, which contains the time of the event. */
  id: string;
  type: string;
  /** The participation, appointment or customer; of a failed mail, what the mail is about. */
  subjectId: string;
  /** Counts the events of the subject from 1; 0 if their order does not matter. */
  version: number;
  /** Null in the failure of a mail that its CRM wrote to a user. */
  providerId: string | null;
  /** Of a participation, after the event. */
  appointmentId: string | null;
  /** The one that a participation left which was moved. */
  previousAppointmentId: string | null;
  /** Of a participation, if it has a customer, or the recipient of a mail. */
  customerId: string | null;
  /** The name of the state in the REST interface. Null if the subject has none, or no longer exists. */
  state: string | null;
  previousState: string | null;
  /** Of an appointment that exists, after the event. */
  capacity: number | null;
  /** Whether a participation has its seat whatever the capacity. */
  exempt: boolean | null;
  /** What the service did to it, more exactly than the type: for support. */
  cause: string | null;
  actor: string;
}

/** The events of each CRM, in their final order. */
export interface EventTable extends EventColumns {
  /** Counts the events of the CRM without a gap, and becomes visible in this order. */
  sequence: number;
  recordedAt: Date;
}

/** The sequence of the newest event of each CRM, which is kept however old it is. */
export interface EventCounterTable {
  crmId: string;
  lastSequence: number;
}

/**
 * The newest event of each CRM that has been removed from the feed: who has read it, but nothing after it, has missed
 * nothing.
 */
export interface RemovedEventTable {
  crmId: string;
  id: string;
  sequence: number;
}

/** Events that have arrived and are not in order yet. */
export interface IncomingEventTable extends EventColumns {
  arrivedAt: ColumnType<Date, never, never>;
  /**
   * The number of the event among those about its appointment, and if it was moved, among those about the one that it
   * left. Null if there is none.
   */
  ordinal: number | null;
  previousOrdinal: number | null;
}

/** The last event of each subject, for as long as the subject exists, and a month longer. */
export interface LatestVersionTable {
  crmId: string;
  subjectId: string;
  version: number;
  /** Of an appointment: the number of the last event about it or its participations. */
  ordinal: Generated<number>;
  goneAt: Generated<Date | null>;
}

/** An endpoint of a CRM: a reader of the feed that the service moves. */
export interface WebhookTable {
  crmId: string;
  id: string;
  reference: string;
  url: string;
  /** The types of events that are sent; empty: all. */
  types: string[];
  /** Only events of this provider. */
  providerId: string | null;
  /** Events of these actors are not sent. */
  ignoreActors: string[];
  /** Sealed (src/webhook/seal.ts). */
  secret: string;
  /** Another one for each secret, so that the repetition of a request returns only the secret that it has made. */
  secretId: string | null;
  /** The one before the last rotation, which also signs for a day. */
  previousSecret: string | null;
  previousSecretUntil: Date | null;
  /** The sequence of the last event that was delivered or left out. */
  position: number;
  /** `idle`: nothing is left to be delivered. */
  state: Generated<'pending' | 'idle' | 'disabled'>;
  /** How often the next event could not be delivered. */
  failedAttempts: Generated<number>;
  /** When the next attempt is made, if it is pending; while it is leased, when the lease ends. */
  dueAt: Generated<Date>;
  /** Fencing token of the process that delivers. */
  lease: string | null;
  createdAt: Generated<Date>;
}

/** What came of sending an event, without what the endpoint said. */
export interface WebhookAttemptTable {
  crmId: string;
  webhookId: string;
  id: Generated<string>;
  eventId: string;
  eventType: string;
  /** The HTTP status; null if there was no answer. */
  status: number | null;
  /** Why there was none, as a code. */
  error: string | null;
  durationMs: number;
  attemptedAt: Generated<Date>;
}

/** The tests of the last minute in which the CRM sent one, for its limits: not deleted with the webhook. */
export interface WebhookTestTable {
  crmId: string;
  eventId: string;
  startedAt: Generated<Date>;
  ended: Generated<boolean>;
}
