import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stackFile } from '@scheduling/stack';
import { runCommand } from '@scheduling/test-stack/command';
import { Collection, type Item } from 'postman-collection';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { apiDocument } from '@scheduling/test-stack/client';
import { createCrm, type TestCrm, unique } from '@scheduling/test-stack/crm';

let crm: TestCrm;
let collection: Collection;
const items = new Map<string, Item>();

beforeAll(async () => {
  crm = await createCrm();
  // The username in the example is unique across the service, and openapi.test.ts uses it, too.
  const written = (await writeCollection(crm)).replaceAll('berta.beispiel', unique('berta'));
  collection = new Collection(JSON.parse(written) as object);
  collection.forEachItem((item) => items.set(item.name, item));
});

/** What `npm run postman` writes for a CRM of the shared stack. */
async function writeCollection({ crmId, key }: TestCrm): Promise<string> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'postman-'));
  await writeFile(stackFile(folder.path), JSON.stringify({ ...inject('stack'), crmId, apiKey: key }));
  const output = join(folder.path, 'collection.json');
  expect(await runCommand('postman', { SCHEDULING_DATA: folder.path }, '--output', output)).toMatchObject({ code: 0 });
  return readFile(output, 'utf8');
}

/** Sends a request of the collection as it is after the import. */
async function send(name: string): Promise<{ status: number; body: unknown }> {
  const { request } = items.get(name)!;
  const resolve = (text: string): string =>
    collection.variables.replace(text.replaceAll('{{$guid}}', () => crypto.randomUUID()));
  const url = resolve(`{{baseUrl}}${request.url.getPath()}?${request.url.getQueryString()}`);
  const [key, value] = ['key', 'value'].map((part) => resolve(collection.auth!.parameters().get(part) as string));
  const headers = { ...request.getHeaders({ enabled: true }), [key!]: value! };
  const sent = Object.fromEntries(Object.entries(headers).map(([field, text]) => [field, resolve(text as string)]));
  const body = request.body?.raw;
  const response = await fetch(url, { method: request.method, headers: sent, ...(body && { body }) });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
}

describe('the Postman collection', () => {
  it('has every operation once, in a folder for each tag', async () => {
    const { document, places } = await apiDocument();
    expect(items.size).toBe(places.length);
    const { tags } = document as unknown as { tags: { name: string }[] };
    expect(collection.items.map(({ name }) => name).toSorted()).toEqual(tags.map(({ name }) => name).toSorted());
  });

  it('sets up and books, without a change after the import', async () => {
    for (const name of ['Create a user', 'Create an account', 'Create a provider', 'Create timeslots'])
      expect(await send(name), name).toMatchObject({ status: 201 });
    expect(await send('List what can be booked')).toMatchObject({ status: 200 });
    expect(await send('Book a slot')).toMatchObject({
      status: 201,
      body: { booking: { participation: { state: 'BOOKED' } } },
    });
    expect(await send('Get a participation')).toMatchObject({
      status: 200,
      body: { participation: { reference: 'b-2@acme' } },
    });
  });

  it('contains only variables that it defines', () => {
    const used = [
      ...JSON.stringify(collection.items.map((item) => item.toJSON() as object)).matchAll(/\{\{([^}$]+)\}\}/g),
    ].map(([, name]) => name!);
    expect([...new Set(used)].filter((name) => !collection.variables.has(name))).toEqual([]);
  });
});
