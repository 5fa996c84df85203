import type { MessagingSchema } from '@scheduling/messaging';
import type { IdempotencySchema } from '@scheduling/postgres';
import type { ColumnType, Generated } from 'kysely';

export interface IdentitySchema extends MessagingSchema, IdempotencySchema {
  crm: CrmTable;
  api_key: ApiKeyTable;
  app_user: UserTable;
  email_verification: EmailVerificationTable;
  account: AccountTable;
  provider: ProviderTable;
  provider_staff: ProviderStaffTable;
}

export interface CrmTable {
  crm_id: string;
  /** Null: the crm_id. */
  name: string | null;
  language: Generated<string>;
  time_zone: Generated<string>;
  /** Null: the name. */
  sender_name: string | null;
  /** Null: the service's own address. */
  sender_address: string | null;
  notify_on_customer_deletion: Generated<boolean>;
  /** 0: no limit. */
  requests_per_minute: Generated<number>;
  created_at: Generated<Date>;
  updated_at: Generated<Date>;
}

export interface ApiKeyTable {
  crm_id: string;
  id: Generated<string>;
  /** The first characters of the key, by which people tell keys apart. */
  prefix: string;
  /** SHA-256 of the key. */
  key_hash: Buffer;
  created_at: Generated<Date>;
  expires_at: Date | null;
  revoked_at: Date | null;
  /** Right to a minute. */
  last_used_at: Date | null;
}

/** Named so because `user` is a reserved word of SQL. */
export interface UserTable {
  crm_id: string;
  id: Generated<string>;
  /** Null for an invited person whom the CRM has not created as a user yet. */
  reference: string | null;
  email: string;
  /** Folded by `caseInsensitiveKey`, as username_key is. */
  email_key: string;
  /** The address was derived because the given one belongs to somebody else; nothing is ever sent to it. */
  email_generated: boolean;
  email_verified_at: Date | null;
  username: string;
  username_key: string;
  last_name: string;
  first_name: string | null;
  phone: string | null;
  mobile: string | null;
  language: string;
  created_at: Generated<Date>;
  updated_at: Generated<Date>;
}

/** The latest verification of a user's address. It takes the place of an earlier one, which makes the earlier link unknown. */
export interface EmailVerificationTable {
  crm_id: string;
  id: Generated<string>;
  user_id: string;
  /** SHA-256 of the token; null until the mail is written. */
  token_hash: Buffer | null;
  expires_at: Date | null;
  used_at: Date | null;
  /** When its mails were requested, those of the last 24 hours at least; they outlast a verification that is replaced. */
  requested_at: Generated<Date[]>;
  created_at: Generated<Date>;
}

export interface InvoiceAddress {
  city: string;
  countryCode: string;
  street: string;
  number: string;
  zip: string;
}

export interface AccountTable {
  crm_id: string;
  id: Generated<string>;
  reference: string;
  owner_id: string;
  branch: string;
  invoice_address: ColumnType<InvoiceAddress | null, string | null, never>;
  invoice_contact_name: string | null;
  invoice_company_name: string | null;
  invoice_tax_id: string | null;
  email: string | null;
  created_at: Generated<Date>;
}

export interface ProviderTable {
  crm_id: string;
  id: Generated<string>;
  reference: string;
  owner_id: string;
  account_id: string;
  name: string;
  email: string | null;
  mobile: string | null;
  phone: string | null;
  impressum: string | null;
  branch: string | null;
  subbranch: string | null;
  time_zone: string;
  version: Generated<number>;
  created_at: Generated<Date>;
}

/** Who has access to a provider; the owner always has a row. */
export interface ProviderStaffTable {
  crm_id: string;
  provider_id: string;
  user_id: string;
  added_at: Generated<Date>;
}
