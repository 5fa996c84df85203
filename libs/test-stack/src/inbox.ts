import { waitUntil } from '@scheduling/embedded';
import type { StackInfo } from '@scheduling/stack';
import { sharedStack } from './shared-stack.ts';

export interface Mail {
  subject: string;
  text: string;
  html: string;
  to: { address: string; name: string }[];
  from: { address: string; name: string }[];
  headers: Record<string, string>;
}

const deliveryTimeoutMs = 60_000;

/** The mails to an address, in order of arrival, as soon as there are `count` of them. */
export async function waitForMails(address: string, count: number, stack: StackInfo = sharedStack()): Promise<Mail[]> {
  return waitUntil(
    async () => {
      const mails = await readMails(address, stack);
      return mails.length >= count ? mails : undefined;
    },
    { what: `${count} mails to ${address}`, timeoutMs: deliveryTimeoutMs, intervalMs: 100 },
  );
}

export async function readMails(address: string, stack: StackInfo = sharedStack()): Promise<Mail[]> {
  const response = await fetch(`${stack.inbox}/api/email?to.address=${encodeURIComponent(address)}`);
  return (await response.json()) as Mail[];
}
