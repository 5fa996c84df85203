import { createMetrics } from '@scheduling/runtime';
import { nowhere, testLogger } from '@scheduling/testing';
import { type App, createApp } from '../src/app.ts';
import { createClients } from '../src/clients.ts';
import { enforcedScopes, type Scope } from '../src/key-scopes.ts';
import { createKeyRing } from '../src/key-ring.ts';

export interface AppUnderTest extends AsyncDisposable {
  app: App;
  /** The API document as text. */
  document: string;
}

interface Operation {
  operationId: string;
  summary: string;
  description: string;
  'x-required-scope': Scope;
  parameters?: { name: string; in: string; required?: boolean }[];
  responses: Record<string, { headers?: Record<string, unknown>; content?: Record<string, unknown> }>;
}

export interface Document {
  openapi: string;
  servers: { url: string }[];
  security: unknown;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown> };
}

/** The HTTP surface without a port and without any services. */
export async function createAppUnderTest(): Promise<AppUnderTest> {
  const addresses = {
    identityAddress: nowhere,
    calendarAddress: nowhere,
    customerAddress: nowhere,
    notificationAddress: nowhere,
    webhookAddress: nowhere,
  };
  const clients = createClients(addresses, { metrics: createMetrics('gateway') });
  const app = await createApp({
    clients,
    keyRing: createKeyRing({
      lookUp: (keyHash) => clients.identity.authenticateKey({ keyHash, enforcedScopes }),
      hearsRevocations: () => false,
      now: Date.now,
    }),
    logger: testLogger('gateway'),
    recordRequest: () => undefined,
    publicUrl: 'https://scheduling.test',
    pageUrl: 'https://scheduling.test',
    contactEmail: '',
    trustedProxies: '',
    isDraining: () => false,
  });
  return {
    app,
    document: (await app.http.inject('/openapi.json')).body,
    [Symbol.asyncDispose]: async () => {
      await app.http.close();
      clients[Symbol.dispose]();
    },
  };
}

/** The codes that the API document lists for each operation, by its id. */
export function codesByOperation(document: Document): Map<string, string[]> {
  const operations = Object.values(document.paths).flatMap((each) => Object.values(each));
  return new Map(operations.map(({ operationId, responses }) => [operationId, codesOf(responses)]));
}

function codesOf(responses: Operation['responses']): string[] {
  const lists = JSON.stringify(responses).matchAll(/"code":\{"type":"string","enum":(\[[^\]]+\])/g);
  return [...lists].flatMap(([, list]) => JSON.parse(list!) as string[]);
}
