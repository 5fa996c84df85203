import { addressKey, isUuid, type NamedKey } from '@scheduling/runtime';
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The first byte of a token. One that was given to a purpose is never given to another. */
const purposes = { booking: 1, decide: 2, confirm: 3, receipt: 4, pending: 5, invite: 6 } as const;
const allPurposes = Object.keys(purposes) as (keyof typeof purposes)[];

/** What a link leads to. A token for one purpose is none for another. */
export type Link = OwnLink | DecisionLink | PendingLink | InvitationLink;

/** The booking of its person, or what the page shows after it was made there. */
export interface OwnLink {
  purpose: 'booking' | 'receipt';
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

/** What a person has chosen on a booking page and is to confirm, or what the page shows until then. */
export interface PendingLink {
  purpose: 'confirm' | 'pending';
  crmId: string;
  pendingBookingId: string;
}

/** The booking page of a provider, for a customer who is invited. */
export interface InvitationLink {
  purpose: 'invite';
  crmId: string;
  invitationId: string;
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
 * A token is, in base64url: one byte for the purpose, one for the length of the key's id, that id, the id of the
 * participation, of the pending booking or of the invitation, that of the recipient if it is to decide, a MAC of 128 bits, and the CRM's id.
 * The MAC is about all of that and the address, in any of its forms.
 *
 * @param keys the first one signs, all of them verify
 */
export function createLinkTokens(keys: NamedKey[]): LinkTokens {
  const issue = ({ id, key }: NamedKey, link: Link, address: string | undefined) => {
    const { crmId } = link;
    const purpose = purposes[link.purpose];
    const ids = idsOf(link);
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

function idsOf(link: Link): string[] {
  switch (link.purpose) {
    case 'booking':
    case 'receipt':
      return [link.participationId];
    case 'decide':
      return [link.participationId, link.recipientId];
    case 'confirm':
    case 'pending':
      return [link.pendingBookingId];
    case 'invite':
      return [link.invitationId];
    default:
      return link satisfies never;
  }
}

function parse(token: string): { keyId: string; link: Link } | undefined {
  const bytes = Buffer.from(token, 'base64url');
  const idAt = 2 + (bytes[1] ?? 0);
  const keyId = bytes.toString('utf8', 2, idAt);
  const id = uuidAt(bytes, idAt);
  const crmIdAfter = (macAt: number): string => bytes.toString('utf8', macAt + macBytes);
  const nextAt = idAt + idBytes;
  const purpose = allPurposes.find((each) => purposes[each] === bytes[0]);
  switch (purpose) {
    case 'booking':
    case 'receipt':
      return ifWellFormed(keyId, { purpose, crmId: crmIdAfter(nextAt), participationId: id });
    case 'decide': {
      const [crmId, recipientId] = [crmIdAfter(nextAt + idBytes), uuidAt(bytes, nextAt)];
      return ifWellFormed(keyId, { purpose, crmId, participationId: id, recipientId });
    }
    case 'confirm':
    case 'pending':
      return ifWellFormed(keyId, { purpose, crmId: crmIdAfter(nextAt), pendingBookingId: id });
    case 'invite':
      return ifWellFormed(keyId, { purpose, crmId: crmIdAfter(nextAt), invitationId: id });
    case undefined:
      return undefined;
    default:
      return purpose satisfies never;
  }
}

function uuidAt(bytes: Buffer, at: number): string {
  return bytes.toString('hex', at, at + idBytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function ifWellFormed(keyId: string, link: Link): { keyId: string; link: Link } | undefined {
  return idsOf(link).every(isUuid) && /^[a-z0-9-]+$/.test(link.crmId) ? { keyId, link } : undefined;
}

/** Texts, because one sequence of bytes has several in base64url. */
function areEqual(token: string, issued: string): boolean {
  const [given, expected] = [Buffer.from(token), Buffer.from(issued)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
