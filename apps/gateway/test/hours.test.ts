import { HoursServiceService } from '@scheduling/contracts/calendar/v1';
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
const json = Buffer.from('{"resourceReference":"r"}');

beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  const { identity } = stack.use(await startServiceProcesses(['identity'], nats.url));
  using admin = createClient(AdminServiceService, 'identity', identity.adminAddress, longTimeout);
  await admin.createCrm({ crmId: 'one' });
  key = (await admin.createKey({ crmId: 'one' })).key;
  const answering =
    <Answer>(answer: Answer) =>
    async (message: object) => {
      received.push(message);
      return answer;
    };
  const callers = { putHours: [], putHoursOfResources: [], getHours: [], deleteHours: [] };
  const calendar = hostService(HoursServiceService, callers, {
    putHours: answering({ json, conflicts }),
    putHoursOfResources: answering({ json: Buffer.from(`${json.toString()},${json.toString()}`), conflicts }),
    getHours: answering({ json }),
    deleteHours: answering({ conflicts }),
  });
  const logger = testLogger('calendar');
  const { port } = stack.use(await startRpcServer({ host: '127.0.0.1', port: 0, logger, services: [calendar] }));
  const settings = { IDENTITY_ADDRESS: identity.address, CALENDAR_ADDRESS: `127.0.0.1:${port}` };
  gateway = stack.use(await startGateway({ NATS_URL: nats.url('gateway'), ...settings }));
});
afterAll(() => stack.disposeAsync());
beforeEach(() => {
  received = [];
});

async function send(method: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${gateway.url}/crms/one/provider/p${path}`, {
    method,
    headers: { 'x-service-client-id': key, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
  return response.json();
}

const window = { from: '09:00', to: '24:00', raster: 30, defaultCapacity: 1, defaultAcceptBookings: false };
const address = { city: 'B', zip: null, country: 'DE', street: '' };
const hours = {
  weekly: [
    { weekdays: ['1', '7'], ...window, address: 'https://video.example/1', bufferBefore: null, bufferAfter: 1_440 },
  ],
  exceptions: [
    { from: '2030-01-01', to: '2030-01-02', windows: [], note: '' },
    {
      from: '2030-01-03',
      to: '2030-01-03',
      windows: [{ ...window, weekdays: ['2'], address, bufferBefore: 5, bufferAfter: 0 }],
      note: 'n',
    },
  ],
  validFrom: '2030-01-01',
  validUntil: null,
  aheadDays: 7,
};
const ofResource = { crmId: 'one', providerReference: 'p', resourceReference: 'r' };
const apiInfo = { version: '1' };

it('passes opening hours to calendar, and its answer to the client', async () => {
  expect(await send('PUT', '/resource/r/hours', hours)).toEqual({
    'api-info': apiInfo,
    hours: { resourceReference: 'r' },
    conflicts,
  });
  expect(received).toEqual([
    {
      ...ofResource,
      hours: {
        weekly: [
          {
            weekdays: ['1', '7'],
            ...window,
            address: { kind: { $case: 'text', value: 'https://video.example/1' } },
            bufferAfter: 1_440,
          },
        ],
        exceptions: [
          { from: '2030-01-01', to: '2030-01-02', windows: [] },
          {
            from: '2030-01-03',
            to: '2030-01-03',
            windows: [
              {
                weekdays: [],
                ...window,
                address: { kind: { $case: 'address', value: { city: 'B', countryCode: 'DE' } } },
                bufferBefore: 5,
                bufferAfter: 0,
              },
            ],
            note: 'n',
          },
        ],
        validFrom: '2030-01-01',
        aheadDays: 7,
      },
    },
  ]);
});

it.each([
  ['is absent', {}],
  ['is null', { exceptions: null, validFrom: null, validUntil: null, aheadDays: null }],
])('fills in what %s', async (_, fields) => {
  await send('PUT', '/resource/r/hours', { weekly: [], ...fields });
  expect(received).toEqual([{ ...ofResource, hours: { weekly: [], exceptions: [], aheadDays: 92 } }]);
});

it('passes those of several resources in one call', async () => {
  expect(await send('PUT', '/hours', { weekly: [], resourceReferences: ['r', 'r2'] })).toEqual({
    'api-info': apiInfo,
    hours: [{ resourceReference: 'r' }, { resourceReference: 'r' }],
    conflicts,
  });
  expect(received).toEqual([
    {
      crmId: 'one',
      providerReference: 'p',
      resourceReferences: ['r', 'r2'],
      hours: { weekly: [], exceptions: [], aheadDays: 92 },
    },
  ]);
});

it('reads and deletes them', async () => {
  expect(await send('GET', '/resource/r/hours')).toEqual({
    'api-info': apiInfo,
    hours: { resourceReference: 'r' },
  });
  expect(await send('DELETE', '/resource/r/hours')).toEqual({ 'api-info': apiInfo, conflicts });
  expect(received).toEqual([ofResource, ofResource]);
});
