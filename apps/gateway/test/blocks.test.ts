import { BlockServiceService } from '@scheduling/contracts/calendar/v1';
import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { createClient, hostService } from '@scheduling/rpc';
import { startRpcServer } from '@scheduling/rpc/server';
import { longTimeout, startServiceProcesses, startTestNats, testLogger } from '@scheduling/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type GatewayUnderTest, startGateway } from './gateway-under-test.ts';

const stack = new AsyncDisposableStack();
let gateway: GatewayUnderTest;
let key: string;
/** The messages that arrived at calendar. */
let received: object[];

const conflicts = { appointmentReferences: ['a', 'b'], total: 2 };
const json = (reference: string): Buffer => Buffer.from(JSON.stringify({ reference }));
/** Whether calendar has no block with the reference yet. */
let created = true;

beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  const { identity } = stack.use(await startServiceProcesses(['identity'], nats.url));
  using admin = createClient(AdminServiceService, 'identity', identity.adminAddress, longTimeout);
  await admin.createCrm({ crmId: 'one' });
  key = (await admin.createKey({ crmId: 'one' })).key;
  const callers = { createBlock: [], listBlocks: [], deleteBlock: [] };
  const calendar = hostService(BlockServiceService, callers, {
    createBlock: async (message) => {
      received.push(message);
      return { json: json('b'), conflicts, created };
    },
    listBlocks: async function* (message) {
      received.push(message);
      yield { json: Buffer.from(`${json('b').toString()},${json('c').toString()}`) };
      yield { json: json('d'), ...(message.limit !== undefined && { nextCursor: 'after-d' }) };
    },
    deleteBlock: async (message) => {
      received.push(message);
      return {};
    },
  });
  const logger = testLogger('calendar');
  const { port } = stack.use(await startRpcServer({ host: '127.0.0.1', port: 0, logger, services: [calendar] }));
  const settings = { IDENTITY_ADDRESS: identity.address, CALENDAR_ADDRESS: `127.0.0.1:${port}` };
  gateway = stack.use(await startGateway({ NATS_URL: nats.url('gateway'), ...settings }));
});
afterAll(() => stack.disposeAsync());
beforeEach(() => {
  received = [];
  created = true;
});

async function send(method: string, path: string, body?: object): Promise<{ response: Response; answer: unknown }> {
  const response = await fetch(`${gateway.url}/crms/one/provider/p/resource/r/blocks${path}`, {
    method,
    headers: { 'x-service-client-id': key, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { response, answer: text === '' ? undefined : JSON.parse(text) };
}

const ofResource = { crmId: 'one', providerReference: 'p', resourceReference: 'r' };
const period = { start: '2030-01-01T09:00', end: '2030-01-01T10:00' };

it.each([
  ['passes a new block to calendar', true, 201],
  ['passes a repeated one to calendar', false, 200],
])('%s, and its answer to the client', async (_, isNew, status) => {
  created = isNew;
  const { response, answer } = await send('POST', '', { reference: 'b', ...period, note: 'n' });
  expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/json; charset=utf-8']);
  expect(answer).toEqual({ 'api-info': { version: '1' }, block: { reference: 'b' }, conflicts });
  expect(received).toEqual([{ ...ofResource, reference: 'b', ...period, note: 'n' }]);
});

it.each([
  ['absent', {}],
  ['null', { reference: null, note: null }],
  ['empty', { reference: '', note: '' }],
])('leaves out what is %s', async (_, fields) => {
  await send('POST', '', { ...period, ...fields });
  expect(received).toEqual([{ ...ofResource, ...period }]);
});

it('lists all blocks, or a page of them with the address of the next', async () => {
  const [from, to] = ['2030-01-01T00:00', '2030-01-02T00:00'];
  const query = `?from=${from}&to=${to}`;
  const blocks = ['b', 'c', 'd'].map((reference) => ({ reference }));
  const { response, answer } = await send('GET', query);
  expect([response.status, response.headers.get('link'), answer]).toEqual([200, null, blocks]);
  const page = await send('GET', `${query}&limit=3&cursor=c`);
  expect(page.answer).toEqual(blocks);
  expect(page.response.headers.get('link')).toMatch(/\/resource\/r\/blocks\?.*&limit=3&cursor=after-d>; rel="next"$/);
  expect(received).toEqual([
    { ...ofResource, from, to },
    { ...ofResource, from, to, limit: 3, cursor: 'c' },
  ]);
});

it('deletes one', async () => {
  const { response, answer } = await send('DELETE', '/b%2F1%40acme');
  expect([response.status, answer]).toEqual([204, undefined]);
  expect(received).toEqual([{ ...ofResource, blockReference: 'b/1@acme' }]);
});
