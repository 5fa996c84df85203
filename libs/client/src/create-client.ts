import createFetchClient, {
  type ClientPathsWithMethod,
  type Client as FetchClient,
  type FetchResponse,
  type MaybeOptionalInit,
} from 'openapi-fetch';
import type { paths } from './api.ts';
import { type ClientOptions, checkOptions } from './client-options.ts';
import { hasContentType, toProblemError } from './problem-error.ts';
import { retrying } from './retry.ts';

type Method = 'get' | 'post' | 'put' | 'delete';

export type PathOf<Name extends Method> = ClientPathsWithMethod<FetchClient<paths>, Name>;

/** `params`, `body` and the options of `fetch`; optional if the operation requires none of them. */
export type Init<Name extends Method, Path extends PathOf<Name>> = MaybeOptionalInit<paths[Path], Name>;

export type Arguments<Given> = undefined extends Given ? [init?: Given] : [init: Given];

type Success<Operation extends object, Given> = Extract<
  FetchResponse<Operation & Record<string, unknown>, Given, 'application/json'>,
  { data: unknown }
>;

/**
 * Resolves with the body as `data`, and the `response` with status and headers. Rejects with a ProblemError if the
 * service rejects the request, and with the error of `fetch` if no attempt got a response.
 */
type Call<Name extends Method> = <Path extends PathOf<Name>, Given extends Init<Name, Path>>(
  path: Path,
  ...init: Arguments<Given>
) => Promise<Success<paths[Path][Name] & object, Given>>;

/** A client of one CRM. Paths and fields are those of the API document, without `/crms/{crmId}`. */
export interface Client {
  GET: Call<'get'>;
  POST: Call<'post'>;
  PUT: Call<'put'>;
  DELETE: Call<'delete'>;
}

/** It stays when it is cancelled, so that a repetition finds it. */
const cancelPath: PathOf<'delete'> = '/provider/{providerRef}/appointments';

/**
 * Creates a client. Its requests are safe to repeat (interface 1), because every POST has an `Idempotency-Key`. They
 * are repeated if there is no response, if the response is cut off, and after 429, 502, 503, 504 and
 * `idempotency_key.in_flight`, until `retryForMs` is over. Throws a TypeError that names an option which is missing or
 * wrong.
 */
export function createClient({
  url,
  crmId,
  key,
  retryForMs = 15_000,
  attemptMs = 10_000,
  fetch = globalThis.fetch,
}: ClientOptions): Client {
  checkOptions({ url, crmId, key, retryForMs, attemptMs, fetch });
  const unanswered = new WeakSet<Request>();
  const client = createFetchClient<paths>({
    baseUrl: `${url.replace(/\/+$/, '')}/crms/${crmId}`,
    headers: { 'X-SERVICE-CLIENT-ID': key },
    fetch: retrying({ fetch, retryForMs, attemptMs, onUnanswered: (request) => unanswered.add(request) }),
  });
  client.use({
    onRequest: ({ request, schemaPath, params }) => {
      checkReferences(schemaPath, (params.path ?? {}) as Record<string, string>);
      if (request.method === 'POST' && !request.headers.has('Idempotency-Key'))
        request.headers.set('Idempotency-Key', crypto.randomUUID());
    },
    onResponse: async ({ request, response, schemaPath }) => {
      // A page of another server is no success.
      if (response.ok && (response.body === null || hasContentType(response, 'application/json'))) return undefined;
      const isDeletion = request.method === 'DELETE' && schemaPath !== cancelPath;
      // An attempt whose response was lost has deleted it.
      if (isDeletion && response.status === 404 && unanswered.has(request)) return new Response(null, { status: 204 });
      throw await toProblemError(response);
    },
  });
  return client as Client;
}

/** An address without a reference, or with . or .. in its place, is that of something else. */
function checkReferences(path: string, given: Record<string, string>): void {
  for (const [, name] of path.matchAll(/\{(\w+)\}/g)) {
    const value = given[name!] ?? '';
    if (['', '.', '..'].includes(value)) throw new TypeError(`${name} must be a reference, not "${value}"`);
  }
}
