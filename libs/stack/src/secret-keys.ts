import { randomBytes } from 'node:crypto';

/** A new key that seals the secrets of webhooks, as WEBHOOK_SECRET_KEYS. */
export function newSecretKeys(): string {
  return `local:${randomBytes(32).toString('base64')}`;
}
