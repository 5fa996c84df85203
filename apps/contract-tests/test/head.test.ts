import { beforeAll, describe, expect, inject, it } from 'vitest';
import { someOf } from '@scheduling/testing';
import type { Place } from '@scheduling/test-stack/api-document';
import { apiDocument } from '@scheduling/test-stack/client';
import { createCrm, type Practice, type TestCrm } from '@scheduling/test-stack/crm';
import { cases, type Request, type World } from './isolation/operation-cases.ts';
import { waitUntilQuiet } from './isolation/snapshot.ts';
import { createWorld } from './isolation/world.ts';

/**
 * A HEAD is answered as the GET, without a body (RFC 9110 9.3.2). That the services log no errors is checked when all
 * tests are over.
 */

const { places } = await apiDocument();
const reads = places.filter(({ method }) => method === 'get');

let crm: TestCrm;
let practice: Practice;
let world: World;
beforeAll(async () => {
  crm = await createCrm({ sandbox: true });
  ({ practice, world } = await createWorld(crm));
  await waitUntilQuiet([crm]);
});

interface Head {
  status: number;
  headers: Record<string, string>;
  length: number;
}

async function send(method: string, address: string, key = crm.key): Promise<Head> {
  const response = await fetch(inject('stack').gateway + address, {
    method,
    headers: { 'x-service-client-id': key, 'x-request-id': 'head' },
  });
  const { length } = await response.text();
  return { status: response.status, headers: Object.fromEntries(response.headers), length };
}

async function expectSame(address: string, key?: string): Promise<void> {
  const read = await send('GET', address, key);
  const head = await send('HEAD', address, key);
  expect({ ...head, headers: comparable(head.headers) }, address).toEqual({
    status: read.status,
    headers: comparable(read.headers),
    length: 0,
  });
  // A response that is sent while it is made has no length.
  expect([undefined, read.headers['content-length']], address).toContain(head.headers['content-length']);
}

/** Without those that are about the connection, and the time. */
function comparable({
  connection: _connection,
  'keep-alive': _idle,
  'transfer-encoding': _coding,
  'content-length': _length,
  date: _date,
  ...headers
}: Head['headers']): Head['headers'] {
  return headers;
}

function addressOf(place: Place, { path, query }: Request): string {
  const at = place.path
    .replace('{crmId}', crm.crmId)
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name]!));
  return `${at}?${new URLSearchParams(query).toString()}`;
}

function isParameter({ operation }: Place, name: string): boolean {
  return operation.parameters?.some((parameter) => parameter.name === name) ?? false;
}

describe.each(someOf(reads))('a HEAD of $operation.operationId', (place) => {
  it('is answered as the GET, without a body', async () => {
    const request = cases[place.operation.operationId]!.request(world, practice);
    const address = addressOf(place, request);
    await expectSame(address);
    await expectSame(address, 'unknown');
    await expectSame(
      addressOf(place, {
        ...request,
        path: Object.fromEntries(Object.keys(request.path).map((name) => [name, 'unknown'])),
      }),
    );
    for (const [name, value] of [
      ['limit', '1'],
      ['limit', '0'],
      ['cursor', 'none'],
      ['after', 'none'],
    ] as const) {
      if (isParameter(place, name))
        await expectSame(addressOf(place, { ...request, query: { ...request.query, [name]: value } }));
    }
  });
});

it.each([
  '/',
  '/docs',
  '/openapi.json',
  '/guides',
  '/livez',
  '/readyz',
  '/verify-email?token=t',
  '/nowhere',
  '/crms/one/nowhere',
])('a HEAD of %s is answered as the GET, without a body', async (address) => {
  await expectSame(address);
});
