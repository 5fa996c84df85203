import { setTimeout as delay } from 'node:timers/promises';
import { waitUntil } from '@scheduling/embedded';
import type { StackInfo } from './stack-file.ts';

export interface DemoRequest {
  title: string;
  method: 'GET' | 'POST';
  path: string;
  body?: unknown;
}

export interface DemoAnswer {
  status: number;
  statusText: string;
  durationMs: number;
  /** Parsed if it is JSON. */
  body: unknown;
  /** When to retry after a 503. */
  retryAfterMs: number | undefined;
}

/** The fields of a mail in the inbox's API that the demo reads. */
export interface DemoMail {
  id: string;
  subject: string;
  text: string;
  to: { address: string }[];
  from: { address: string; name: string }[];
}

/** Called with every request and its response. */
export type DemoListener = (request: DemoRequest, answer: DemoAnswer) => void;

export class DemoFailure extends Error {
  override readonly name = 'DemoFailure';
}

const requestTimeoutMs = 10_000;
const mailTimeoutMs = 20_000;
/** A killed service has restarted by then. */
const patienceMs = 10_000;

/**
 * Plays setup and booking on a running stack over plain HTTP, as a CRM would: user, account, provider, timeslots, appointment, customer,
 * participation, list. Every run uses new references. Returns the confirmation mail, or undefined if the stack has no inbox.
 * Throws a DemoFailure if a response is not 2xx, or if no mail arrives.
 */
export async function playDemo(stack: Pick<StackInfo, 'gateway' | 'inbox' | 'crmId' | 'apiKey'>, run: string, listener: DemoListener): Promise<DemoMail | undefined> {
  const customerEmail = `grace-${run}@example.com`;
  for (const request of script(run, customerEmail, dayAfterTomorrow())) {
    const answer = await sendPatiently(stack, request);
    listener(request, answer);
    if (answer.status < 200 || answer.status > 299) throw new DemoFailure(`"${request.title}" failed with status ${answer.status}.`);
  }
  if (stack.inbox === null) return undefined;
  const mails = `${stack.inbox}/api/email?to.address=${encodeURIComponent(customerEmail)}`;
  return waitUntil(async () => (await fetchJson<DemoMail[]>(mails))[0], { what: 'the mail', timeoutMs: mailTimeoutMs, intervalMs: 200 }).catch((error: unknown) => {
    throw new DemoFailure(`No mail to ${customerEmail} arrived within ${mailTimeoutMs / 1_000} s.`, { cause: error });
  });
}

function script(run: string, customerEmail: string, day: string): DemoRequest[] {
  const owner = `ada-${run}@demo`;
  const account = `studio-${run}@demo`;
  const provider = `salon-${run}@demo`;
  const chair = `chair-${run}@demo`;
  const appointment = `haircut-${run}@demo`;
  const customer = `grace-${run}@demo`;
  const ofProvider = `/provider/${encodeURIComponent(provider)}`;
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
      body: { reference: provider, ownerReference: owner, accountReference: account, name: 'Salon Lovelace', email: `salon-${run}@example.com` },
    },
    {
      title: 'Timeslots: when the chair is free',
      method: 'POST',
      path: `${ofProvider}/timeslots`,
      body: {
        timeslots: [
          { resourceReference: chair, start: `${day}T09:00`, end: `${day}T12:00`, raster: 30, defaultCapacity: 1, defaultAcceptBookings: true, state: 'BOOKABLE' },
        ],
      },
    },
    {
      title: 'An appointment with one seat',
      method: 'POST',
      path: `${ofProvider}/appointments`,
      body: {
        reference: appointment,
        start: `${day}T10:00`,
        end: `${day}T10:30`,
        capacity: 1,
        acceptBookings: true,
        resourceReference: chair,
        productReference: `cut-${run}@demo`,
        productName: 'Haircut',
        address: { street: 'Marienplatz', number: '1', zip: '80331', city: 'München', country: 'DE' },
      },
    },
    {
      title: 'A customer: the person who books',
      method: 'POST',
      path: `${ofProvider}/customers`,
      body: { customerReference: customer, providerReference: provider, userName: 'Grace Hopper', email: customerEmail, language: 'en' },
    },
    {
      title: 'The booking: takes the seat and sends the confirmation',
      method: 'POST',
      path: `${ofProvider}/participations`,
      body: { reference: `booking-${run}@demo`, appointmentReference: appointment, customerReference: customer, state: 'BOOKED', message: 'See you soon!' },
    },
    { title: 'The calendar now', method: 'GET', path: `${ofProvider}/appointments` },
  ];
}

/** Retries a 503 that says when to retry, as any client should. The references make this safe. */
async function sendPatiently(stack: Pick<StackInfo, 'gateway' | 'crmId' | 'apiKey'>, request: DemoRequest): Promise<DemoAnswer> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const answer = await send(stack, request);
    if (answer.retryAfterMs === undefined || performance.now() + answer.retryAfterMs > deadline) return answer;
    await delay(answer.retryAfterMs);
  }
}

async function send({ gateway, crmId, apiKey }: Pick<StackInfo, 'gateway' | 'crmId' | 'apiKey'>, request: DemoRequest): Promise<DemoAnswer> {
  const startedAt = performance.now();
  const response = await fetch(`${gateway}/crms/${crmId}${request.path}`, {
    method: request.method,
    headers: { 'X-SERVICE-CLIENT-ID': apiKey, ...(request.body === undefined ? {} : { 'Content-Type': 'application/json' }) },
    body: request.body === undefined ? undefined : JSON.stringify(request.body),
    signal: AbortSignal.timeout(requestTimeoutMs),
  }).catch((error: unknown) => {
    throw new DemoFailure(`The gateway at ${gateway} is not responding.`, { cause: error });
  });
  const text = await response.text();
  const body: unknown = /json/.test(response.headers.get('content-type') ?? '') ? JSON.parse(text) : text;
  const { status, statusText } = response;
  const retryAfter = response.headers.get('retry-after');
  const retryAfterMs = status === 503 && retryAfter !== null ? Number(retryAfter) * 1_000 : undefined;
  return { status, statusText, durationMs: performance.now() - startedAt, body, retryAfterMs };
}

async function fetchJson<T>(url: string): Promise<T> {
  const response = await fetch(url, { signal: AbortSignal.timeout(requestTimeoutMs) });
  return (await response.json()) as T;
}

function dayAfterTomorrow(): string {
  return Temporal.Now.plainDateISO().add({ days: 2 }).toString();
}
