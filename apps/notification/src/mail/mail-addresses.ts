import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import type { MailAddress } from '../db/schema.ts';
import { singleLine } from './clean-text.ts';

/** A CRM's own sender, or the service's in the CRM's name. */
export function senderOf(crm: Crm, senderAddress: string): MailAddress {
  return { name: singleLine(crm.senderName || crm.name), address: crm.senderAddress || senderAddress };
}

/** Answers go to the provider, who can do something about them. */
export function replyAddressOf(provider: Provider): MailAddress | undefined {
  return provider.email === undefined ? undefined : { name: singleLine(provider.name), address: provider.email };
}

/** How to reach a provider, a line each. */
export function contactOf(provider: Provider): string[] {
  return [provider.email, provider.phone, provider.mobile].filter((line) => line !== undefined).map(singleLine);
}
