import { createHash, createHmac, randomBytes } from 'node:crypto';

const secretBytes = 32;

/** What opens a calendar: whoever has it, reads it. */
export function newCalendarSecret(): string {
  return randomBytes(secretBytes).toString('base64url');
}

/** What is stored of it. Of so many random bits, nobody finds the secret by trying. */
export function hashOfSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** Of what is about persons: without the secret, nobody can compare it with a name. */
export function keyedDigest(secret: string, ...texts: string[]): Buffer {
  return createHmac('sha256', secret).update(texts.join('\n')).digest();
}
