import { expect, it } from 'vitest';
import { createClient } from '../src/create-client.ts';

/** What is between the client and the service, or in its place. */
function withAnswer(body: string, init: ResponseInit, asked: string[] = []) {
  return createClient({
    url: 'https://scheduling.example.com',
    crmId: 'one',
    key: 'secret',
    fetch: async ({ url }) => {
      asked.push(url);
      return new Response(body, init);
    },
  });
}

it('a page of another server is no success', async () => {
  const init = { statusText: 'OK', headers: { 'content-type': 'text/html' } };
  await expect(withAnswer('<h1>Welcome</h1>', init).GET('/webhooks')).rejects.toMatchObject({
    name: 'ProblemError',
    status: 200,
    code: undefined,
    message: '200 OK: the response is not JSON',
  });
});

it.each(['', '{"code":', 'null', '[]', '{"errors":null}'])('a problem of %j has its status', async (body) => {
  const init = { status: 403, statusText: 'Forbidden', headers: { 'content-type': 'application/problem+json' } };
  await expect(withAnswer(body, init).GET('/webhooks')).rejects.toMatchObject({
    name: 'ProblemError',
    status: 403,
    code: undefined,
    errors: [],
    message: '403 Forbidden',
  });
});

it.each(['', '.', '..', undefined, null])('nothing is sent for the reference %j', async (reference) => {
  const asked: string[] = [];
  const client = withAnswer('{}', { headers: { 'content-type': 'application/json' } }, asked);
  const call = client.DELETE('/user/{reference}', { params: { path: { reference: reference as string } } });
  await expect(call).rejects.toThrow(`reference must be a reference, not "${reference ?? ''}"`);
  expect(asked).toEqual([]);
});

it.each(['a/b', '..%2F..', 'ä @ö?#', '...'])('a reference such as %j is encoded', async (reference) => {
  const asked: string[] = [];
  const client = withAnswer('{}', { headers: { 'content-type': 'application/json' } }, asked);
  await client.GET('/user/{reference}', { params: { path: { reference } } });
  expect(asked).toEqual([`https://scheduling.example.com/crms/one/user/${encodeURIComponent(reference)}`]);
});
