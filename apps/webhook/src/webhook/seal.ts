import type { NamedKey } from '@scheduling/runtime';
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/**
 * Seals secrets for the database with AES-256-GCM. `context` says whose the secret is: sealed for another one it cannot
 * be opened.
 */
export interface Sealer {
  seal(secret: string, context: string): string;
  /** Rejects a text that was changed, or sealed with a key that this process does not have. */
  open(sealed: string, context: string): string;
  /** What begins every text that was sealed with the key that seals now. */
  prefix: string;
}

const ivBytes = 12;
const tagBytes = 16;

/** The first key seals; all of them open. */
export function createSealer(keys: NamedKey[]): Sealer {
  const [current] = keys as [NamedKey];
  const prefix = `${current.id}:`;
  return {
    prefix,
    seal: (secret, context) => {
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv('aes-256-gcm', current.key, iv).setAAD(Buffer.from(context));
      const sealed = Buffer.concat([iv, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      return prefix + sealed.toString('base64');
    },
    open: (sealed, context) => {
      const [id, encoded = ''] = sealed.split(':');
      const key = keys.find((each) => each.id === id)?.key;
      if (key === undefined) throw new Error(`there is no key ${id}`);
      const bytes = Buffer.from(encoded, 'base64');
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes), { authTagLength: tagBytes });
      decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-tagBytes));
      return decipher.update(bytes.subarray(ivBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8');
    },
  };
}
