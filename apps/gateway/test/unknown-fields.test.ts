import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { createClient } from '@scheduling/rpc';
import { longTimeout, startServiceProcesses, startTestNats } from '@scheduling/testing';
import type { FastifyRequest } from 'fastify';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type GatewayUnderTest, startGateway } from './gateway-under-test.ts';

const stack = new AsyncDisposableStack();
let gateway: GatewayUnderTest;
let key: string;

beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  const { identity } = stack.use(await startServiceProcesses(['identity'], nats.url));
  using admin = createClient(AdminServiceService, 'identity', identity.adminAddress, longTimeout);
  await admin.createCrm({ crmId: 'one' });
  key = (await admin.createKey({ crmId: 'one' })).key;
  gateway = stack.use(await startGateway({ NATS_URL: nats.url('gateway'), IDENTITY_ADDRESS: identity.address }));
});
afterAll(() => stack.disposeAsync());

/** What Fastify publishes when it is about to call the handler of a request. */
const handlerStarts = 'tracing:fastify.request.handler:start';

it.each([
  { method: 'GET', path: '/user/u@x', known: { query: {}, body: undefined } },
  { method: 'PUT', path: '/user/u@x', known: { query: {}, body: { lastName: 'L' } } },
  {
    method: 'POST',
    path: '/account',
    known: { query: {}, body: { accountReference: 'a@x', ownerReference: 'u@x', branch: 'misc' } },
  },
  { method: 'POST', path: '/user/u@x/verification', known: { query: {}, body: {} } },
  { method: 'GET', path: '/events?limit=5', known: { query: { limit: 5 }, body: undefined } },
  { method: 'DELETE', path: '/user/u@x', known: { query: {}, body: {} } },
])(
  'the handler of $method $path sees only the parameters and fields that the API document names',
  async ({ method, path, known }) => {
    const seen: unknown[] = [];
    const onStart = (message: unknown): void => {
      const { query, body } = (message as { request: FastifyRequest }).request;
      seen.push({ query, body });
    };
    subscribe(handlerStarts, onStart);
    const url = new URL(`${gateway.url}/crms/one${path}`);
    url.searchParams.set('crmId', 'two');
    const body = method === 'GET' ? undefined : JSON.stringify({ ...known.body, crmId: 'two' });
    await fetch(url, {
      method,
      headers: { 'x-service-client-id': key, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body }),
    });
    unsubscribe(handlerStarts, onStart);
    expect(seen).toEqual([known]);
  },
);
