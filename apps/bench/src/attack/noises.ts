import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server as TcpServer,
  type Socket,
} from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { hoursNoises } from './hours-noises.ts';
import type { Noise, Send, Target } from './noise.ts';
import { pageNoises } from './page-noises.ts';

const text = 'x'.repeat(1_000);

/** A tenant, or a stranger, that uses all the gateway gives. */
export const noises: Noise[] = [
  // The others leave mails behind, which the tenant's later ones wait for.
  {
    name: 'changes of an appointment with one participant',
    clients: 5,
    act: changeAppointment,
    disturbs: 'confirmation',
  },
  {
    name: 'bookings',
    clients: 32,
    act: ({ provider, appointment, customer }, send) =>
      send(
        'POST',
        `${provider}/participations`,
        JSON.stringify({
          reference: randomUUID(),
          appointmentReference: appointment,
          customerReference: customer,
          state: 'BOOKED',
        }),
      ),
  },
  {
    name: 'series of 1,000 appointments',
    clients: 20,
    act: ({ provider, resource }, send) =>
      send(
        'POST',
        `${provider}/appointments`,
        JSON.stringify({
          series_data: { from: '2031-05-05T00:00', to: '2031-05-05T16:40', raster: 1 },
          resourceReference: resource,
          productReference: 'p',
        }),
      ),
  },
  {
    name: 'appointments with 500 participations',
    clients: 20,
    act: ({ provider, resource }, send) => send('POST', `${provider}/appointments`, bigAppointment(resource)),
  },
  {
    name: 'complete lists of 100 such appointments',
    clients: 10,
    act: ({ provider, resource }, send) =>
      send('GET', `${provider}/appointments?resourceRef=${encodeURIComponent(`big-${resource}`)}`),
  },
  {
    name: 'lists of 40 timeslots that share 200 appointments',
    clients: 5,
    act: ({ provider, resource }, send) =>
      send(
        'GET',
        `${provider}/resource/${encodeURIComponent(`pairs-${resource}`)}/timeslots?from=2031-01-01T00:00&to=2032-01-01T00:00&limit=40`,
      ),
  },
  {
    name: 'first slots of 3,900 timeslots and 1,000 appointments',
    clients: 8,
    act: ({ provider }, send) => send('GET', `${provider}/slots?from=${fullDay}T12:00&to=${fullDay}T20:00&limit=1`),
  },
  {
    name: 'all slots of 3,900 timeslots and 1,000 appointments',
    clients: 8,
    act: ({ provider }, send) => send('GET', `${provider}/slots?from=${fullDay}T12:00&to=${fullDay}T20:00`),
  },
  {
    name: 'first slots of 30,000 timeslots',
    clients: 8,
    act: ({ provider }, send) =>
      send('GET', `${provider}/slots?from=${tooFullDay}T12:00&to=${tooFullDay}T20:00&limit=1`),
  },
  {
    name: '300 timeslots at once that share 10,000 appointments',
    clients: 8,
    act: ({ provider, resource }, send) => send('POST', `${provider}/timeslots`, sharingTimeslots(resource)),
  },
  { name: 'erasures of 120 addresses with 50 customers each', clients: 10, act: eraseNextAddress, disturbs: 'erasure' },
  { name: 'pages of 1,000 events', clients: 20, act: (_target, send) => send('GET', '/events?limit=1000') },
  { name: '10 webhooks that are sent all events again', clients: 10, act: receiveOneEvent },
  {
    name: 'tests of an endpoint that sends interim responses',
    clients: 10,
    act: (_target, send) => testWebhook(send, sendInterimResponses),
    disturbs: 'events',
  },
  {
    name: 'tests of an endpoint that does not answer',
    clients: 10,
    act: (_target, send) => testWebhook(send, () => undefined),
    disturbs: 'test',
  },
  {
    name: 'unknown keys',
    clients: 50,
    act: (_target, send) =>
      send('GET', '/user/x', undefined, { 'x-service-client-id': randomBytes(24).toString('base64url') }),
  },
  { name: 'slow sockets', clients: 500, act: (target) => sendSlowly(target) },
  { name: 'bodies one byte short of 1 MB', clients: 500, act: (target) => sendAllButOneByte(target) },
  { name: 'pipelines of 300 requests, closed at once', clients: 20, act: (target) => sendPipeline(target) },
  {
    name: 'long texts',
    clients: 20,
    act: (_target, send) =>
      send(
        'POST',
        '/user',
        JSON.stringify({ reference: `${'a'.repeat(300_000)}@${'a'.repeat(300_000)}@`, language: 'a-'.repeat(200_000) }),
      ),
  },
  { name: 'verification mails to one mailbox', clients: 20, act: (_target, send) => verifyOnce(send) },
  {
    name: 'compressed bodies',
    clients: 20,
    act: (_target, send) => send('POST', '/user', bomb, { 'content-encoding': 'gzip' }),
  },
  ...hoursNoises,
  ...pageNoises,
];

/**
 * On which about as many timeslots overlap as a list of slots permits, and many open appointments begin at the same
 * moment.
 */
export const fullDay = '2031-03-03';
/** On which more timeslots do. */
export const tooFullDay = '2031-03-05';

/** New ones in the first request, and the same ones in the others. */
function sharingTimeslots(resource: string): string {
  const slot = {
    resourceReference: `shared-${resource}`,
    start: '2031-02-01T00:00',
    end: '2031-02-08T00:00',
    raster: 30,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    state: 'BOOKABLE',
  };
  return JSON.stringify({
    timeslots: Array.from({ length: 300 }, (_, number) => ({ reference: `sharing-${number}@${resource}`, ...slot })),
  });
}

/**
 * Each time another user, who is deleted afterwards, has the mailbox. The status is that of the request for the mail.
 */
async function verifyOnce(send: Send): Promise<number> {
  const name = randomUUID();
  await send(
    'POST',
    '/user',
    JSON.stringify({
      reference: `${name}@noise`,
      email: `victim+${name}@noise.example`,
      username: name,
      lastName: 'L',
    }),
  );
  const status = await send('POST', `/user/${encodeURIComponent(`${name}@noise`)}/verification`);
  await send('DELETE', `/user/${encodeURIComponent(`${name}@noise`)}`);
  return status;
}

const bomb = gzipSync(Buffer.alloc(200_000_000));

export function bigAppointment(resource: string): string {
  const participations = Array.from({ length: 500 }, () => ({
    reference: randomUUID(),
    name: 'N',
    email: 'n@x.example',
    note: text,
    state: 'BOOKED',
  }));
  return JSON.stringify({
    reference: randomUUID(),
    start: '2031-05-05T09:00',
    end: '2031-05-05T10:00',
    resourceReference: resource,
    productReference: 'p',
    participations,
  });
}

/** Endpoints whose next call nobody waits for. */
const endpoints: Server[] = [];

/** The first call of each client creates a webhook, and has it sent all events. */
async function receiveOneEvent(_target: Target, send: Send): Promise<number> {
  const endpoint = endpoints.pop() ?? (await createWebhook(send));
  await once(endpoint, 'request');
  endpoints.push(endpoint);
  return 200;
}

async function createWebhook(send: Send): Promise<Server> {
  const endpoint = createServer(
    (incoming, response) => void incoming.resume().on('end', () => response.writeHead(204).end()),
  );
  await leadWebhookTo(endpoint, send, `noise-${(webhooks += 1)}`, 'start');
  return endpoint;
}

/** A CRM can have 10 webhooks, so all noises use the same. */
let webhooks = 0;

async function leadWebhookTo(
  endpoint: TcpServer,
  send: Send,
  reference: string,
  after: 'start' | 'end',
): Promise<void> {
  await once(endpoint.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/`;
  await send('POST', '/webhooks', JSON.stringify({ reference, url }));
  await send('PUT', `/webhooks/${reference}`, JSON.stringify({ url, after, state: 'ENABLED' }));
}

let tested: Promise<void> | undefined;

/** The first call has the webhook lead to an endpoint that answers in this way. */
async function testWebhook(send: Send, answer: (socket: Socket) => void): Promise<number> {
  const endpoint = (): TcpServer =>
    createTcpServer((socket) => void socket.on('error', () => undefined).once('data', () => answer(socket)));
  tested ??= leadWebhookTo(endpoint(), send, 'noise-1', 'end');
  await tested;
  return send('POST', '/webhooks/noise-1/test');
}

const interimResponses = 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000);

function sendInterimResponses(socket: Socket): void {
  while (!socket.destroyed && socket.write(interimResponses));
  socket.once('drain', () => sendInterimResponses(socket));
}

const changed = `noise-${randomUUID()}`;
let created: Promise<unknown> | undefined;

/** Each change is a mail, of which the person gets those of an hour; the first call creates the appointment. */
async function changeAppointment({ provider, resource }: Target, send: Send): Promise<number> {
  const participations = [
    { reference: randomUUID(), name: 'N', email: `${changed}@customers.example`, state: 'BOOKED' },
  ];
  const appointment = {
    reference: changed,
    start: '2031-05-06T09:00',
    end: '2031-05-06T10:00',
    resourceReference: `changed-${resource}`,
    productReference: 'p',
    participations,
  };
  created ??= send('POST', `${provider}/appointments`, JSON.stringify(appointment));
  await created;
  return send('PUT', `${provider}/appointments/${changed}`, JSON.stringify({ description: randomUUID() }));
}

/** Of the tenant that makes the noise, in turn; main.ts stores 50 customers with each. */
export const erasedAddresses = Array.from({ length: 120 }, (_, number) => `erased-${number}@noise.example`);
let erasures = 0;

function eraseNextAddress(_target: Target, send: Send): Promise<number> {
  return send('POST', '/erasures', JSON.stringify({ email: erasedAddresses[erasures++ % erasedAddresses.length] }));
}

async function sendSlowly({ url }: Target): Promise<number> {
  const socket = open(url);
  const closed = new Promise<number>((resolve) => socket.on('close', () => resolve(0)));
  const timer = setInterval(() => socket.write('x'), 1_000);
  socket.write('GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ');
  return closed.finally(() => clearInterval(timer));
}

async function sendAllButOneByte({ url, crmId, key }: Target): Promise<number> {
  const socket = open(url);
  const length = 1_000_000;
  const closed = new Promise<number>((resolve) => {
    socket
      .on('close', () => resolve(0))
      .on('data', (data) => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(String(data))?.[1] ?? 0)));
  });
  socket.write(
    `POST /crms/${crmId}/user HTTP/1.1\r\nHost: x\r\nX-Service-Client-Id: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`,
  );
  socket.write('"'.padEnd(length - 1, 'x'));
  const status = await closed;
  socket.destroy();
  return status;
}

async function sendPipeline({ url, crmId, key }: Target): Promise<number> {
  const socket = open(url);
  const paths = ['/docs/json', '/openapi.json', `/crms/${crmId}/user/x`];
  const bytes = Array.from(
    { length: 300 },
    (_, index) => `GET ${paths[index % 3]} HTTP/1.1\r\nHost: x\r\nX-Service-Client-Id: ${key}\r\n\r\n`,
  ).join('');
  await new Promise((resolve) => socket.write(bytes, resolve));
  await delay(20);
  socket.destroy();
  return 0;
}

function open(url: string) {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname).on('error', () => undefined);
}
