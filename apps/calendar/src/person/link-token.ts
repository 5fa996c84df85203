import { addressKey, isUuid, type NamedKey } from '@scheduling/runtime';
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The first byte of a token. One that was given to a purpose is never given to another. */
const purposes = { booking: 1, decide: 2 } as const;

/** What a link leads to. A token for one purpose is none for another. */
export type Link = OwnLink | DecisionLink;

/** The booking of its person. */
export interface OwnLink {
  purpose: 'booking';
  crmId: string;
  participationId: string;
}

/** A request, which one of the provider's recipients decides. */
export interface DecisionLink {
  purpose: 'decide';
  crmId: string;
  participationId: string;
  /** A uuid: as identity names the recipient. */
  recipientId: string;
}

/** The tokens of links. Nothing of them is stored: they work as long as the recipient has the same address. */
export interface LinkTokens {
  /** @param address of the recipient; undefined if there is none */
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
 * id, that of the recipient if it is to decide, a MAC of 128 bits, and the CRM's id. The MAC is about all of that and the
 * address, in any of its forms.
 *
 * @param keys the first one signs, all of them verify
 */
export function createLinkTokens(keys: NamedKey[]): LinkTokens {
  const issue = ({ id, key }: NamedKey, link: Link, address: string | undefined) => {
    const { crmId } = link;
    const purpose = purposes[link.purpose];
    const ids = link.purpose === 'decide' ? [link.participationId, link.recipientId] : [link.participationId];
    const content = [purpose, id, ...ids, crmId, address === undefined ? null : addressKey(address)];
    const mac = createHmac('sha256', key).update(JSON.stringify(content)).digest().subarray(0, macBytes);
    const bytesOfIds = ids.map((each) => Buffer.from(each.replaceAll('-', ''), 'hex'));
    const parts = [Buffer.of(purpose, id.length), Buffer.from(id), ...bytesOfIds, mac, Buffer.from(crmId)];
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
  const idAt = 2 + (bytes[1] ?? 0);
  const keyId = bytes.toString('utf8', 2, idAt);
  const participationId = uuidAt(bytes, idAt);
  const link = (crmAt: number) => ({ crmId: bytes.toString('utf8', crmAt + macBytes), participationId });
  const recipientAt = idAt + idBytes;
  switch (bytes[0]) {
    case purposes.booking:
      return ifWellFormed(keyId, { purpose: 'booking', ...link(recipientAt) });
    case purposes.decide: {
      const recipientId = uuidAt(bytes, recipientAt);
      const decide = { purpose: 'decide', ...link(recipientAt + idBytes), recipientId } as const;
      return isUuid(recipientId) ? ifWellFormed(keyId, decide) : undefined;
    }
    default:
      return undefined;
  }
}

function uuidAt(bytes: Buffer, at: number): string {
  return bytes.toString('hex', at, at + idBytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function ifWellFormed(keyId: string, link: Link): { keyId: string; link: Link } | undefined {
  return isUuid(link.participationId) && /^[a-z0-9-]+$/.test(link.crmId) ? { keyId, link } : undefined;
}

/** Texts, because one sequence of bytes has several in base64url. */
function areEqual(token: string, issued: string): boolean {
  const [given, expected] = [Buffer.from(token), Buffer.from(issued)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
