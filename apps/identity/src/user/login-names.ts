import { isAddress } from '@scheduling/postgres';
import { caseInsensitiveKey } from '@scheduling/runtime';
import { type RawBuilder, sql } from 'kysely';
import type { CrmRow } from '../crm/crm.ts';

/**
 * Where a login name, an e-mail address or a username, is unique: across all CRMs, except that each sandbox has login
 * names of its own, so its tests never take one that a real person needs. No login name contains a line break, so no
 * key of a sandbox is also one of another CRM.
 */
export function scopeOf({ crmId, sandbox }: Pick<CrmRow, 'crmId' | 'sandbox'>): string {
  return sandbox ? `${crmId}\n` : '';
}

/** What the unique indexes compare: the name in lower case. It distinguishes more names than people do. */
export function loginNameKey(crm: Pick<CrmRow, 'crmId' | 'sandbox'>, name: string): string {
  return scopeOf(crm) + caseInsensitiveKey(name);
}

/**
 * Whether a user has this address, in any of its forms. The unique index distinguishes fewer of them where Node knows
 * letters that Postgres does not.
 */
export function hasEmail(crm: CrmRow, email: string): RawBuilder<boolean> {
  return sql<boolean>`(${hasScope('email_key', crm)} AND ${isAddress(sql.ref('email'), email)} OR email_key = ${loginNameKey(crm, email)})`;
}

/** Whether a user has a username that people read as this one, or one that is the same for the unique index. */
export function hasUsername(crm: CrmRow, username: string): RawBuilder<boolean> {
  return sql<boolean>`(
    ${hasScope('username_key', crm)} AND username_as_read(username) = username_as_read(${username}) OR username_key = ${loginNameKey(crm, username)})`;
}

/** As in the indexes app_user_by_address and app_user_by_username. */
export function hasScope(column: 'email_key' | 'username_key', crm: CrmRow): RawBuilder<boolean> {
  const key = sql.ref(column);
  return sql<boolean>`left(${key}, strpos(${key}, E'\n')) = ${scopeOf(crm)}`;
}
