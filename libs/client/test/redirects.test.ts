import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Client, createClient } from '../src/create-client.ts';

let stranger: Server;
/** What another host than that of the service was sent. */
let revealed: { key: string | string[] | undefined }[];
let service: Server;
let redirect: { status: number; location: string };
let attempts: number;

beforeAll(async () => {
  stranger = createServer((request, response) => {
    revealed.push({ key: request.headers['x-service-client-id'] });
    response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
  }).listen(0, '127.0.0.1');
  service = createServer((_request, response) => {
    attempts += 1;
    response.writeHead(redirect.status, { location: redirect.location }).end();
  }).listen(0, '127.0.0.1');
  await Promise.all([once(stranger, 'listening'), once(service, 'listening')]);
});
beforeEach(() => {
  [revealed, attempts] = [[], 0];
});
afterAll(() => {
  stranger.close();
  service.close();
});

const addressOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const calls: { name: string; send: (client: Client) => Promise<unknown> }[] = [
  { name: 'GET', send: (client) => client.GET('/webhooks') },
  { name: 'GET that asks for it', send: (client) => client.GET('/webhooks', { redirect: 'follow' }) },
  {
    name: 'POST',
    send: (client) =>
      client.POST('/user', { body: { reference: 'u@x', email: 'u@x.example', username: 'u', lastName: 'L' } }),
  },
  {
    name: 'PUT',
    send: (client) =>
      client.PUT('/user/{reference}', { params: { path: { reference: 'u@x' } }, body: { lastName: 'L' } }),
  },
  { name: 'DELETE', send: (client) => client.DELETE('/user/{reference}', { params: { path: { reference: 'u@x' } } }) },
];

describe.each([301, 302, 303, 307, 308])('a redirect with %i', (status) => {
  it.each(calls)('is not followed by a $name, and is an error at once', async ({ send }) => {
    redirect = { status, location: `${addressOf(stranger)}/crms/one/webhooks` };
    const client = createClient({ url: addressOf(service), crmId: 'one', key: 'secret' });
    const message = expect.stringMatching(new RegExp(`^${status} .*: redirects are not followed$`)) as string;
    await expect(send(client)).rejects.toMatchObject({ name: 'ProblemError', status, code: undefined, message });
    expect({ revealed, attempts }).toEqual({ revealed: [], attempts: 1 });
  });
});

it('a redirect on the same host is not followed either', async () => {
  redirect = { status: 307, location: '/elsewhere' };
  await expect(
    createClient({ url: addressOf(service), crmId: 'one', key: 'secret' }).GET('/webhooks'),
  ).rejects.toMatchObject({ status: 307 });
  expect(attempts).toBe(1);
});
