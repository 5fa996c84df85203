import type { MessagingSchema } from '@scheduling/messaging';
import type { IdempotencySchema } from '@scheduling/postgres';
import type { Generated } from 'kysely';

export interface CustomerSchema extends MessagingSchema, IdempotencySchema {
  customer: CustomerTable;
  erasure: ErasureTable;
  erasure_confirmation: ErasureConfirmationTable;
}

export interface CustomerTable {
  crm_id: string;
  id: Generated<string>;
  provider_id: string;
  provider_reference: string;
  /** Unique within the provider. */
  reference: string;
  user_name: string;
  email: string | null;
  mobile: string | null;
  note: string | null;
  language: string | null;
  version: Generated<number>;
  created_at: Generated<Date>;
  updated_at: Generated<Date>;
}

/** One deletion of a person. What stays of it for ever holds ids only. */
export interface ErasureTable {
  crm_id: string;
  id: Generated<string>;
  customer_id: string;
  /** `checking`: calendar has not said yet whether the customer may go. `requested`: gone here, and the other services are told. */
  state: Generated<'checking' | 'requested' | 'complete'>;
  ignore_future_appointments: boolean;
  /** What the last mail needs, as an encoded GetErasureNoticeResponse. Personal data, kept for 10 minutes at most. */
  notice: Uint8Array | null;
  requested_at: Generated<Date>;
  published_at: Generated<Date>;
  completed_at: Date | null;
}

export interface ErasureConfirmationTable {
  crm_id: string;
  erasure_id: string;
  service: string;
  confirmed_at: Generated<Date>;
}
