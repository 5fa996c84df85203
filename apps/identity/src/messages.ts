import type { Account, Crm, User } from '@scheduling/contracts/identity/v1';
import { withoutNulls } from '@scheduling/rpc';
import type { AccountRow } from './account/account.ts';
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

export function toUserMessage(row: UserRow): User {
  return withoutNulls(row);
}

export function toAccountMessage(row: AccountRow): Account {
  return { ...withoutNulls(row), accountReference: row.reference };
}
