import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createContext, runInContext } from 'node:vm';
import { stackFile } from '@scheduling/stack';
import { runCommand } from '@scheduling/test-stack/command';
import { eventually } from '@scheduling/testing';
import { Collection, type Item, Variable } from 'postman-collection';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { apiDocument } from '@scheduling/test-stack/client';
import { createCrm, type TestCrm } from '@scheduling/test-stack/crm';

let collection: Collection;
const items: Item[] = [];

beforeAll(async () => {
  collection = new Collection(JSON.parse(await writeCollection(await createCrm({ sandbox: true }))) as object);
  collection.forEachItem((item) => items.push(item));
});

/** What `npm run postman` writes for a CRM of the shared stack. */
async function writeCollection({ crmId, key }: TestCrm): Promise<string> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'postman-'));
  await writeFile(stackFile(folder.path), JSON.stringify({ ...inject('stack'), crmId, apiKey: key }));
  const output = join(folder.path, 'collection.json');
  expect(await runCommand('postman', { SCHEDULING_DATA: folder.path }, '--output', output)).toMatchObject({ code: 0 });
  return readFile(output, 'utf8');
}

interface Answer {
  code: number;
  text: string;
}

/** Sends a request as it is after the import. */
async function send({ request }: Item): Promise<Answer> {
  const resolve = (text: string): string =>
    collection.variables.replace(text.replaceAll('{{$guid}}', () => crypto.randomUUID()));
  const [key, value] = ['key', 'value'].map((part) => resolve(collection.auth!.parameters().get(part) as string));
  const sent = { ...(request.getHeaders({ enabled: true }) as Record<string, string>), [key!]: value! };
  const headers = Object.fromEntries(Object.entries(sent).map(([field, text]) => [field, resolve(text)]));
  const query = request.url.getQueryString();
  const body = request.body?.raw && resolve(request.body.raw);
  const response = await fetch(resolve(`{{baseUrl}}${request.url.getPath()}${query === '' ? '' : `?${query}`}`), {
    method: request.method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body }),
  });
  return { code: response.status, text: await response.text() };
}

/** Sends a request with its scripts, and returns whether they want it to be sent again. */
async function play(item: Item): Promise<boolean> {
  let again = false;
  const collectionVariables = {
    set: (key: string, value: string) => collection.variables.upsert(new Variable({ key, value })),
  };
  runScript(item, 'prerequest', { collectionVariables });
  const { code, text } = await send(item);
  const pm = {
    info: { requestName: item.name },
    response: { code, json: () => JSON.parse(text) as unknown },
    test: (_name: string, assert: () => void) => assert(),
    expect: (status: number) => ({
      to: {
        be: {
          within: (from: number, to: number) => {
            expect(status, `${item.name}: ${text}`).toBeGreaterThanOrEqual(from);
            expect(status, `${item.name}: ${text}`).toBeLessThanOrEqual(to);
          },
        },
      },
    }),
    variables: { get: () => undefined, set: () => undefined },
    collectionVariables,
    execution: {
      setNextRequest: (name: string) => {
        expect(name).toBe(item.name);
        again = true;
      },
    },
  };
  runScript(item, 'test', pm);
  return again;
}

function runScript({ events }: Item, event: 'prerequest' | 'test', pm: object): void {
  const script = events.find(({ listen }) => listen === event, undefined)?.script.toSource();
  if (script !== undefined) runInContext(script, createContext({ pm }));
}

describe('the Postman collection', () => {
  it('has every operation', async () => {
    const { places } = await apiDocument();
    const operations = items.map(({ request }) => `${request.method} ${request.url.getPath()}`);
    expect(new Set(operations).size).toBe(places.length);
  });

  it('succeeds from its first request to its last in an empty sandbox', { timeout: 60_000 }, async () => {
    expect(items.length).toBeGreaterThan(70);
    for (const item of items) {
      if (await play(item)) await eventually(async () => expect(await play(item), item.name).toBe(false));
    }
  });

  it('contains only variables that it defines', () => {
    const used = [
      ...JSON.stringify(collection.items.map((item) => item.toJSON() as object)).matchAll(/\{\{([^}$]+)\}\}/g),
    ];
    const names = used.map(([, name]) => name!);
    expect([...new Set(names)].filter((name) => !collection.variables.has(name))).toEqual([]);
  });
});
