import { eventually } from '@scheduling/testing';
import { expect, vi } from 'vitest';
import type { Crm } from './composed-system.ts';

/**
 * Kinds of requests, by the service behind the gateway that answers them. Each booking also sends a mail, for
 * notification.
 */
export interface Answered {
  identity: number;
  customer: number;
  calendar: number;
  bookings: number;
}

/** The gateways that receive requests, like the endpoints of a Kubernetes Service. */
export interface Gateways {
  /** Starts sending requests to this one, too. */
  add(url: string): void;
  /** Stops sending requests to it. Resolves when those in flight are answered. */
  remove(url: string): Promise<void>;
}

export interface Load {
  gateways: Gateways;
  /** The number of requests answered with 2xx so far. */
  answered: Answered;
  /** All other outcomes of requests. */
  failures: string[];
  /** E-mail addresses of the people who book, with the number of their bookings. */
  bookers: Map<string, number>;
  /** Returns when the last requests are answered. */
  stop(): Promise<void>;
}

const workers = 4;
const requestTimeoutMs = 30_000;
const answersBetween = 20;
const answersTimeoutMs = 120_000;
const calmAttempts = 10;

type Send = (method: 'GET' | 'POST', path: string, body?: object) => Promise<boolean>;

/** Runs clients that set up, book and read continuously, and never retry. */
export async function startLoad(urls: Iterable<string>, crm: Crm): Promise<Load> {
  const balancer = createBalancer(urls);
  const stopping = new AbortController();
  const load: Omit<Load, 'stop'> = {
    gateways: balancer,
    answered: { identity: 0, customer: 0, calendar: 0, bookings: 0 },
    failures: [],
    bookers: new Map(),
  };
  const send: Send = (method, path, body) =>
    balancer.use((gateway) => sendOne(gateway, crm, { method, path, body }, load.failures));
  await setUp(send, crm);
  const working = Array.from({ length: workers }, async (_, worker) => {
    for (let round = 0; !stopping.signal.aborted; round += 1)
      await playRound(send, load, `${crm.crmId}-${worker}-${round}`);
  });
  return {
    ...load,
    stop: async () => {
      stopping.abort();
      await Promise.all(working);
    },
  };
}

/** Whether all requests succeed while nothing is replaced, within a few attempts. */
export async function isCalm(load: Load): Promise<boolean> {
  for (let attempt = 0; attempt < calmAttempts; attempt += 1) {
    load.failures.length = 0;
    await waitForAnswers(load);
    if (load.failures.length === 0) return true;
  }
  return false;
}

/**
 * Waits until there are answers of every kind, so that every container has received all kinds of requests. Returns
 * early when a request fails.
 */
export async function waitForAnswers({ answered, failures }: Load): Promise<void> {
  const before = { ...answered };
  const isEnough = (): boolean =>
    Object.entries(answered).every(([kind, answers]) => answers - before[kind as keyof Answered] >= answersBetween);
  await vi.waitFor(() => expect(failures.length > 0 || isEnough()).toBe(true), {
    timeout: answersTimeoutMs,
    interval: 50,
  });
}

/** Uses the gateways in turn. */
function createBalancer(urls: Iterable<string>) {
  const gateways = new Map(Array.from(urls, (url) => [url, new Set<Promise<unknown>>()]));
  return {
    add: (url: string): void => void gateways.set(url, new Set()),
    remove: async (url: string): Promise<void> => {
      const running = gateways.get(url);
      gateways.delete(url);
      await Promise.all(running ?? new Set<Promise<unknown>>());
    },
    use: async <T>(work: (url: string) => Promise<T>): Promise<T> => {
      const [[url, running] = []] = gateways;
      if (url === undefined || running === undefined) throw new Error('there is no gateway');
      gateways.delete(url);
      gateways.set(url, running);
      const answer = work(url);
      running.add(answer);
      return answer.finally(() => running.delete(answer));
    },
  };
}

const provider = 'salon@load';
const at = `/provider/${encodeURIComponent(provider)}`;
const booked = 'booked@load';
/** A resource whose list stays short. */
const quietProvider = 'quiet@load';
const quietAt = `/provider/${encodeURIComponent(quietProvider)}`;

/** References make it safe to retry, and the first requests of a system that has just started may time out. */
async function setUp(send: Send, { crmId }: Crm): Promise<void> {
  const create = (path: string, body: object): Promise<void> =>
    eventually(async () => {
      if (!(await send('POST', path, body))) throw new Error(`${path} is not made`);
    });
  const times = { start: '2035-01-08T10:00', end: '2035-01-08T11:00' };
  const names = { resourceReference: 'chair', productReference: 'cut', productName: 'Haircut' };
  await create('/user', {
    reference: 'owner@load',
    email: `owner@${crmId}.example`,
    username: `owner-${crmId}`,
    lastName: 'Owner',
  });
  await create('/account', { ownerReference: 'owner@load', accountReference: 'account@load', branch: 'misc' });
  for (const reference of [provider, quietProvider]) {
    await create('/provider', {
      reference,
      ownerReference: 'owner@load',
      accountReference: 'account@load',
      name: 'Salon',
    });
  }
  await create(`${at}/appointments`, { reference: booked, ...times, ...names, capacity: 1_000_000 });
  await create(`${quietAt}/appointments`, { reference: 'quiet-appointment@load', ...times, ...names, capacity: 1 });
}

/**
 * Writes and reads something of every service. E-mail addresses and usernames are unique across CRMs, so the round
 * contains the CRM's name.
 */
async function playRound(
  send: Send,
  { answered, bookers }: Pick<Load, 'answered' | 'bookers'>,
  round: string,
): Promise<void> {
  const email = `grace-${round}@load.example`;
  const [user, customer] = [`user-${round}@load`, `customer-${round}@load`];
  const count = async (service: keyof Answered, answer: Promise<boolean>): Promise<boolean> => {
    const good = await answer;
    if (good) answered[service] += 1;
    return good;
  };
  if (
    await count(
      'identity',
      send('POST', '/user', {
        reference: user,
        email: `${round}@load.example`,
        username: `user-${round}`,
        lastName: 'X',
      }),
    )
  ) {
    await count('identity', send('GET', `/user/${encodeURIComponent(user)}`));
  }
  const person = {
    customerReference: customer,
    providerReference: provider,
    userName: 'Grace Hopper',
    email,
    language: 'en',
  };
  if (!(await count('customer', send('POST', `${at}/customers`, person)))) return;
  await count('customer', send('GET', `${at}/customers/${encodeURIComponent(customer)}`));
  const booking = {
    reference: `booking-${round}@load`,
    appointmentReference: booked,
    customerReference: customer,
    state: 'BOOKED',
  };
  if (await count('bookings', send('POST', `${at}/participations`, booking)))
    bookers.set(email, (bookers.get(email) ?? 0) + 1);
  await count('calendar', send('GET', `${quietAt}/appointments?limit=1`));
  // Streamed, over a separate connection.
  await count('calendar', send('GET', `${quietAt}/appointments`));
}

interface LoadRequest {
  method: 'GET' | 'POST';
  path: string;
  body: object | undefined;
}

async function sendOne(
  gateway: string,
  { crmId, apiKey }: Crm,
  { method, path, body }: LoadRequest,
  failures: string[],
): Promise<boolean> {
  const what = `${new Date().toISOString()} ${method} ${path} at ${gateway}`;
  try {
    const headers = { 'X-SERVICE-CLIENT-ID': apiKey, 'Content-Type': 'application/json' };
    const request =
      body === undefined ? { headers: { 'X-SERVICE-CLIENT-ID': apiKey } } : { headers, body: JSON.stringify(body) };
    const response = await fetch(`${gateway}/crms/${crmId}${path}`, {
      method,
      ...request,
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
    const text = await response.text();
    if (!response.ok) failures.push(`${what}: ${response.status} ${text}`);
    return response.ok;
  } catch (error) {
    failures.push(`${what}: ${String(error)} (${String((error as Error).cause)})`);
    return false;
  }
}
