import type { MessagingSchema } from '@scheduling/messaging';
import type { IdempotencySchema } from '@scheduling/postgres';
import type { Generated } from 'kysely';

export interface CustomerSchema extends MessagingSchema, IdempotencySchema {
  customer: CustomerTable;
  erasure: ErasureTable;
  erasureConfirmation: ErasureConfirmationTable;
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
  version: Generated<number>;
  createdAt: Generated<Date>;
  updatedAt: Generated<Date>;
}

/** One deletion of a person. Only ids are kept permanently. */
export interface ErasureTable {
  crmId: string;
  id: Generated<string>;
  customerId: string;
  /** `checking`: calendar has not decided yet whether the customer may be deleted. `requested`: deleted here, and the other services are notified. */
  state: Generated<'checking' | 'requested' | 'complete'>;
  ignoreFutureAppointments: boolean;
  /** What the last mail needs, as an encoded GetErasureNoticeResponse. Personal data, kept for 10 minutes at most. */
  notice: Uint8Array | null;
  requestedAt: Generated<Date>;
  publishedAt: Generated<Date>;
  completedAt: Date | null;
}

export interface ErasureConfirmationTable {
  crmId: string;
  erasureId: string;
  service: string;
  confirmedAt: Generated<Date>;
}
