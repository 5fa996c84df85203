import { someOf } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayWithKeys, startGatewayWithKeys } from './gateway-under-test.ts';

/** How much longer a long text may take than any other invalid request, in milliseconds. */
const allowanceMs = 50;
/** The garbage of earlier requests may be collected in one attempt, but not in all of them. */
const attempts = 3;

/** Texts that take at most this many bytes in JSON, made to mislead a parser or a regular expression. */
const shapes: Record<string, (length: number) => string> = {
  'of one letter': (length) => 'a'.repeat(length),
  'of letters and @': (length) => 'a@'.repeat(length / 2),
  'with two @ far apart': (length) => `${'a'.repeat(length / 2)}@`.repeat(2),
  'like a language tag': (length) =>
    `de${Array.from({ length: length / 9 - 1 }, (_, index) => `-${10_000_000 + index}`).join('')}`,
  'of white space and letters': (length) => ' ä'.repeat(length / 3),
  'like a date-time': (length) => '2030-01-01T'.repeat(length / 11),
  'of control characters': (length) => '\u0001'.repeat(length / 6),
  'of per cent signs': (length) => '%'.repeat(length),
};
/** Time that grows faster than the length of a text shows at this length already. */
const usualLength = 100_000;
/** Hardly more fits into a body. */
const longestLength = 1_000_000;
/** A request line and headers have at most 16 KiB together. */
const addressLength = 12_000;

type Json = Record<string, unknown>;

interface Schema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  examples?: Json[];
}

interface Operation {
  parameters?: { name: string; in: string; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema; examples?: Record<string, { value: Json }> }> };
}

let gateway: GatewayWithKeys<'customer'>;
let document: { paths: Record<string, Record<string, Operation>>; components: { schemas: Record<string, Schema> } };

beforeAll(async () => {
  gateway = await startGatewayWithKeys('customer');
  document = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as typeof document;
});
afterAll(() => gateway[Symbol.asyncDispose]());

interface Probe {
  name: string;
  method: string;
  path: string;
  body?: string;
  headers?: Record<string, string>;
}

/**
 * The cheapest of some attempts, in milliseconds of CPU time of this thread, in which the gateway runs: other processes
 * do not count.
 */
async function measure(
  { method, path, body, headers }: Probe,
  enoughMs: number,
): Promise<{ ms: number; status: number }> {
  let best = { ms: Number.POSITIVE_INFINITY, status: 0 };
  for (let attempt = 0; attempt < attempts && best.ms > enoughMs; attempt += 1) {
    const started = process.threadCpuUsage();
    const response = await fetch(gateway.url + path, {
      method,
      headers: {
        'x-service-client-id': gateway.key,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body }),
    });
    await response.arrayBuffer();
    const { user, system } = process.threadCpuUsage(started);
    best = { ms: Math.min(best.ms, (user + system) / 1_000), status: response.status };
  }
  return best;
}

function operations(): { method: string; path: string; operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, each]) =>
    Object.entries(each).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

function resolve(schema: Schema): Schema {
  return schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/').at(-1)!]!;
}

function filledPath(path: string, filled: Record<string, string> = {}): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => filled[name] ?? (name === 'crmId' ? 'one' : 'x%40y'));
}

/** Every place of a string in a body, as the example with a placeholder there. */
function bodiesWithPlaceholder(schema: Schema, example: unknown): { pointer: string; body: unknown }[] {
  const resolved = resolve(schema);
  const places: { pointer: string; body: unknown }[] = [];
  if ([resolved.type].flat().includes('string')) places.push({ pointer: '', body: placeholder });
  if (resolved.items !== undefined) {
    const [first, ...rest] = Array.isArray(example) ? (example as unknown[]) : [];
    for (const { pointer, body } of bodiesWithPlaceholder(resolved.items, first))
      places.push({ pointer: `/0${pointer}`, body: [body, ...rest] });
  }
  for (const [name, property] of Object.entries(resolved.properties ?? {})) {
    const fields = typeof example === 'object' && example !== null ? (example as Json) : {};
    for (const { pointer, body } of bodiesWithPlaceholder(property, fields[name]))
      places.push({ pointer: `/${name}${pointer}`, body: { ...fields, [name]: body } });
  }
  return places;
}

const placeholder = 'PLACEHOLDER';

function bodyProbes(textOf: (length: number) => string, length: number): Probe[] {
  const text = JSON.stringify(textOf(length)).slice(1, -1);
  return operations().flatMap(({ method, path, operation }) => {
    const content = operation.requestBody?.content['application/json'];
    if (content === undefined) return [];
    const { schema } = content;
    const examples =
      content.examples === undefined
        ? (resolve(schema).examples ?? [{}])
        : Object.values(content.examples).map(({ value }) => value);
    // A body of one of two kinds has an example of each, in the same order.
    return examples.flatMap((example, index) =>
      bodiesWithPlaceholder(schema.anyOf?.[index] ?? schema, example).map(({ pointer, body }) => ({
        name: `${method} ${path} ${pointer}`,
        method,
        path: filledPath(path),
        body: JSON.stringify(body).replace(placeholder, () => text),
      })),
    );
  });
}

function addressProbes(textOf: (length: number) => string): Probe[] {
  const text = encodeURIComponent(textOf(addressLength));
  // Not in the middle of an escape sequence.
  const cut = (length: number): string => text.slice(0, length).replace(/%.?$/, '');
  return operations().flatMap(({ method, path, operation }) =>
    (operation.parameters ?? []).flatMap((parameter): Probe[] => {
      const probe = {
        name: `${method} ${path} ${parameter.in} ${parameter.name}`,
        method,
        ...(operation.requestBody && { body: '{}' }),
      };
      if (parameter.in === 'path') return [{ ...probe, path: filledPath(path, { [parameter.name]: cut(3_000) }) }];
      if (parameter.in === 'query')
        return [{ ...probe, path: `${filledPath(path)}?${parameter.name}=${cut(addressLength)}` }];
      return [];
    }),
  );
}

const headers = [
  'x-service-client-id',
  'x-request-id',
  'idempotency-key',
  'prefer',
  'traceparent',
  'accept',
  'accept-language',
  'content-type',
  'if-none-match',
];

function headerProbes(textOf: (length: number) => string): Probe[] {
  const text = textOf(addressLength)
    .replaceAll(/[^\x20-\x7e]/g, '~')
    .trim();
  return headers.flatMap((name) => [
    { name: `header ${name}`, method: 'POST', path: '/crms/one/user', body: '{}', headers: { [name]: text } },
    ...['/', '/docs', '/verify-email?token=t'].map((path) => ({
      name: `header ${name} of ${path}`,
      method: 'GET',
      path,
      headers: { [name]: text },
    })),
  ]);
}

describe('a long text', () => {
  it.each(someOf(Object.entries(shapes)))(
    '%s is answered as fast as any invalid request, in every field of every operation',
    async (name, textOf) => {
      const length = name === 'of one letter' ? longestLength : usualLength;
      const plain = await measure({ name: 'plain', method: 'POST', path: '/crms/one/user', body: '{}' }, 0);
      expect(plain.status).toBe(400);
      const limitMs = plain.ms + allowanceMs;
      const probes = [...bodyProbes(textOf, length), ...addressProbes(textOf), ...headerProbes(textOf)];
      expect(probes.length).toBeGreaterThan(150);
      const slow: string[] = [];
      for (const probe of probes) {
        const { ms, status } = await measure(probe, limitMs);
        if (ms > limitMs || status >= 500) slow.push(`${probe.name}: ${status} after ${Math.round(ms)} ms`);
      }
      expect(slow).toEqual([]);
    },
    120_000,
  );
});
