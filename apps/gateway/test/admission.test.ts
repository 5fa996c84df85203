import { eventually, whilePaused } from '@scheduling/testing';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fullShare } from '../src/admission.ts';
import { freeFailures } from '../src/authentication.ts';
import { type GatewayWithKeys, startGatewayWithKeys } from './gateway-under-test.ts';

let gateway: GatewayWithKeys<'calendar'>;
let otherKey: string;

beforeAll(async () => {
  gateway = await startGatewayWithKeys('calendar');
  ({ key: otherKey } = await gateway.admin.createKey({ crmId: 'two' }));
});
afterAll(() => gateway[Symbol.asyncDispose]());

function ask(path: string, key = gateway.key): Promise<Response> {
  return fetch(gateway.url + path, { headers: { 'x-service-client-id': key } });
}

async function answerOf(response: Promise<Response>) {
  const { status, headers } = await response;
  const { code } = (await (await response).json()) as { code: string };
  return { status, code, retryAfter: headers.get('retry-after') };
}

const tooBusy = { status: 429, code: 'rate.concurrent', retryAfter: '1' };

describe('a CRM whose requests hang', () => {
  it('has to wait for its own, and others do not wait for them', async () => {
    await whilePaused([gateway.services.calendar.pid], async () => {
      const hanging = Array.from({ length: 3 * fullShare }, () =>
        answerOf(ask('/crms/one/provider/p/appointments?limit=1')),
      );
      const others = Promise.all(Array.from({ length: 5 }, () => answerOf(ask('/crms/two/user/nobody', otherKey))));
      expect(await Promise.race([others, ...hanging])).toMatchObject(
        Array.from({ length: 5 }, () => ({ status: 404 })),
      );
      expect(await Promise.all(hanging)).toContainEqual(tooBusy);
    });
    await eventually(async () => expect((await ask('/crms/one/user/nobody')).status).toBe(404));
  });
});

describe('bodies that do not end', () => {
  const megabyte = 1_048_576;

  async function sendHalf(key: string, crmId: string): Promise<Socket> {
    const socket = connect(gateway.port, '127.0.0.1').on('error', () => undefined);
    const head = `POST /crms/${crmId}/user HTTP/1.1\r\nHost: x\r\nX-Service-Client-Id: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${megabyte}\r\n\r\n`;
    await new Promise((resolve) => socket.write(`${head}"`, resolve));
    return socket;
  }

  function post(crmId: string, key: string): Promise<Response> {
    const body = JSON.stringify({ lastName: 'x'.repeat(100_000) });
    return fetch(`${gateway.url}/crms/${crmId}/user`, {
      method: 'POST',
      body,
      headers: { 'x-service-client-id': key, 'content-type': 'application/json' },
    });
  }

  it('are limited per CRM in their bytes, and others of the CRM wait for the memory', async () => {
    const sockets = await Promise.all(Array.from({ length: 4 }, () => sendHalf(gateway.key, 'one')));
    await eventually(async () => expect(await answerOf(post('one', gateway.key))).toEqual(tooBusy));
    // A small body is always admitted, and so are those of other CRMs.
    expect((await gateway.send('POST', '/crms/one/user', {})).status).toBe(400);
    expect(await answerOf(post('two', otherKey))).toMatchObject({ status: 400 });
    // Its client connects before the memory becomes free, and has to wait for it.
    const waiting = answerOf(post('one', gateway.key));
    expect((await gateway.send('POST', '/crms/one/user', {})).status).toBe(400);
    for (const socket of sockets) socket.destroy();
    expect(await waiting).toMatchObject({ status: 400 });
  });
});

describe('bodies that nobody reads', () => {
  it.each(['/nowhere', '/verify-email'])('of strangers at %s keep no turn', async (path) => {
    for (let number = 0; number <= fullShare; number += 1) {
      const response = await fetch(gateway.url + path, {
        method: 'POST',
        body: '{}',
        headers: { 'content-type': 'application/json' },
      });
      await response.text();
      expect(response.status).toBe(404);
    }
  });
});

describe('unknown keys', () => {
  beforeAll(async () => {
    // Its key is known from now on.
    await ask('/crms/one/user/nobody');
    for (let number = 0; number < freeFailures; number += 50)
      await Promise.all(Array.from({ length: 50 }, (_, index) => ask('/crms/one/user/x', `wrong-${number + index}`)));
  });

  it('make their address wait, but not the keys that the gateway knows', async () => {
    const stranger = ask('/crms/one/user/x', 'wrong');
    const known = await Promise.race([stranger, ask('/crms/one/user/nobody')]);
    expect(known.status).toBe(404);
    expect((await stranger).status).toBe(401);
  });

  it('do not take the time of a new key of their address, which waits with them', async () => {
    const { key } = await gateway.admin.createKey({ crmId: 'one' });
    // Each of them prolongs the wait of the next, so that the last one waits for longer than a request may take.
    const strangers = Array.from({ length: 150 }, () => ask('/crms/one/user/x', 'wrong'));
    expect((await ask('/crms/one/user/nobody', key)).status).toBe(404);
    for (const { status } of await Promise.all(strangers)) expect(status).toBe(401);
  });
});
