import { beforeAll, describe, expect, it } from 'vitest';
import { someOf } from '@scheduling/testing';
import { fieldSchemas } from '@scheduling/test-stack/api-document';
import { type Answer, apiDocument } from '@scheduling/test-stack/client';
import { createCrm, createPractice, type Practice, type TestCrm } from '@scheduling/test-stack/crm';
import { cases, type Kind, newReference, type Request, sendRequest, type World } from './isolation/operation-cases.ts';
import { snapshot, waitUntilQuiet } from './isolation/snapshot.ts';
import { createWorld } from './isolation/world.ts';

/**
 * Customers are identified per provider, everything else per CRM; so only for these may the same reference exist twice
 * in a CRM.
 */
const namedByProvider = new Set(['createCustomer', 'updateCustomer']);
/** Kinds that belong to the CRM and not to a provider, so that no other provider has its own. */
const ofCrm = new Set<Kind>(['provider', 'user', 'account', 'erasure', 'webhook']);

/** The caller's provider has appointments, and the account has the provider. */
const inTheWay = new Set(['deleteAccount', 'deleteProvider']);

const document = await apiDocument();
const operations = document.places.map(({ operation }) => operation.operationId);

let crm: TestCrm;
let foreignCrm: TestCrm;
let own: { practice: Practice; world: World };
let sibling: World;
let foreign: World;
const absent = Object.fromEntries(
  [
    'provider',
    'user',
    'staff',
    'account',
    'timeslot',
    'appointment',
    'series',
    'participation',
    'mail',
    'hold',
    'customer',
    'invitation',
    'block',
    'resource',
    'product',
    'erasure',
    'calendar',
    'webhook',
  ].map((kind) => [kind, newReference()]),
) as World;

beforeAll(async () => {
  [crm, foreignCrm] = [await createCrm({ sandbox: true }), await createCrm({ sandbox: true })];
  own = await createWorld(crm);
  sibling = (await createWorld(crm)).world;
  foreign = (await createWorld(foreignCrm)).world;
  await waitUntilQuiet([crm, foreignCrm]);
});

describe('every route', () => {
  it.each(operations)('%s has a case that lists all of its references', (operationId) => {
    const { existing, made = [], labels = [] } = cases[operationId]!;
    expect([...Object.keys(existing), ...made, ...labels].sort()).toEqual(documentedReferences(operationId).sort());
  });
});

const foreignReferences = operations.flatMap((operationId) =>
  Object.entries(cases[operationId]?.existing ?? {}).map(([where, kind]) => [operationId, where, kind] as const),
);

describe('a reference to a resource of someone else', () => {
  /** Nothing here may change it, so one snapshot before all of them is enough. */
  let before: Record<string, string[]>;
  beforeAll(async () => {
    before = await snapshot([crm, foreignCrm]);
  });

  it.each(someOf(foreignReferences))(
    '%s treats a foreign %s (%s) like an absent one, without any effect',
    async (operationId, where, kind) => {
      const reference = await sendWith(operationId, own.world, { [where]: absent[kind] });
      const candidates = [foreign[kind], ...(ofCrm.has(kind) ? [] : [sibling[kind]])];
      for (const candidate of candidates) {
        const answer = await sendWith(operationId, own.world, { [where]: candidate });
        expect(visible(answer, candidate)).toEqual(visible(reference, absent[kind]));
      }
      expect(hidesOrRefuses(operationId, reference), `${reference.status} ${reference.text}`).toBe(true);
      expect(await snapshot([crm, foreignCrm])).toEqual(before);
    },
  );

  it.each(someOf(operations))(
    '%s treats references of another CRM, or of another provider of the same CRM, as absent',
    async (operationId) => {
      const references = cases[operationId]!.existing;
      if (Object.keys(references).length === 0) return;
      const others = (world: World, exceptProvider: boolean): Record<string, string> =>
        Object.fromEntries(
          Object.entries(references).flatMap(([where, kind]) =>
            exceptProvider && ofCrm.has(kind) ? [] : [[where, world[kind]]],
          ),
        );
      for (const [world, exceptProvider] of [
        [foreign, false],
        [sibling, true],
      ] as const) {
        if (exceptProvider && Object.values(references).every((kind) => ofCrm.has(kind))) continue;
        const answer = await sendWith(operationId, own.world, others(world, exceptProvider));
        const nothing = await sendWith(operationId, own.world, others(absent, exceptProvider));
        const masked = (each: Answer, of: World) =>
          Object.values(of).reduce((text, reference) => text.replaceAll(reference, '…'), each.text);
        expect([answer.status, masked(answer, world)]).toEqual([nothing.status, masked(nothing, absent)]);
      }
      expect(await snapshot([crm, foreignCrm])).toEqual(before);
    },
  );
});

const madeReferences = operations.flatMap((operationId) =>
  (cases[operationId]?.made ?? []).map((where) => [operationId, where] as const),
);

describe('a reference that another CRM also uses', () => {
  it.each(someOf(madeReferences))(
    '%s accepts as %s, without changing what exists there',
    async (operationId, where) => {
      const before = await snapshot([foreignCrm]);
      const caller = await createWorld(await createCrm({ sandbox: true }));
      for (const taken of Object.values(foreign).filter((reference) => reference.includes('@'))) {
        const { status, text, body } = await sendWith(operationId, caller.world, { [where]: taken }, caller.practice);
        expect(status, text).toBe(operationId === 'updateCustomer' ? 200 : 201);
        if (operationId === 'updateCustomer')
          caller.world.customer = (body as { customer: { customerReference: string } }).customer.customerReference;
        // There must be room for the next one.
        if (operationId === 'createWebhook') await caller.practice.crm.delete(`/webhooks/${encodeURIComponent(taken)}`);
      }
      expect(await snapshot([foreignCrm])).toEqual(before);
    },
  );

  it.each(madeReferences.filter(([operationId]) => namedByProvider.has(operationId)))(
    '%s accepts as %s from another provider',
    async (operationId, where) => {
      const practice = await createPractice(crm);
      const world = { ...own.world, provider: practice.provider, customer: practice.customer };
      const { status, text } = await sendWith(operationId, world, { [where]: sibling.customer }, practice);
      expect(status, text).toBe(operationId === 'updateCustomer' ? 200 : 201);
    },
  );
});

describe('the caller’s own resources', () => {
  it.each(someOf(operations))('%s succeeds', async (operationId) => {
    const { practice, world } = await createWorld(crm);
    const { status, text } = await sendWith(operationId, world, {}, practice);
    expect(inTheWay.has(operationId) ? [409] : [200, 201, 202, 204], text).toContain(status);
    if (operationId === 'getCustomer') expect(status).toBe(200);
    if (operationId.startsWith('list')) expect(text).not.toBe('[]');
  });
});

/** Sends the request of a case with some of its references replaced. */
function sendWith(
  operationId: string,
  world: World,
  replaced: Record<string, string>,
  practice: Practice = own.practice,
): Promise<Answer> {
  const place = document.places.find(({ operation }) => operation.operationId === operationId)!;
  const { request: usual, alternatives = {} } = cases[operationId]!;
  const request = (Object.keys(replaced).flatMap((where) => alternatives[where] ?? [])[0] ?? usual)(world, practice);
  dropAlternative(request, Object.keys(replaced));
  for (const [where, reference] of Object.entries(replaced)) replace(request, where, reference);
  return sendRequest(practice.crm, place, request);
}

/**
 * A DELETE takes an argument from the body or the query, and an appointment or a series: only the place that is
 * replaced is kept.
 */
function dropAlternative(request: Request, places: string[]): void {
  const argument = places.find((place) => /^(?:query|body)\.(?:appointmentReference|seriesId)$/.test(place));
  if (argument === undefined || request.query['appointmentReference'] === request.query['seriesId']) return;
  request.query = {};
  request.body = {};
}

function replace(request: Request, where: string, reference: string): void {
  const steps = where.split('.');
  const parent = steps
    .slice(0, -1)
    .reduce<unknown>((node, step) => (node as Record<string, unknown>)[step], request) as Record<string, unknown>;
  parent[steps.at(-1)!] = reference;
}

/** Everything that a caller can see of a response, byte for byte, with the request's own reference masked. */
function visible({ status, headers, text }: Answer, reference: string): unknown {
  const shown = [...headers].filter(([name]) => name !== 'date').map(([name, value]) => `${name}: ${value}`);
  return { status, headers: shown.sort(), text: text.replaceAll(reference, '…') };
}

function hidesOrRefuses(operationId: string, { status, text }: Answer): boolean {
  if (status === 404) return true;
  if (operationId === 'getCustomer') return status === 204;
  if (operationId.startsWith('list')) return status === 200 && text === '[]';
  // interface 4.4: the provider of the body must be that of the address.
  return operationId === 'createCustomer' && status === 400;
}

/** Every parameter and field of an operation that is a reference, judging by its name in the API document. */
function documentedReferences(operationId: string): string[] {
  const { operation } = document.places.find((place) => place.operation.operationId === operationId)!;
  const parameters = (operation.parameters ?? [])
    .filter(({ name }) => name !== 'crmId' && isReferenceName(name))
    .map((parameter) => `${parameter.in}.${parameter.name}`);
  const schema = operation.requestBody?.content['application/json'].schema;
  return [...new Set([...parameters, ...referencesIn(schema, 'body')])];
}

function isReferenceName(name: string): boolean {
  return /(?:^ref|Ref)(?:erences?)?$|Id$/.test(name) || name === 'reference';
}

function referencesIn(schema: unknown, at: string): string[] {
  return fieldSchemas(schema, document.document).flatMap(({ properties = {}, items }) => [
    ...referencesIn(items, `${at}.0`),
    ...Object.entries(properties).flatMap(([name, property]) =>
      isReferenceName(name) ? [`${at}.${name}`] : referencesIn(property, `${at}.${name}`),
    ),
  ]);
}
