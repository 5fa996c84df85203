import { randomBytes } from 'node:crypto';

/** A new key, as WEBHOOK_SECRET_KEYS and LINK_KEYS have them. */
export function newNamedKey(id = 'test'): string {
  return `${id}:${randomBytes(32).toString('base64')}`;
}
