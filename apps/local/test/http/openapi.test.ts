import { createConfig, lintFromString } from '@redocly/openapi-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { apiDocument, type Problem } from './client.ts';
import { createCrm, type TestCrm } from './crm.ts';
import type { Place } from './api-document.ts';

const { document, places, text } = await apiDocument();

let crm: TestCrm;
beforeAll(async () => {
  crm = await createCrm();
});

interface Example {
  operationId: string;
  body: unknown;
}

/** Every example of a request, in the order in which the document tells its story. */
const examples: Example[] = places.flatMap(({ operation }) => {
  const content = operation.requestBody?.content['application/json'];
  const values = content?.example === undefined ? Object.values(content?.examples ?? {}).map(({ value }) => value) : [content.example];
  return values.map((body) => ({ operationId: operation.operationId, body }));
});

/** What has to be there first, before an operation's example can be sent. */
const order = [
  'createUser',
  'createAccount',
  'createProvider',
  'addStaff',
  'createTimeslots',
  'updateTimeslot',
  'createAppointment',
  'createCustomer',
  'createParticipation',
  'updateParticipation',
  'updateCustomer',
  'cancelAppointment',
  'deleteAppointmentsWithoutNotification',
  'deleteCustomer',
];

/** The references that the examples share, as parameters of paths. */
const parameters: Record<string, string> = {
  providerRef: 'workshop@acme',
  timeslotRef: 't-1@acme',
  participationRef: 'b-1@acme',
  customerRef: 'c-1@acme',
  userRef: '4711@acme',
  resourceRef: 'room-1@acme',
  reference: '4711@acme',
};

describe('the API document', () => {
  it('passes the recommended rules of Redocly as it is served', async () => {
    const problems = await lintFromString({ source: text, config: await createConfig({ extends: ['recommended'] }) });
    expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([]);
  });

  it('has examples that work: each one sent is answered with 2xx, as documented', async () => {
    expect([...new Set(examples.map(({ operationId }) => operationId))].sort()).toEqual(order.toSorted());
    const answered: string[] = [];
    for (const operationId of order) {
      const place = places.find(({ operation }) => operation.operationId === operationId)!;
      for (const { body } of examples.filter((example) => example.operationId === operationId)) {
        const answer = await crm.send(place.method.toUpperCase(), addressOf(place), body);
        expect([200, 201, 204], `${operationId}: ${answer.text}`).toContain(answer.status);
        answered.push(operationId);
      }
    }
    expect(answered).toHaveLength(examples.length);
  });

  it.each(places)('says of $operation.operationId which query parameters it needs', async (place) => {
    const { parameters: documented = [], operationId } = place.operation;
    const names = documented.filter((parameter) => parameter.in === 'query').map(({ name }) => name);
    const body = examples.find((example) => example.operationId === operationId)?.body;
    const { body: problem } = await crm.send<Problem | undefined>(place.method.toUpperCase(), addressOf(place), body);
    const missed = problem?.errors?.map(({ parameter }) => parameter) ?? [];
    const required = documented.filter((parameter) => parameter.in === 'query' && parameter.required).map(({ name }) => name);
    expect(required).toEqual(names.filter((name) => missed.includes(name)));
  });

  it('asks nobody to encode a value that clients encode by themselves', () => {
    for (const { operation } of places) {
      for (const { name, description } of operation.parameters ?? []) {
        expect(description, `${operation.operationId} ${name}`).toMatch(/\S/);
        expect(description, `${operation.operationId} ${name}`).not.toMatch(/encode/i);
      }
    }
  });

  it('names every problem code that it documents, once for each operation', () => {
    for (const { operation } of places) {
      for (const [status, response] of Object.entries(operation.responses)) {
        if (Number(status) < 400) continue;
        expect(JSON.stringify(response.content), `${operation.operationId} ${status}`).toMatch(/"enum":\["[a-z_.]+"/);
      }
    }
    expect(JSON.stringify(document)).not.toContain('"default":{');
  });
});

function addressOf({ path }: Place): string {
  return path.replace('/crms/{crmId}', '').replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parameters[name]!));
}
