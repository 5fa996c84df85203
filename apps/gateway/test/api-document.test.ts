import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppUnderTest, createAppUnderTest, type Document } from './app-under-test.ts';

let gateway: AppUnderTest;
let document: Document;

beforeAll(async () => {
  gateway = await createAppUnderTest();
  document = JSON.parse(gateway.document) as Document;
});
afterAll(() => gateway[Symbol.asyncDispose]());

describe('the API document', () => {
  it('is OpenAPI 3.1 and names the server and the header with the key', () => {
    expect(document).toMatchObject({
      openapi: '3.1.0',
      servers: [{ url: 'https://scheduling.test' }],
      security: [{ clientId: [] }],
    });
  });

  it('has every operation that clients can call, and no other', () => {
    const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const served = gateway.app.routes
      .filter(({ url }) => url.startsWith('/crms/'))
      .map(({ method, url }) => `${method} ${url.replaceAll(/:(\w+)/g, '{$1}')}`);
    expect(documented.sort()).toEqual(served.sort());
    expect(documented).toContain('DELETE /crms/{crmId}/provider/{providerRef}/appointments/withoutNotification');
  });

  it('lists the errors of every operation', () => {
    for (const operations of Object.values(document.paths)) {
      for (const { operationId, responses } of Object.values(operations)) {
        for (const status of [400, 401, 403, 429, 500, 503]) {
          expect(responses[status]?.content, `${operationId} ${status}`).toHaveProperty(['application/problem+json']);
        }
      }
    }
  });

  it('offers the optional Idempotency-Key for every POST, with its error codes, and for nothing else', () => {
    for (const operations of Object.values(document.paths)) {
      for (const [method, { operationId, parameters = [], responses }] of Object.entries(operations)) {
        const header = parameters.find(({ name }) => name === 'idempotency-key');
        expect(header, operationId).toEqual(
          method === 'post' ? expect.objectContaining({ in: 'header', required: false }) : undefined,
        );
        const codes = [400, 409, 422].map(
          (status) => /"idempotency_key\.\w+"/.exec(JSON.stringify(responses[status]?.content) ?? '')?.[0],
        );
        const expected = ['"idempotency_key.invalid"', '"idempotency_key.in_flight"', '"idempotency_key.reused"'];
        expect(codes, operationId).toEqual(method === 'post' ? expected : [undefined, undefined, undefined]);
        if (method === 'post') expect(responses[409]?.headers, operationId).toHaveProperty('Retry-After');
      }
    }
  });

  it('requires the nullable fields of a response, without the default that the serializer fills in', () => {
    const { schemas } = document.components;
    expect(schemas['User']).toMatchObject({
      required: expect.arrayContaining(['firstName']),
      properties: { firstName: { type: ['string', 'null'] } },
    });
    expect(gateway.document.includes('"default":null')).toBe(false);
  });
});
