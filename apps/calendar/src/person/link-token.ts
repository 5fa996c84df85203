import { addressKey, isUuid, type NamedKey } from '@scheduling/runtime';
import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a link leads to. A token for one purpose is none for another. */
export type LinkPurpose = keyof typeof purposes;

/** The first byte of a token. One that was given to a purpose is never given to another. */
const purposes = { booking: 1 } as const;

export interface Link {
  purpose: LinkPurpose;
  crmId: string;
  participationId: string;
}

/** The tokens of links. Nothing of them is stored: they work as long as the person has the same address. */
export interface LinkTokens {
  /** @param address of the person; undefined if there is none */
  issue(link: Link, address: string | undefined): string;
  /**
   * What a token claims to be, which is true only if it is also {@link isIssued}. Undefined if it has another form, or
   * names a key that is none of ours.
   */
  read(token: string): Link | undefined;
  /** Whether the token was issued with one of the keys, to this address. */
  isIssued(token: string, address: string | undefined): boolean;
}

const macBytes = 16;
const idBytes = 16;

/**
 * A token is, in base64url: one byte for the purpose, one for the length of the key's id, that id, the participation's
 * id, a MAC of 128 bits, and the CRM's id. The MAC is about all of that and the address, in any of its forms.
 *
 * @param keys the first one signs, all of them verify
 */
export function createLinkTokens(keys: NamedKey[]): LinkTokens {
  const issue = ({ id, key }: NamedKey, { purpose, participationId, crmId }: Link, address: string | undefined) => {
    const content = [purposes[purpose], id, participationId, crmId, address === undefined ? null : addressKey(address)];
    const mac = createHmac('sha256', key).update(JSON.stringify(content)).digest().subarray(0, macBytes);
    const idOfBooking = Buffer.from(participationId.replaceAll('-', ''), 'hex');
    const parts = [Buffer.of(purposes[purpose], id.length), Buffer.from(id), idOfBooking, mac, Buffer.from(crmId)];
    return Buffer.concat(parts).toString('base64url');
  };
  return {
    issue: (link, address) => issue(keys[0]!, link, address),
    read: (token) => {
      const parsed = parse(token);
      return keys.some(({ id }) => id === parsed?.keyId) ? parsed?.link : undefined;
    },
    isIssued: (token, address) => {
      const parsed = parse(token);
      const key = keys.find(({ id }) => id === parsed?.keyId);
      return parsed !== undefined && key !== undefined && areEqual(token, issue(key, parsed.link, address));
    },
  };
}

function parse(token: string): { keyId: string; link: Link } | undefined {
  const bytes = Buffer.from(token, 'base64url');
  const purpose = (Object.keys(purposes) as LinkPurpose[]).find((name) => purposes[name] === bytes[0]);
  const idAt = 2 + (bytes[1] ?? 0);
  const macAt = idAt + idBytes;
  const participationId = bytes
    .toString('hex', idAt, macAt)
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  const crmId = bytes.toString('utf8', macAt + macBytes);
  if (purpose === undefined || !isUuid(participationId) || !/^[a-z0-9-]+$/.test(crmId)) return undefined;
  return { keyId: bytes.toString('utf8', 2, idAt), link: { purpose, participationId, crmId } };
}

/** Texts, because one sequence of bytes has several in base64url. */
function areEqual(token: string, issued: string): boolean {
  const [given, expected] = [Buffer.from(token), Buffer.from(issued)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
