import { createHash } from 'node:crypto';

/** Two requests with the same content have the same digest. The caller builds `content` with its members always in the same order. */
export function contentDigest(content: unknown): Buffer {
  return createHash('sha256').update(JSON.stringify(content)).digest();
}
