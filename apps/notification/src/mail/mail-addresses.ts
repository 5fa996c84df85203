import type { CalendarOrganizer } from '@scheduling/calendar-file';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import { shorten, singleLine } from '@scheduling/presentation';
import { addressKey } from '@scheduling/runtime';
import type { MailAddress } from '../db/schema.ts';

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
 * The sender of a mail about a provider's appointments. People know the provider, so its name comes first. The address
 * is that of the CRM, for whose domain the mail server may send (DMARC).
 */
export function senderForProvider(provider: Provider, crm: Crm, senderAddress: string): MailAddress {
  const sender = senderOf(crm, senderAddress);
  const name = providerNameOf(provider);
  return name === '' || name.toLowerCase() === sender.name.toLowerCase()
    ? sender
    : { ...sender, name: `${name} via ${sender.name}` };
}

/** The provider as mails name it: like the CRM if it has no name that can be shown. */
export function namedProvider(provider: Provider, crm: Crm): Provider {
  return { ...provider, name: singleLine(provider.name) || senderNameOf(crm) };
}

/** Replies go to the provider, who can act on them. */
export function replyAddressOf(provider: Provider): MailAddress | undefined {
  return provider.email === undefined ? undefined : { name: providerNameOf(provider), address: provider.email };
}

const providerNameOf = (provider: Provider): string => shorten(singleLine(provider.name), maxNameLength);

/**
 * Who receives the answer when a person declines the event in a calendar: whoever was the organizer when the event came
 * into it, even if the provider has another address now (`known`), because calendars may ignore what comes from another
 * one. At first the provider, else the sender of the mail. A participant with the provider's address is not made the
 * organizer: their calendar would show the event as their own.
 */
export function organizerOf(
  provider: Provider,
  sender: MailAddress,
  { attendeeAddress, known }: { attendeeAddress: string; known: string | undefined },
): CalendarOrganizer {
  const name = singleLine(provider.name) || sender.name;
  const others = [sender.address, attendeeAddress].map(addressKey);
  const isProvider = provider.email !== undefined && !others.includes(addressKey(provider.email));
  const address = known ?? (isProvider ? provider.email! : sender.address);
  return { name, address, sentBy: addressKey(address) === addressKey(sender.address) ? undefined : sender.address };
}
