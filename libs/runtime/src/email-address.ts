import { domainToASCII } from 'node:url';
import { caseInsensitiveKey } from './case-insensitive-key.ts';

const label = '[\\p{L}\\p{N}](?:[\\p{L}\\p{N}\\p{M}-]{0,61}[\\p{L}\\p{N}\\p{M}])?';
const pattern = new RegExp(`^[\\p{L}\\p{N}\\p{M}.!#$%&'*+/=?^_\`{|}~-]{1,64}@${label}(?:\\.${label})*$`, 'u');

/**
 * Some of them are letters or marks to Unicode. Nobody sees them, so an address with one would look like another
 * address.
 */
const invisible = /\p{Default_Ignorable_Code_Point}/gu;

/**
 * The pattern of HTML's e-mail field, with letters of all scripts (RFC 6531). Only a mail can show whether the mailbox
 * exists.
 */
export function isEmailAddress(text: string): boolean {
  return pattern.test(text) && text.search(invisible) === -1;
}

/**
 * The same for all forms of an address: in any case, and with a domain in its Unicode form or as A-labels (RFC 5890),
 * which is the form of the key. `address_key` of libs/postgres distinguishes addresses in the same way, but returns
 * keys of another form.
 */
export function addressKey(address: string): string {
  const domainAt = address.lastIndexOf('@') + 1;
  // A capital sigma has two small forms.
  const local = caseInsensitiveKey(address.slice(0, domainAt).replaceAll(invisible, '')).replaceAll('ς', 'σ');
  return local + domainKey(address.slice(domainAt));
}

function domainKey(domain: string): string {
  if (/^\p{ASCII}*$/u.test(domain) && !/(?:^|\.)xn--/i.test(domain)) return domain.toLowerCase();
  // Empty for what cannot be the name of a host.
  return domainToASCII(domain) || caseInsensitiveKey(domain);
}
