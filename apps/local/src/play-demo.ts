import { setTimeout as delay } from 'node:timers/promises';
import { waitUntil } from '@scheduling/embedded';
import { UsageError } from './config.ts';
import { type GatewayAnswer, type GatewayRequest, sendRequest } from './send-request.ts';
import type { StackInfo } from './stack-file.ts';

export interface DemoRequest extends GatewayRequest {
  title: string;
}

/** The fields of a mail in the inbox's API that the demo reads. */
export interface DemoMail {
  id: string;
  subject: string;
  text: string;
  to: { address: string }[];
  from: { address: string; name: string }[];
}

export type DemoStack = Pick<StackInfo, 'gateway' | 'inbox' | 'crmId' | 'apiKey'>;

/** Called with every request and its response. */
export type DemoListener = (request: DemoRequest, answer: GatewayAnswer) => void;

const requestTimeoutMs = 10_000;
const mailTimeoutMs = 20_000;
/** A killed service has restarted by then. */
const patienceMs = 10_000;

/**
 * Plays setup and booking on a running stack over plain HTTP, as a CRM would: user, account, provider, timeslots, slots, booking, list. Every run
 * uses new references. Returns the confirmation mail, or undefined if the stack has no inbox.
 * Rejects with a UsageError if a response is not 2xx, or if no mail arrives.
 */
export async function playDemo(stack: DemoStack, run: string, listener: DemoListener): Promise<DemoMail | undefined> {
  return playScript(stack, [...setupScript(run), ...bookingScript(run, dayAfterTomorrow())], run, listener);
}

/** Sends requests one after the other, and waits for the confirmation mail to the customer of this run. */
export async function playScript(stack: DemoStack, script: DemoRequest[], run: string, listener: DemoListener): Promise<DemoMail | undefined> {
  for (const request of script) {
    const answer = await sendPatiently(stack, request);
    listener(request, answer);
    if (answer.status < 200 || answer.status > 299) throw new UsageError(`"${request.title}" failed with status ${answer.status}.`);
  }
  if (stack.inbox === null) return undefined;
  const customerEmail = customerEmailOf(run);
  const mails = `${stack.inbox}/api/email?to.address=${encodeURIComponent(customerEmail)}`;
  return waitUntil(async () => (await fetchJson<DemoMail[]>(mails))[0], { what: 'the mail', timeoutMs: mailTimeoutMs, intervalMs: 200 }).catch(() => {
    throw new UsageError(`No mail to ${customerEmail} arrived within ${mailTimeoutMs / 1_000} s.`);
  });
}

export function customerEmailOf(run: string): string {
  return `grace-${run}@example.com`;
}

/** The reference of the provider that the setup creates. */
export function providerOf(run: string): string {
  return `salon-${run}@demo`;
}

/** User, account and provider. */
export function setupScript(run: string): DemoRequest[] {
  const owner = `ada-${run}@demo`;
  const account = `studio-${run}@demo`;
  return [
    {
      title: 'A user: the owner of everything below',
      method: 'POST',
      path: '/user',
      body: { reference: owner, email: `ada-${run}@example.com`, username: `ada-${run}`, firstName: 'Ada', lastName: 'Lovelace' },
    },
    {
      title: 'An account: the business, with its billing data',
      method: 'POST',
      path: '/account',
      body: { ownerReference: owner, accountReference: account, branch: 'misc', invoiceCompanyName: 'Lovelace Studio' },
    },
    {
      title: 'A provider: the calendar that customers book',
      method: 'POST',
      path: '/provider',
      body: { reference: providerOf(run), ownerReference: owner, accountReference: account, name: 'Salon Lovelace', email: `salon-${run}@example.com` },
    },
  ];
}

function bookingScript(run: string, day: string): DemoRequest[] {
  const timeslot = `morning-${run}@demo`;
  const ofProvider = `/provider/${encodeURIComponent(providerOf(run))}`;
  return [
    {
      title: 'A timeslot: when the chair is free',
      method: 'POST',
      path: `${ofProvider}/timeslots`,
      body: {
        timeslots: [
          {
            reference: timeslot,
            resourceReference: `chair-${run}@demo`,
            start: `${day}T09:00`,
            end: `${day}T12:00`,
            raster: 30,
            defaultCapacity: 1,
            defaultAcceptBookings: true,
            address: { street: 'Marienplatz', number: '1', zip: '80331', city: 'München', country: 'DE' },
            state: 'BOOKABLE',
          },
        ],
      },
    },
    { title: 'Slots: what can be booked', method: 'GET', path: `${ofProvider}/slots?limit=3` },
    {
      title: 'The booking: makes the appointment and the customer, and sends the confirmation',
      method: 'POST',
      path: `${ofProvider}/bookings`,
      body: {
        reference: `booking-${run}@demo`,
        timeslotReference: timeslot,
        start: `${day}T10:00`,
        productReference: `cut-${run}@demo`,
        productName: 'Haircut',
        customer: { customerReference: `grace-${run}@demo`, userName: 'Grace Hopper', email: customerEmailOf(run), language: 'en' },
        state: 'BOOKED',
        message: 'See you soon!',
      },
    },
    { title: 'The calendar now', method: 'GET', path: `${ofProvider}/appointments` },
  ];
}

/** Retries a 503 that says when to retry, as any client should. The references make this safe. */
async function sendPatiently(stack: Pick<StackInfo, 'gateway' | 'crmId' | 'apiKey'>, request: DemoRequest): Promise<GatewayAnswer> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const answer = await sendRequest(stack, request);
    if (answer.retryAfterMs === undefined || performance.now() + answer.retryAfterMs > deadline) return answer;
    await delay(answer.retryAfterMs);
  }
}

async function fetchJson<T>(url: string): Promise<T> {
  const response = await fetch(url, { signal: AbortSignal.timeout(requestTimeoutMs) });
  return (await response.json()) as T;
}

function dayAfterTomorrow(): string {
  return Temporal.Now.plainDateISO().add({ days: 2 }).toString();
}
