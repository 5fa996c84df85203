import { randomBytes } from 'node:crypto';

/** A new key in the format of WEBHOOK_SECRET_KEYS and LINK_KEYS. */
export function newSecretKeys(): string {
  return `local:${randomBytes(32).toString('base64')}`;
}
