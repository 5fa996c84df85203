import { createHash } from 'node:crypto';

/** Postgres rejects comparing a uuid with other text, so an external id is checked first. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

/** Before every other id. */
export const lowestId = '00000000-0000-0000-0000-000000000000';

/** A UUID that is always the same for a name in a namespace, which is another UUID (RFC 9562, version 5). */
export function nameUuid(namespace: string, name: string): string {
  const bytes = Buffer.from(namespace.replaceAll('-', ''), 'hex');
  const digest = createHash('sha1').update(bytes).update(name).digest().subarray(0, 16);
  digest[6] = (digest[6]! & 0x0f) | 0x50;
  digest[8] = (digest[8]! & 0x3f) | 0x80;
  return digest.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
