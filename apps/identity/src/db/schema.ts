import type { MessagingSchema } from '@scheduling/messaging';
import type { IdempotencySchema } from '@scheduling/postgres';
import type { ColumnType, Generated } from 'kysely';

export interface IdentitySchema extends MessagingSchema, IdempotencySchema {
  crm: CrmTable;
  apiKey: ApiKeyTable;
  appUser: UserTable;
  emailVerification: EmailVerificationTable;
  verificationMailbox: VerificationMailboxTable;
  account: AccountTable;
  provider: ProviderTable;
  providerStaff: ProviderStaffTable;
}

export interface CrmTable {
  crmId: string;
  /** Null: the crm_id. */
  name: string | null;
  language: Generated<string>;
  timeZone: Generated<string>;
  /** Null: the name. */
  senderName: string | null;
  /** Null: the service's own address. */
  senderAddress: string | null;
  notifyOnCustomerDeletion: Generated<boolean>;
  /** 0: no limit. */
  requestsPerMinute: Generated<number>;
  /** Null: the CRM has no period of its own. */
  anonymiseAfterDays: number | null;
  /** Null: mails have no logo. */
  logoUrl: string | null;
  /** `#rrggbb`. Null: the colours of the service. */
  colour: string | null;
  imprint: string | null;
  /** Of its privacy notice. */
  privacyUrl: string | null;
  /** For tests: its mails reach nobody, its clock can be set, and its login names are its own. Never changes. */
  sandbox: Generated<boolean>;
  createdAt: Generated<Date>;
  updatedAt: Generated<Date>;
}

export interface ApiKeyTable {
  crmId: string;
  id: Generated<string>;
  /** The first characters of the key, by which people distinguish keys. */
  prefix: string;
  /** SHA-256 of the key. */
  keyHash: Buffer;
  createdAt: Generated<Date>;
  expiresAt: Date | null;
  revokedAt: Date | null;
  /** Accurate to a minute. */
  lastUsedAt: Date | null;
  /** What the key may do. */
  scope: Generated<'read' | 'book' | 'all'>;
}

/** Named so because `user` is a reserved word of SQL. */
export interface UserTable {
  crmId: string;
  id: Generated<string>;
  /** Null for an invited person whom the CRM has not created as a user yet. */
  reference: string | null;
  email: string;
  /** By `loginNameKey`, as username_key is, for the unique indexes. Users are found by `hasEmail` and `hasUsername`. */
  emailKey: string;
  /** The address was derived because the given one belongs to another user; no mail is ever sent to it. */
  emailGenerated: boolean;
  /**
   * The folded address from which this one was derived, for the limit per CRM. Null if it was not, or before
   * 2026-11-22.
   */
  emailDerivedFrom: string | null;
  emailVerifiedAt: Date | null;
  username: string;
  usernameKey: string;
  lastName: string;
  firstName: string | null;
  phone: string | null;
  mobile: string | null;
  language: string;
  createdAt: Generated<Date>;
  updatedAt: Generated<Date>;
}

/** The latest verification of a user's address. It replaces an earlier one, whose link becomes unknown. */
export interface EmailVerificationTable {
  crmId: string;
  id: Generated<string>;
  userId: string;
  /** SHA-256 of the token; null until the mail is written. */
  tokenHash: Buffer | null;
  expiresAt: Date | null;
  usedAt: Date | null;
  /** When its mails were requested, for at least the last 24 hours; carried over when a verification is replaced. */
  requestedAt: Generated<Date[]>;
  createdAt: Generated<Date>;
}

/**
 * To which mailboxes a CRM has requested verification mails, for the limit. It does not refer to users, and outlasts
 * them.
 */
export interface VerificationMailboxTable {
  crmId: string;
  /** SHA-256 of the CRM and the mailbox. */
  addressDigest: Buffer;
  /** For at least the last 24 hours. */
  requestedAt: Date[];
  /** When the last of them no longer counts. */
  expiresAt: Date;
}

export interface InvoiceAddress {
  city: string;
  countryCode: string;
  street: string;
  number: string;
  zip: string;
}

export interface AccountTable {
  crmId: string;
  id: Generated<string>;
  reference: string;
  ownerId: string;
  branch: string;
  invoiceAddress: ColumnType<InvoiceAddress | null, string | null, string | null>;
  invoiceContactName: string | null;
  invoiceCompanyName: string | null;
  invoiceTaxId: string | null;
  email: string | null;
  createdAt: Generated<Date>;
}

export interface ProviderTable {
  crmId: string;
  id: Generated<string>;
  reference: string;
  ownerId: string;
  accountId: string;
  name: string;
  email: string | null;
  mobile: string | null;
  phone: string | null;
  impressum: string | null;
  branch: string | null;
  subbranch: string | null;
  timeZone: string;
  version: Generated<number>;
  createdAt: Generated<Date>;
}

/** Who has access to a provider; the owner always has a row. */
export interface ProviderStaffTable {
  crmId: string;
  providerId: string;
  userId: string;
  addedAt: Generated<Date>;
}
