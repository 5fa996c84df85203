import { domainToASCII } from 'node:url';

/** The domain of an address as headers and URIs have it: with A-labels (RFC 5890). */
export function asciiDomainOf(address: string): string {
  const domain = address.slice(address.lastIndexOf('@') + 1);
  // What cannot be the name of a host has no such form. Nothing is encoded in the name of a host.
  return encodeURIComponent(/^\p{ASCII}*$/u.test(domain) ? domain : domainToASCII(domain) || domain);
}

/**
 * What follows `mailto:` in a URI (RFC 6068). What need not be encoded is not, because not every calendar decodes an
 * address before it compares it.
 */
export function uriAddressOf(address: string): string {
  const local = encodeURIComponent(address.slice(0, Math.max(0, address.lastIndexOf('@'))));
  return `${local.replaceAll('%2B', '+').replaceAll('%24', '$')}@${asciiDomainOf(address)}`;
}
