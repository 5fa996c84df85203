import type { MessagingSchema } from '@scheduling/messaging';
import type { IdempotencySchema } from '@scheduling/postgres';
import type { Generated } from 'kysely';

export interface CustomerSchema extends MessagingSchema, IdempotencySchema {
  customer: CustomerTable;
  erasure: ErasureTable;
  erasureConfirmation: ErasureConfirmationTable;
  erasurePart: ErasurePartTable;
  closedProvider: ClosedProviderTable;
}

/** A provider that is being deleted, or was: a trigger rejects customers for it. Kept for a day. */
export interface ClosedProviderTable {
  crmId: string;
  providerId: string;
  /** Of the provider; one with a later version is open. */
  version: number;
  closedAt: Generated<Date>;
}

export interface CustomerTable {
  crmId: string;
  id: Generated<string>;
  providerId: string;
  providerReference: string;
  /** Unique within the provider. */
  reference: string;
  userName: string;
  email: string | null;
  mobile: string | null;
  note: string | null;
  language: string | null;
  /** What the CRM notes of the customer. Null: nothing. */
  metadata: Record<string, string> | null;
  /** 0 while it is provisional. */
  version: Generated<number>;
  createdAt: Generated<Date>;
  updatedAt: Generated<Date>;
  /**
   * Set for a customer who is provisional: it exists only if calendar has booked for it. Calendar is asked whenever the
   * answer matters, and at this time at the latest.
   */
  provisionalUntil: Date | null;
  /** Who sent the booking for which it was prepared, as events say it. Null for one that is not provisional. */
  preparedBy: string | null;
}

/** One deletion of a person, or of an address. Only ids are kept permanently. */
export interface ErasureTable {
  crmId: string;
  id: Generated<string>;
  /**
   * The customer's id, the participation's of somebody who was embedded in an appointment, or, for an address, the same
   * as `id`.
   */
  customerId: string;
  subject: Generated<'customer' | 'participation' | 'address'>;
  /** The address that is erased, as it was given. Personal data, until the erasure is complete. */
  address: string | null;
  /**
   * `checking`: calendar has not decided yet whether the customer may be deleted. `requested`: deleted here, and the
   * other services are notified.
   */
  state: Generated<'checking' | 'requested' | 'complete'>;
  ignoreFutureAppointments: boolean;
  /** What the last mail needs, as an encoded GetErasureNoticeResponse. Personal data, kept for 10 minutes at most. */
  notice: Uint8Array | null;
  requestedAt: Generated<Date>;
  /**
   * Who, as events say it: `crm:` and the prefix of a key. Null if it is known only from an event, or from before
   * 2026-12-03.
   */
  requestedBy: string | null;
  publishedAt: Generated<Date>;
  completedAt: Date | null;
}

/** The erasure of a person is part of that of an address. */
export interface ErasurePartTable {
  crmId: string;
  erasureId: string;
  partId: string;
}

export interface ErasureConfirmationTable {
  crmId: string;
  erasureId: string;
  service: string;
  confirmedAt: Generated<Date>;
}
