import { createHash } from 'node:crypto';

/**
 * Two requests with the same content have the same digest. The caller builds `content` with its members always in the
 * same order. Digests are stored, so fields are digested under the names of their columns, whatever they are called in
 * the code.
 */
export function contentDigest(content: unknown): Buffer {
  return createHash('sha256').update(JSON.stringify(content, withColumnNames)).digest();
}

function withColumnNames(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      field,
    ]),
  );
}
