import { randomBytes } from 'node:crypto';

/** A key with a name, so that it can be replaced: what was made with it names it. */
export interface NamedKey {
  id: string;
  key: Buffer;
}

const keyBytes = 32;

/** What {@link parseNamedKeys} reads, for error messages. */
export const namedKeysFormat = '<id>:<32 bytes in base64>, separated by commas';

/** `<id>:<32 bytes in base64>`, separated by commas. Undefined if it is anything else. */
export function parseNamedKeys(text: string): NamedKey[] | undefined {
  const keys = text.split(',').map((part) => {
    const [, id = '', encoded = ''] = /^([a-z0-9-]{1,20}):([A-Za-z0-9+/]+=*)$/.exec(part.trim()) ?? [];
    return { id, key: Buffer.from(encoded, 'base64') };
  });
  const isValid =
    keys.every(({ key }) => key.length === keyBytes) && new Set(keys.map(({ id }) => id)).size === keys.length;
  return isValid ? keys : undefined;
}

/** A new key in this format, for local stacks and tests: operators make their own. */
export function newNamedKey(id = 'local'): string {
  return `${id}:${randomBytes(keyBytes).toString('base64')}`;
}
