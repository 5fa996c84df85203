import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { StackInfo } from '@scheduling/stack';
import { type ApiDocument, fetchApiDocument } from './api-document.ts';
import { sharedStack } from './shared-stack.ts';

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: string;
  /** Of `slot.unavailable`. */
  reason?: string;
  errors?: { pointer?: string; parameter?: string; detail: string }[];
}

export interface Answer<Body = unknown> {
  status: number;
  headers: Headers;
  /** Parsed if it is JSON; undefined if there is none. */
  body: Body;
  text: string;
  durationMs: number;
}

export interface SendOptions {
  query?: Record<string, string | number | boolean>;
  headers?: Record<string, string>;
  /** Sent unchanged, with `Content-Type: application/json`. */
  rawBody?: string;
}

/** Sends requests and checks every response against the API document. A 500 always fails the test. */
export interface Client {
  send<Body = unknown>(method: string, path: string, body?: unknown, options?: SendOptions): Promise<Answer<Body>>;
  get<Body = unknown>(path: string, options?: SendOptions): Promise<Answer<Body>>;
  post<Body = unknown>(path: string, body: unknown, options?: SendOptions): Promise<Answer<Body>>;
  put<Body = unknown>(path: string, body: unknown, options?: SendOptions): Promise<Answer<Body>>;
  delete<Body = unknown>(path: string, body?: unknown, options?: SendOptions): Promise<Answer<Body>>;
}

const documents = new Map<string, Promise<ApiDocument>>();

/** A gateway's API document, fetched once. */
export function apiDocument(gateway: string = sharedStack().gateway): Promise<ApiDocument> {
  const known = documents.get(gateway) ?? fetchApiDocument(gateway);
  documents.set(gateway, known);
  return known;
}

/** A client of one CRM with one key. Paths are relative to `/crms/:crmId`. */
export function createClient(stack: Pick<StackInfo, 'gateway'>, crmId: string, key: string | undefined): Client {
  const send: Client['send'] = async <Body>(
    method: string,
    path: string,
    body?: unknown,
    options: SendOptions = {},
  ) => {
    const url = new URL(`${stack.gateway}/crms/${encodeURIComponent(crmId)}${path}`);
    for (const [name, value] of Object.entries(options.query ?? {})) url.searchParams.set(name, String(value));
    const payload = options.rawBody ?? (body === undefined ? undefined : JSON.stringify(body));
    const startedAt = performance.now();
    const response = await fetch(url, {
      method,
      headers: {
        ...(key !== undefined && { 'x-service-client-id': key }),
        ...(payload !== undefined && { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(payload !== undefined && { body: payload }),
    });
    const answer = await readAnswer<Body>(response, startedAt);
    await checkAgainstDocument(stack.gateway, method, url.pathname, answer);
    return answer;
  };
  return {
    send,
    get: (path, options) => send('GET', path, undefined, options),
    post: (path, body, options) => send('POST', path, body, options),
    put: (path, body, options) => send('PUT', path, body, options),
    delete: (path, body, options) => send('DELETE', path, body, options),
  };
}

/**
 * Repeats a request for as long as it is to come back later, as the interface tells clients to: many at once may be more
 * than a busy machine serves in time.
 */
export async function untilServed<Body>(send: () => Promise<Answer<Body>>): Promise<Answer<Body>> {
  for (;;) {
    const answer = await send();
    const { code } = (answer.body ?? {}) as { code?: string };
    if (answer.status !== 503 && code !== 'rate.concurrent') return answer;
    await delay(Number(answer.headers.get('retry-after')) * 1_000);
  }
}

/** Builds a path from references: `` path`/user/${reference}` `` encodes the inserted values. */
export function path(texts: TemplateStringsArray, ...values: string[]): string {
  return texts
    .map((text, index) => text + (values[index] === undefined ? '' : encodeURIComponent(values[index])))
    .join('');
}

async function readAnswer<Body>(response: Response, startedAt: number): Promise<Answer<Body>> {
  const text = await response.text();
  const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '');
  return {
    status: response.status,
    headers: response.headers,
    body: (isJson ? JSON.parse(text) : undefined) as Body,
    text,
    durationMs: performance.now() - startedAt,
  };
}

async function checkAgainstDocument(gateway: string, method: string, pathname: string, answer: Answer): Promise<void> {
  const request = `${method} ${pathname}`;
  const described = `${request} was answered with ${answer.status} ${answer.text.slice(0, 2_000)}`;
  expect(answer.status, described).not.toBe(500);
  expect(answer.headers.get('x-request-id'), described).toMatch(/^[\x21-\x7e]{1,128}$/);
  if (answer.status >= 400) checkProblem(answer as Answer<Problem>, described);
  const document = await apiDocument(gateway);
  const place = document.find(method, pathname);
  if (place === undefined) {
    expect([404, 405], described).toContain(answer.status);
    return;
  }
  expect(document.check(place, answer), described).toEqual([]);
}

/** interface 7. */
function checkProblem({ status, headers, body }: Answer<Problem>, described: string): void {
  expect(body, described).toMatchObject({ type: 'about:blank', status, instance: headers.get('x-request-id') });
  expect(JSON.stringify(body), described).not.toMatch(/\bat .*\.ts:\d|SELECT |INSERT |127\.0\.0\.1|localhost/);
  if (status === 429 || status === 503) expect(headers.get('retry-after'), described).toMatch(/^[1-9]\d*$/);
}

/** The pages of a list, following the `Link` header. */
export async function readPages<Item>(
  client: Client,
  address: string,
  firstQuery: Record<string, string>,
): Promise<Item[][]> {
  const pages: Item[][] = [];
  for (let query: Record<string, string> | undefined = firstQuery; query !== undefined;) {
    const answer: Answer<Item[]> = await client.get<Item[]>(address, { query });
    expect(answer.status, answer.text).toBe(200);
    pages.push(answer.body);
    query = nextQuery(answer);
  }
  return pages;
}

/** The query of the next page, from the `Link` header. */
export function nextQuery({ headers }: Answer): Record<string, string> | undefined {
  const link = headers.get('link');
  if (link === null) return undefined;
  const [, address, relation] = /^<([^>]+)>; rel="(\w+)"$/.exec(link)!;
  expect(relation).toBe('next');
  return Object.fromEntries(new URL(address!).searchParams);
}
