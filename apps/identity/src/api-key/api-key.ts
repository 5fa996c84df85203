import type { Selectable } from 'kysely';
import { createHash, randomBytes } from 'node:crypto';
import type { ApiKeyTable } from '../db/schema.ts';

export type ApiKeyRow = Selectable<ApiKeyTable>;

/** Makes a leaked key recognisable, to people and to secret scanners. */
const marker = 'sk_';
const secretBytes = 32;
/** The marker and 54 of the 256 random bits: enough to be unique, and 202 bits stay secret. */
const prefixLength = 12;

export function generateKey(): { key: string; prefix: string; hash: Buffer } {
  const key = marker + randomBytes(secretBytes).toString('base64url');
  return { key, prefix: key.slice(0, prefixLength), hash: createHash('sha256').update(key).digest() };
}
