import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { createClient } from '@scheduling/rpc';
import { runWithContext } from '@scheduling/runtime';
import { longTimeout, nowhere, startServiceProcesses, startTestNats } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, createClients } from '../src/clients.ts';

const stack = new AsyncDisposableStack();
let clients: Clients;

beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  const { identity } = stack.use(await startServiceProcesses(['identity'], nats.url));
  using admin = createClient(AdminServiceService, 'identity', identity.adminAddress, longTimeout);
  for (const crmId of ['one', 'two']) await admin.createCrm({ crmId, requestsPerMinute: 0 });
  const others = {
    calendarAddress: nowhere,
    customerAddress: nowhere,
    notificationAddress: nowhere,
    webhookAddress: nowhere,
  };
  clients = stack.use(createClients({ ...others, identityAddress: identity.address }, {}));
  for (const crmId of ['one', 'two']) await asCrm(crmId, () => clients.identity.createUser({ crmId }, newUser(crmId)));
});
afterAll(() => stack.disposeAsync());

const asCrm = <T>(crmId: string, work: () => T): T => runWithContext({ requestId: 'own-crm', crmId }, work);

function newUser(crmId: string) {
  return { reference: 'same@test', email: `${crmId}@test.example`, username: crmId, lastName: `Of ${crmId}` };
}

describe('a call of the gateway', () => {
  it('takes what the path names from the path, whatever the rest names', async () => {
    const forged = { reference: 'other@test', crmId: 'two', lastName: 'Changed' };
    const { user } = await asCrm('one', () =>
      // @ts-expect-error The types reject it, too: the path names these.
      clients.identity.updateUser({ crmId: 'one', reference: 'same@test' }, forged),
    );
    expect(user).toMatchObject({ reference: 'same@test', email: 'one@test.example', lastName: 'Changed' });
    const { user: other } = await asCrm('two', () =>
      clients.identity.getUser({ crmId: 'two', reference: 'same@test' }),
    );
    expect(other).toMatchObject({ lastName: 'Of two' });
  });

  it('about another CRM than that of the request is not sent, by any method', async () => {
    const calls = Object.entries(clients).flatMap(([name, client]) =>
      typeof client === 'object' ? Object.keys(client).map((method) => [name, method]) : [],
    );
    const refused = new Set<string>();
    for (const [name, method] of calls) {
      const call = (clients as unknown as Record<string, Record<string, (path: object, fields: object) => unknown>>)[
        name!
      ]![method!]!;
      // As if the path were not applied. A method whose requests name no CRM takes the first argument for its message.
      const error = await asCrm('one', () => outcomeOf(call({}, { crmId: 'two' })));
      if (/a message about the CRM two for a request of one/.test(String(error))) refused.add(`${name}.${method}`);
    }
    const sent = calls.map((call) => call.join('.')).filter((call) => !refused.has(call));
    expect(sent.sort()).toEqual([
      'identity.authenticateKey',
      'identity.confirmVerification',
      'identity.getVerification',
      'identity.listRetentionPeriods',
    ]);
    expect(refused.size).toBeGreaterThan(50);
  });

  it('about a CRM is not sent for a request without a key', async () => {
    const call = runWithContext({ requestId: 'own-crm' }, () =>
      clients.identity.getUser({ crmId: 'two', reference: 'same@test' }),
    );
    await expect(call).rejects.toThrow('a message about the CRM two for a request of no CRM');
  });
});

/** How a call fails, or the first message of a stream. */
async function outcomeOf(answer: unknown): Promise<unknown> {
  try {
    if (Symbol.asyncIterator in (answer as object))
      return await (answer as AsyncIterable<unknown>)[Symbol.asyncIterator]().next();
    return await answer;
  } catch (error) {
    return error;
  }
}
