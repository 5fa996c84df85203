import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { repositoryRoot } from '@scheduling/stack';
import { apiDocument, type Problem } from '@scheduling/test-stack/client';
import { createCrm, type TestCrm } from '@scheduling/test-stack/crm';
import { codesIn, examplesOf, type Place } from '@scheduling/test-stack/api-document';

const document = await apiDocument();
const { places, text } = document;

let crm: TestCrm;
beforeAll(async () => {
  crm = await createCrm({ sandbox: true });
  // The examples are of this month, and what an invitation is for is not years ahead.
  await crm.put('/sandbox/clock', { now: '2030-05-01T08:00:00Z' });
});

interface Example {
  operationId: string;
  body: unknown;
}

/** Every request example, in the order of the document. */
const examples: Example[] = places.flatMap(({ operation }) => {
  return examplesOf(operation.requestBody?.content['application/json'], document.document).map((body) => ({
    operationId: operation.operationId,
    body,
  }));
});

/** The order in which the examples can be sent, because some depend on others. */
const order = [
  'createUser',
  'createAccount',
  'updateAccount',
  'createProvider',
  'updateProvider',
  'addStaff',
  'updateUser',
  'createTimeslots',
  'updateTimeslot',
  'putHours',
  'putHoursOfResources',
  'createBlock',
  'createAppointment',
  'updateAppointment',
  'createCustomer',
  'createParticipation',
  'updateParticipation',
  'cancelAppointment',
  'createBooking',
  'changeBooking',
  'updateBookingRules',
  'createInvitation',
  'createCalendar',
  'updateCustomer',
  'deleteAppointmentsWithoutNotification',
  'deleteCustomer',
  'createWebhook',
  'updateWebhook',
  'requestErasure',
  'setSandboxClock',
];

/** The references that the examples share, as path parameters. */
const parameters: Record<string, string> = {
  providerRef: 'workshop@acme',
  timeslotRef: 't-1@acme',
  appointmentRef: 'a-1@acme',
  participationRef: 'b-1@acme',
  customerRef: 'c-1@acme',
  userRef: '4711@acme',
  resourceRef: 'room-1@acme',
  blockRef: 'block-1@acme',
  calendarRef: 'cal-1@acme',
  webhookRef: 'w-1@acme',
};

/** What the parameter `reference` means depends on the resource. */
const references: Record<string, string> = { user: '4711@acme', account: 'main@acme', provider: 'workshop@acme' };

describe('the API document', () => {
  it('stays small: it is read in full by every viewer and generator', () => {
    expect(gzipSync(text).length).toBeLessThan(53_000);
  });

  it('names the licence of the project', () => {
    expect(JSON.parse(text)).toMatchObject({ info: { license: { identifier: 'Apache-2.0' } } });
  });

  it('has an example for every code of every response', () => {
    for (const { operation } of places) {
      for (const [status, { content }] of Object.entries(operation.responses)) {
        const media = content?.['application/problem+json'];
        if (media === undefined) continue;
        const codes = (media.schema as { allOf: [unknown, { properties: { code: { enum: string[] } } }] }).allOf[1]
          .properties.code.enum;
        const answers = examplesOf(media, document.document) as Problem[];
        expect(
          answers.map(({ code }) => code),
          `${operation.operationId} ${status}`,
        ).toEqual(codes);
      }
    }
  });

  it('describes the request to a webhook, with an example that matches the schema of an event', () => {
    const { event } = document.document.webhooks;
    expect(event!.post!.parameters!.map(({ name }) => name)).toEqual([
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
    ]);
    const { schema, example } = event!.post!.requestBody!.content['application/json'];
    expect(schema).toEqual({ $ref: '#/components/schemas/Event' });
    const list = places.find(({ operation }) => operation.operationId === 'listEvents')!;
    const headers = new Headers({ 'content-type': 'application/json' });
    expect(document.check(list, { status: 200, headers, text: JSON.stringify([example]) })).toEqual([]);
  });

  it('lists Link only for the operations that page, and Idempotency-Replayed only for those with a key', () => {
    const withHeader = (name: string) =>
      places.filter(({ operation }) => Object.values(operation.responses).some(({ headers = {} }) => name in headers));
    const paging = places.filter(({ operation }) =>
      operation.parameters?.some(({ name }) => name === 'cursor' || name === 'after'),
    );
    expect(withHeader('Link')).toEqual(paging);
    const withKey = places.filter(({ operation }) =>
      operation.parameters?.some(({ name }) => name === 'idempotency-key'),
    );
    expect(withHeader('Idempotency-Replayed')).toEqual(withKey);
  });

  it('has working examples: each one is answered with 2xx, as documented', async () => {
    const withBody = places
      .filter(({ operation }) => operation.requestBody !== undefined)
      .map(({ operation }) => operation.operationId);
    expect(withBody.sort()).toEqual(order.toSorted());
    expect([...new Set(examples.map(({ operationId }) => operationId))].sort()).toEqual(order.toSorted());
    const answered: string[] = [];
    for (const operationId of order) {
      const place = places.find(({ operation }) => operation.operationId === operationId)!;
      for (const { body } of examples.filter((example) => example.operationId === operationId)) {
        const answer = await crm.send(place.method.toUpperCase(), addressOf(place), body);
        expect([200, 201, 202, 204], `${operationId}: ${answer.text}`).toContain(answer.status);
        if (answer.status !== 204)
          expect(exampleAnswers(place, answer.status), operationId).toContainEqual(withoutChance(answer.body));
        answered.push(operationId);
      }
    }
    expect(answered).toHaveLength(examples.length);
  });

  it.each(places)('documents which query parameters $operation.operationId requires', async (place) => {
    const { parameters: documented = [], operationId } = place.operation;
    const names = documented.filter((parameter) => parameter.in === 'query').map(({ name }) => name);
    const body = examples.find((example) => example.operationId === operationId)?.body;
    const { body: problem } = await crm.send<Problem | undefined>(place.method.toUpperCase(), addressOf(place), body);
    const missed = problem?.errors?.map(({ parameter }) => parameter) ?? [];
    const required = documented
      .filter((parameter) => parameter.in === 'query' && parameter.required)
      .map(({ name }) => name);
    expect(required).toEqual(names.filter((name) => missed.includes(name)));
  });

  it('says of every string in a request which characters it can have', () => {
    const requests = places.map(({ operation: { parameters, requestBody } }) => ({ parameters, requestBody }));
    const components = document.document.components.schemas;
    const schemas = referencedSchemas(requests, components);
    expect(schemas.size).toBeGreaterThan(20);
    const anything = [...requests, ...schemas.values()].flatMap((each) => unlimitedStrings(each));
    // A header, and a flag that can have any other value, too (interface 4.4).
    expect(new Set(anything)).toEqual(new Set(['Prefer', 'ignoreFutureAppointments']));
  });

  it('has only patterns that the regular expressions of all languages can read', () => {
    const patterns = new Set(
      [...text.matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(([, json]) => JSON.parse(json!) as string),
    );
    expect(patterns.size).toBeGreaterThan(5);
    for (const pattern of patterns) {
      expect(pattern).toMatch(/^[\x20-\x7e]+$/);
      expect(pattern, 'look-around').not.toMatch(/\(\?[^:]/);
      expect(pattern.replaceAll('\\\\', ''), 'escapes').not.toMatch(/\\[^.sSx]/);
    }
  });

  it('never tells readers to encode a value that clients already encode', () => {
    for (const { operation } of places) {
      for (const { name, description } of operation.parameters ?? []) {
        expect(description, `${operation.operationId} ${name}`).toMatch(/\S/);
        expect(description, `${operation.operationId} ${name}`).not.toMatch(/encode/i);
      }
    }
  });

  it.each(places)('has examples for every response of $operation.operationId that match its schema', (place) => {
    for (const [status, { content = {} }] of Object.entries(place.operation.responses)) {
      for (const [contentType, media] of Object.entries(content)) {
        const answers = examplesOf(media, document.document);
        expect(answers.length, status).toBeGreaterThan(0);
        for (const answer of answers) {
          const headers = new Headers({ 'content-type': contentType });
          expect(
            document.check(place, { status: Number(status), headers, text: JSON.stringify(answer) }),
            status,
          ).toEqual([]);
          if (Number(status) >= 400) expect(answer).toMatchObject({ status: Number(status), type: 'about:blank' });
        }
      }
    }
  });

  it('lists the parameters of the path first, in the order of the path', () => {
    for (const { path, operation } of places) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      expect(
        operation.parameters!.slice(0, inPath.length).map(({ name }) => name),
        operation.operationId,
      ).toEqual(inPath);
    }
  });

  it('lists the branches, although an unknown one is answered with 404 instead of 400', async () => {
    const branches = ['real-estate', 'facilities', 'handyman', 'sports-and-leisure', 'misc'];
    const { NewAccount, NewProvider, Account, Provider } = document.document.components.schemas as Record<
      string,
      { properties: { branch: unknown } }
    >;
    for (const schema of [NewAccount, Account]) expect(schema!.properties.branch).toMatchObject({ enum: branches });
    for (const schema of [NewProvider, Provider])
      expect(schema!.properties.branch).toMatchObject({ enum: [...branches, null] });
    const account = { ownerReference: '4711@acme', accountReference: 'other@acme', branch: 'circus' };
    expect(await crm.post('/account', account)).toMatchObject({ status: 404, body: { code: 'branch.unknown' } });
  });

  it('uses the terms string, array and calling CRM', () => {
    expect(text).toContain('ID of the calling CRM.');
    expect(text).toContain('Maximum number of participants');
    expect(text).toContain('Include archived appointments.');
    expect(text).not.toMatch(/Maximum of|The CRM that calls|those that ended long ago/);
  });

  it('contains only codes that the interface lists', async () => {
    const contract = await readFile(join(repositoryRoot, 'docs/interface.md'), 'utf8');
    const codes = codesIn(text);
    expect(codes.size).toBeGreaterThan(30);
    expect([...codes].filter((code) => !contract.includes(`\`${code}\``))).toEqual([]);
  });

  it('lists every problem code that it documents, once for each operation', () => {
    for (const { operation } of places) {
      for (const [status, response] of Object.entries(operation.responses)) {
        if (Number(status) < 400) continue;
        expect(JSON.stringify(response.content), `${operation.operationId} ${status}`).toMatch(/"enum":\["[a-z_.]+"/);
      }
    }
    expect(JSON.stringify(document.document.paths)).not.toContain('"default":{');
  });
});

/** The components that are referred to, directly or by another one. */
function referencedSchemas(node: unknown, components: Record<string, unknown>): Map<string, unknown> {
  const found = new Map<string, unknown>();
  const search = (text: string): void => {
    for (const [, name] of text.matchAll(/#\/components\/schemas\/(\w+)/g)) {
      if (found.has(name!)) continue;
      found.set(name!, components[name!]);
      search(JSON.stringify(components[name!]));
    }
  };
  search(JSON.stringify(node));
  return found;
}

/** The strings within a part of the document of which neither a pattern nor a format nor a list says what they can be. */
function unlimitedStrings(node: unknown, name = ''): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const { type, pattern, format, enum: values, name: parameter } = node as Record<string, unknown>;
  const isString = [type].flat().includes('string') && pattern === undefined && format === undefined;
  const inside = Object.entries(node)
    .filter(([key]) => !['example', 'examples', 'propertyNames'].includes(key))
    .flatMap(([key, value]) => unlimitedStrings(value, typeof parameter === 'string' ? parameter : key));
  return isString && values === undefined ? [name, ...inside] : inside;
}

function exampleAnswers({ operation }: Place, status: number): unknown[] {
  return examplesOf(operation.responses[status]?.content?.['application/json'], document.document).map(withoutChance);
}

/**
 * A response without random values and the present time, with only one element of a list, and without other tests'
 * appointments in a timeslot.
 */
function withoutChance(answer: unknown): unknown {
  const text = JSON.stringify(Array.isArray(answer) ? answer.slice(0, 1) : answer);
  return JSON.parse(text.replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, 'uuid'), (name, value: unknown) => {
    if (['requestedAt', 'createdAt', 'now', 'madeUntil'].includes(name)) return 'time';
    if (name === 'secret') return 'secret';
    if (name === 'url' && String(value).endsWith('.ics')) return 'calendar';
    if (name === 'url' && String(value).includes('?for=')) return 'invitation';
    if (name === 'pageUrl') return 'page';
    return name === 'appointments' ? [] : value;
  });
}

function addressOf({ path }: Place): string {
  const [, resource = ''] = /^\/crms\/\{crmId\}\/(\w+)\/\{reference\}/.exec(path) ?? [];
  // Another participation than that of the appointment, which is cancelled by then.
  const given = {
    ...parameters,
    reference: references[resource],
    ...(path.includes('/bookings/') && { participationRef: 'b-2@acme' }),
  };
  return path
    .replace('/crms/{crmId}', '')
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(given[name as keyof typeof given]!));
}
