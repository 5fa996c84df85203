import { Agent, request } from 'node:http';

/** What a noise needs to know about the system and the tenant that makes it. */
export interface Target {
  /** The gateway, without a trailing slash. */
  url: string;
  crmId: string;
  key: string;
  /** `/provider/<reference>` */
  provider: string;
  resource: string;
  customer: string;
  /** An appointment with a million seats. */
  appointment: string;
  /** Of a booking that can be moved to 2,000 times of a week. */
  link: string;
  /** A booking page that lists these times, and which has mails sent. */
  bookingPage: string;
  /** Another CRM of the tenant, with opening hours of 1,000 resources. */
  sandbox: { crmId: string; key: string };
}

/**
 * How the responses to a noise are distributed over the statuses; 0 counts connections that the gateway closed without
 * one.
 */
export type Statuses = Record<number, number>;

export interface Noise {
  name: string;
  /** What one client of it does again and again, as fast as it is served. */
  clients: number;
  act: (target: Target, send: Send) => Promise<number>;
  /** What else is measured, beside the bookings, because it would suffer first. */
  disturbs?: Disturbed;
}

/**
 * A page of the neighbour's feed, a test of the neighbour's webhook, the confirmation of a booking of somebody else at
 * the tenant that makes the noise, the erasure of an address by the neighbour, the page of a booking there, or a booking
 * on its own booking page; `api`: a list of slots by the tenant whose pages make the noise.
 */
export type Disturbed = 'events' | 'test' | 'confirmation' | 'erasure' | 'page' | 'booking page' | 'api';

/** A path is that of the tenant; what is no path is a whole address. */
export type Send = (
  method: string,
  path: string,
  body?: string | Buffer,
  headers?: Record<string, string>,
) => Promise<number>;

/** Makes the noise until the signal aborts. Returns what was answered. */
export async function makeNoise({ clients, act }: Noise, target: Target, signal: AbortSignal): Promise<Statuses> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const send = sender(target, agent);
  const statuses: Statuses = {};
  const client = async (): Promise<void> => {
    while (!signal.aborted) {
      const status = await act(target, send);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  void Promise.all(Array.from({ length: clients }, client));
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  agent.destroy();
  return statuses;
}

function sender({ url, crmId, key }: Target, agent: Agent): Send {
  return (method, path, body, headers) =>
    new Promise((resolve) => {
      const outgoing = request(path.startsWith('/') ? `${url}/crms/${crmId}${path}` : path, {
        method,
        agent,
        headers: {
          'x-service-client-id': key,
          ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
          ...headers,
        },
      });
      outgoing.on('response', (response) => {
        response.resume().on('close', () => resolve(response.statusCode!));
      });
      outgoing.on('error', () => resolve(0));
      outgoing.end(body);
    });
}
