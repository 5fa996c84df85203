import type { Account, ApiKey, Crm, Provider, User } from '@scheduling/contracts/identity/v1';
import type { AccountRow } from './account/account.ts';
import type { ApiKeyRow } from './api-key/api-key.ts';
import type { CrmRow } from './crm/crm.ts';
import type { ProviderRow } from './provider/provider.ts';
import type { UserRow } from './user/user.ts';

export function toCrmMessage(row: CrmRow): Crm {
  const name = row.name ?? row.crm_id;
  return {
    crmId: row.crm_id,
    name,
    language: row.language,
    timeZone: row.time_zone,
    senderName: row.sender_name ?? name,
    senderAddress: row.sender_address ?? '',
    notifyOnCustomerDeletion: row.notify_on_customer_deletion,
    requestsPerMinute: row.requests_per_minute === 0 ? undefined : row.requests_per_minute,
  };
}

export function toApiKeyMessage(row: ApiKeyRow): ApiKey {
  return {
    prefix: row.prefix,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
  };
}

export function toUserMessage(row: UserRow): User {
  return {
    id: row.id,
    reference: row.reference ?? undefined,
    email: row.email,
    username: row.username,
    lastName: row.last_name,
    firstName: row.first_name ?? undefined,
    phone: row.phone ?? undefined,
    mobile: row.mobile ?? undefined,
    emailVerified: row.email_verified_at !== null,
  };
}

export function toAccountMessage(row: AccountRow): Account {
  return {
    ownerReference: row.owner_reference,
    accountReference: row.reference,
    branch: row.branch,
    invoiceAddress: row.invoice_address ?? undefined,
    invoiceContactName: row.invoice_contact_name ?? undefined,
    invoiceCompanyName: row.invoice_company_name ?? undefined,
    invoiceTaxId: row.invoice_tax_id ?? undefined,
    email: row.email ?? undefined,
  };
}

export function toProviderMessage(row: ProviderRow): Provider {
  return {
    id: row.id,
    reference: row.reference,
    ownerReference: row.owner_reference,
    accountReference: row.account_reference,
    name: row.name,
    email: row.email ?? undefined,
    mobile: row.mobile ?? undefined,
    phone: row.phone ?? undefined,
    impressum: row.impressum ?? undefined,
    branch: row.branch ?? undefined,
    subbranch: row.subbranch ?? undefined,
    timeZone: row.time_zone,
    version: row.version,
  };
}
