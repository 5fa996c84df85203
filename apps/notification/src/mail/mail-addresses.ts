import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import { addressKey } from '@scheduling/runtime';
import type { CalendarOrganizer } from '../calendar/write-calendar.ts';
import type { MailAddress } from '../db/schema.ts';
import { uriAddressOf } from './ascii-address.ts';
import { shorten, singleLine } from './clean-text.ts';

/** Clients show the first 30 characters or so of a name. A header line is much longer than two of these names. */
const maxNameLength = 60;

/** A CRM's own sender, or the service's in the CRM's name. */
export function senderOf(crm: Crm, senderAddress: string): MailAddress {
  return { name: senderNameOf(crm), address: crm.senderAddress || senderAddress };
}

/** The name of a CRM in mails to customers. */
export function senderNameOf(crm: Crm): string {
  return shorten(singleLine(crm.senderName || crm.name), maxNameLength);
}

/**
 * The sender of a mail about a provider's appointments. People know the provider, so its name comes first. The address is that of the CRM, for
 * whose domain the mail server may send (DMARC).
 */
export function senderForProvider(provider: Provider, crm: Crm, senderAddress: string): MailAddress {
  const sender = senderOf(crm, senderAddress);
  const name = providerNameOf(provider);
  return name === '' || name.toLowerCase() === sender.name.toLowerCase() ? sender : { ...sender, name: `${name} via ${sender.name}` };
}

/** Replies go to the provider, who can act on them. */
export function replyAddressOf(provider: Provider): MailAddress | undefined {
  return provider.email === undefined ? undefined : { name: providerNameOf(provider), address: provider.email };
}

const providerNameOf = (provider: Provider): string => shorten(singleLine(provider.name), maxNameLength);

/**
 * The sender of the mail, in the name of the provider: an organizer never changes, as the provider's address may, and clients accept messages about an event only from
 * its organizer (ADR 34).
 */
export function organizerOf(provider: Provider, sender: MailAddress): CalendarOrganizer {
  return { name: singleLine(provider.name) || sender.name, address: sender.address };
}

/**
 * The organizer of a participation from before ADR 34: the provider, else the sender. A participant with the provider's address was not made the
 * organizer: their calendar would show the event as their own.
 */
export function formerOrganizerOf(provider: Provider, sender: MailAddress, attendeeAddress: string): CalendarOrganizer {
  const organizer = organizerOf(provider, sender);
  const others = [sender.address, attendeeAddress].map(addressKey);
  if (provider.email === undefined || others.includes(addressKey(provider.email))) return organizer;
  return { ...organizer, address: provider.email, sentBy: sender.address };
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

function mailLink(address: string): string {
  return `mailto:${uriAddressOf(address)}`;
}

/** RFC 3966. Any text can be stored as a number. One with words in it, or with more digits than a number has (E.164), is not linked. */
function callLink(number: string): string | undefined {
  const dialled = number.replace(/^00/, '+');
  // The (0) is not dialled after a country code.
  const digits = (dialled.startsWith('+') ? dialled.replace('(0)', '') : dialled).replaceAll(/[\s()/.\p{Dash}]/gu, '');
  return /^\+?\d{3,15}$/.test(digits) ? `tel:${digits}` : undefined;
}
