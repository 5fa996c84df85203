import { type Client, createClient, ProblemError } from '@scheduling/client';
import { waitUntil } from '@scheduling/embedded';
import { UsageError } from './config.ts';
import type { StackInfo } from '@scheduling/stack';

/** A request of the demo and its response. */
export interface DemoStep {
  title: string;
  method: string;
  /** Below the CRM. */
  path: string;
  /** Parsed; undefined if the request has none. */
  body: unknown;
  status: number;
  statusText: string;
  durationMs: number;
  /** The body of the response, parsed. */
  answer: unknown;
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

/** Called after every successful request. */
export type DemoListener = (step: DemoStep) => void;

/** The client with which a script sends its requests, each with a title. `play` returns the body of the response. */
export interface DemoPlayer {
  client: Client;
  play: <T>(title: string, call: Promise<{ response: Response; data: T }>) => Promise<T>;
}

const requestTimeoutMs = 10_000;
const mailTimeoutMs = 20_000;

/**
 * Plays setup and booking on a running stack with the typed client, as a CRM would: user, account, provider, opening
 * hours, slots, booking, list. Every run uses new references. Returns the confirmation mail, or undefined if the stack
 * has no inbox. Rejects with a UsageError if a request fails, or if no mail arrives.
 */
export async function playDemo(stack: DemoStack, run: string, listener: DemoListener): Promise<DemoMail | undefined> {
  const player = createPlayer(stack, listener);
  await playSetup(player, run);
  await playBooking(player, run);
  return waitForConfirmation(stack, run);
}

export function createPlayer({ gateway, crmId, apiKey }: DemoStack, listener: DemoListener): DemoPlayer {
  let sent: Omit<DemoStep, 'title' | 'durationMs' | 'answer'>;
  const client = createClient({
    url: gateway,
    crmId,
    key: apiKey,
    fetch: async (request) => {
      const body = await request.clone().text();
      const response = await fetch(request);
      const path = request.url.slice(`${gateway}/crms/${crmId}`.length);
      sent = {
        method: request.method,
        path,
        body: body === '' ? undefined : JSON.parse(body),
        status: response.status,
        statusText: response.statusText,
      };
      return response;
    },
  });
  return {
    client,
    play: async (title, call) => {
      const startedAt = performance.now();
      const { data } = await call.catch((error: Error) => {
        if (error instanceof ProblemError) throw new UsageError(`"${title}" failed: ${error.message}`);
        throw new UsageError(`The gateway at ${gateway} is not responding.`);
      });
      listener({ title, ...sent, durationMs: performance.now() - startedAt, answer: data });
      return data;
    },
  };
}

/** Waits for the confirmation mail to the customer of this run. */
export async function waitForConfirmation({ inbox }: DemoStack, run: string): Promise<DemoMail | undefined> {
  if (inbox === null) return undefined;
  const customerEmail = customerEmailOf(run);
  const mails = `${inbox}/api/email?to.address=${encodeURIComponent(customerEmail)}`;
  return waitUntil(async () => (await fetchJson<DemoMail[]>(mails))[0], {
    what: 'the mail',
    timeoutMs: mailTimeoutMs,
    intervalMs: 200,
  }).catch(() => {
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
export async function playSetup({ client, play }: DemoPlayer, run: string): Promise<void> {
  const owner = `ada-${run}@demo`;
  const account = `studio-${run}@demo`;
  const user = {
    reference: owner,
    email: `ada-${run}@example.com`,
    username: `ada-${run}`,
    firstName: 'Ada',
    lastName: 'Lovelace',
  };
  await play('A user: the owner of everything below', client.POST('/user', { body: user }));
  const business = {
    ownerReference: owner,
    accountReference: account,
    branch: 'misc',
    invoiceCompanyName: 'Lovelace Studio',
  } as const;
  await play('An account: the business, with its billing data', client.POST('/account', { body: business }));
  const provider = {
    reference: providerOf(run),
    ownerReference: owner,
    accountReference: account,
    name: 'Salon Lovelace',
    email: `salon-${run}@example.com`,
  };
  await play('A provider: the calendar that customers book', client.POST('/provider', { body: provider }));
}

async function playBooking({ client, play }: DemoPlayer, run: string): Promise<void> {
  const path = { providerRef: providerOf(run) };
  const window = {
    from: '09:00',
    to: '18:00',
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    address: { street: 'Marienplatz', number: '1', zip: '80331', city: 'München', country: 'DE' },
  };
  await play(
    'Opening hours: when the chair can be booked, from now on',
    client.PUT('/provider/{providerRef}/resource/{resourceRef}/hours', {
      params: { path: { ...path, resourceRef: `chair-${run}@demo` } },
      body: { weekly: [{ weekdays: ['1', '2', '3', '4', '5'], ...window }] },
    }),
  );
  const slots = await play(
    'Slots: what can be booked',
    client.GET('/provider/{providerRef}/slots', { params: { path, query: { limit: 3 } } }),
  );
  const slot = slots.at(-1)!;
  const booking = {
    reference: `booking-${run}@demo`,
    timeslotReference: slot.timeslotReference!,
    start: slot.start,
    productReference: `cut-${run}@demo`,
    productName: 'Haircut',
    customer: {
      customerReference: `grace-${run}@demo`,
      userName: 'Grace Hopper',
      email: customerEmailOf(run),
      language: 'en',
    },
    state: 'BOOKED',
    message: 'See you soon!',
  } as const;
  await play(
    'The booking: makes the appointment and the customer, and sends the confirmation',
    client.POST('/provider/{providerRef}/bookings', { params: { path }, body: booking }),
  );
  await play('The calendar now', client.GET('/provider/{providerRef}/appointments', { params: { path } }));
}

async function fetchJson<T>(url: string): Promise<T> {
  const response = await fetch(url, { signal: AbortSignal.timeout(requestTimeoutMs) });
  return (await response.json()) as T;
}
