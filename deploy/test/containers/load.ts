import { eventually } from '@scheduling/testing';
import type { Crm } from './composed-system.ts';

/** What is asked, by the service that answers it behind the gateway. Each booking is also a mail, for notification. */
export interface Answered {
  identity: number;
  customer: number;
  calendar: number;
  bookings: number;
}

/** The gateways that get requests, as a Kubernetes Service has them. */
export interface Gateways {
  /** From now on this one gets requests, too. */
  add(url: string): void;
  /** From now on it gets none. Resolves when those on their way to it are answered. */
  remove(url: string): Promise<void>;
}

export interface Load {
  gateways: Gateways;
  /** Requests that were answered with 2xx so far. */
  answered: Answered;
  /** Whatever else happened to a request. */
  failures: string[];
  /** E-mail addresses of the people who book, with the number of their bookings. */
  bookers: Map<string, number>;
  /** Returns when the last requests are answered. */
  stop(): Promise<void>;
}

const workers = 4;
const requestTimeoutMs = 30_000;

type Send = (method: 'GET' | 'POST', path: string, body?: object) => Promise<boolean>;

/** Clients that set up, book and read without a pause, and that try nothing a second time. */
export async function startLoad(urls: Iterable<string>, crm: Crm): Promise<Load> {
  const balancer = createBalancer(urls);
  const stopping = new AbortController();
  const load: Omit<Load, 'stop'> = {
    gateways: balancer,
    answered: { identity: 0, customer: 0, calendar: 0, bookings: 0 },
    failures: [],
    bookers: new Map(),
  };
  const send: Send = (method, path, body) => balancer.use((gateway) => sendOne(gateway, crm, { method, path, body }, load.failures));
  await setUp(send, crm);
  const working = Array.from({ length: workers }, async (_, worker) => {
    for (let round = 0; !stopping.signal.aborted; round += 1) await playRound(send, load, `${crm.crmId}-${worker}-${round}`);
  });
  return {
    ...load,
    stop: async () => {
      stopping.abort();
      await Promise.all(working);
    },
  };
}

/** Takes the gateways in turn. */
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
/** Its list stays short. */
const quietProvider = 'quiet@load';
const quietAt = `/provider/${encodeURIComponent(quietProvider)}`;

/** References make a repetition safe, and the first requests of a system that has just started may take too long. */
async function setUp(send: Send, { crmId }: Crm): Promise<void> {
  const create = (path: string, body: object): Promise<void> =>
    eventually(async () => {
      if (!(await send('POST', path, body))) throw new Error(`${path} is not made`);
    });
  const times = { start: '2035-01-08T10:00', end: '2035-01-08T11:00' };
  const names = { resourceReference: 'chair', productReference: 'cut', productName: 'Haircut' };
  await create('/user', { reference: 'owner@load', email: `owner@${crmId}.example`, username: `owner-${crmId}`, lastName: 'Owner' });
  await create('/account', { ownerReference: 'owner@load', accountReference: 'account@load', branch: 'misc' });
  for (const reference of [provider, quietProvider]) {
    await create('/provider', { reference, ownerReference: 'owner@load', accountReference: 'account@load', name: 'Salon' });
  }
  await create(`${at}/appointments`, { reference: booked, ...times, ...names, capacity: 1_000_000 });
  await create(`${quietAt}/appointments`, { reference: 'quiet-appointment@load', ...times, ...names, capacity: 1 });
}

/** Something of every service, written and read. E-mail addresses and usernames are unique across CRMs, so the round has the CRM in its name. */
async function playRound(send: Send, { answered, bookers }: Pick<Load, 'answered' | 'bookers'>, round: string): Promise<void> {
  const email = `grace-${round}@load.example`;
  const [user, customer] = [`user-${round}@load`, `customer-${round}@load`];
  const count = async (service: keyof Answered, answer: Promise<boolean>): Promise<boolean> => {
    const good = await answer;
    if (good) answered[service] += 1;
    return good;
  };
  if (await count('identity', send('POST', '/user', { reference: user, email: `${round}@load.example`, username: `user-${round}`, lastName: 'X' }))) {
    await count('identity', send('GET', `/user/${encodeURIComponent(user)}`));
  }
  const person = { customerReference: customer, providerReference: provider, userName: 'Grace Hopper', email, language: 'en' };
  if (!(await count('customer', send('POST', `${at}/customers`, person)))) return;
  await count('customer', send('GET', `${at}/customers/${encodeURIComponent(customer)}`));
  const booking = { reference: `booking-${round}@load`, appointmentReference: booked, customerReference: customer, state: 'BOOKED' };
  if (await count('bookings', send('POST', `${at}/participations`, booking))) bookers.set(email, (bookers.get(email) ?? 0) + 1);
  await count('calendar', send('GET', `${quietAt}/appointments?limit=1`));
  // Streamed, over a connection of its own.
  await count('calendar', send('GET', `${quietAt}/appointments`));
}

interface LoadRequest {
  method: 'GET' | 'POST';
  path: string;
  body: object | undefined;
}

async function sendOne(gateway: string, { crmId, apiKey }: Crm, { method, path, body }: LoadRequest, failures: string[]): Promise<boolean> {
  const what = `${new Date().toISOString()} ${method} ${path} at ${gateway}`;
  try {
    const headers = { 'X-SERVICE-CLIENT-ID': apiKey, 'Content-Type': 'application/json' };
    const request = body === undefined ? { headers: { 'X-SERVICE-CLIENT-ID': apiKey } } : { headers, body: JSON.stringify(body) };
    const response = await fetch(`${gateway}/crms/${crmId}${path}`, { method, ...request, signal: AbortSignal.timeout(requestTimeoutMs) });
    const text = await response.text();
    if (!response.ok) failures.push(`${what}: ${response.status} ${text}`);
    return response.ok;
  } catch (error) {
    failures.push(`${what}: ${String(error)} (${String((error as Error).cause)})`);
    return false;
  }
}
