import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import type { MailAddress } from '../db/schema.ts';
import { singleLine } from './clean-text.ts';

/** A CRM's own sender, or the service's in the CRM's name. */
export function senderOf(crm: Crm, senderAddress: string): MailAddress {
  return { name: singleLine(crm.senderName || crm.name), address: crm.senderAddress || senderAddress };
}

/** Replies go to the provider, who can act on them. */
export function replyAddressOf(provider: Provider): MailAddress | undefined {
  return provider.email === undefined ? undefined : { name: singleLine(provider.name), address: provider.email };
}

/** A contact option. */
export interface ContactLine {
  text: string;
  /** Undefined if it is not a callable number. */
  link: string | undefined;
}

/** A provider's contact options, one per line. */
export function contactOf({ email, phone, mobile }: Provider): ContactLine[] {
  const line = (text: string, link: (text: string) => string | undefined): ContactLine => ({ text, link: link(text) });
  return [
    ...(email === undefined ? [] : [line(singleLine(email), mailLink)]),
    ...[phone, mobile].filter((number) => number !== undefined).map((number) => line(singleLine(number), callLink)),
  ];
}

/** RFC 6068: all but the @ is encoded. */
function mailLink(address: string): string {
  return `mailto:${encodeURIComponent(address).replace('%40', '@')}`;
}

/** Any text can be stored as a number. One with words in it, or with more digits than a number has (E.164), is not linked. */
function callLink(number: string): string | undefined {
  // The (0) is not dialled after a country code.
  const dialled = /^(?:\+|00)/.test(number) ? number.replace('(0)', '') : number;
  const digits = dialled.replaceAll(/[\s()/.-]/g, '');
  return /^\+?\d{3,15}$/.test(digits) ? `tel:${digits}` : undefined;
}
