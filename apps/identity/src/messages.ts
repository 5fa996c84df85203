import type { Account, ApiKey, AuthenticateKeyResponse, Crm, User } from '@scheduling/contracts/identity/v1';
import { withoutNulls } from '@scheduling/rpc';
import type { AccountRow } from './account/account.ts';
import type { ApiKeyRow } from './api-key/api-key.ts';
import type { AuthenticatedKey } from './api-key/authenticate-key.ts';
import { toScopeMessage } from './api-key/key-scope.ts';
import type { CrmRow } from './crm/crm.ts';
import type { UserRow } from './user/user.ts';

export function toCrmMessage(row: CrmRow): Crm {
  const name = row.name ?? row.crmId;
  return {
    ...row,
    name,
    senderName: row.senderName ?? name,
    senderAddress: row.senderAddress ?? '',
    requestsPerMinute: row.requestsPerMinute === 0 ? undefined : row.requestsPerMinute,
    anonymiseAfterDays: row.anonymiseAfterDays ?? undefined,
    logoUrl: row.logoUrl ?? undefined,
    colour: row.colour ?? undefined,
    imprint: row.imprint ?? undefined,
    privacyUrl: row.privacyUrl ?? undefined,
  };
}

export function toApiKeyMessage(row: ApiKeyRow): ApiKey {
  return { ...withoutNulls(row), scope: toScopeMessage(row.scope) };
}

export function toAuthenticatedMessage({ crm, key }: AuthenticatedKey): AuthenticateKeyResponse {
  const { prefix: keyPrefix, scope, createdAt, expiresAt } = key;
  return {
    crm: toCrmMessage(crm),
    keyPrefix,
    scope: toScopeMessage(scope),
    createdAt,
    expiresAt: expiresAt ?? undefined,
  };
}

export function toUserMessage(row: UserRow): User {
  return withoutNulls(row);
}

export function toAccountMessage(row: AccountRow): Account {
  return { ...withoutNulls(row), accountReference: row.reference };
}
