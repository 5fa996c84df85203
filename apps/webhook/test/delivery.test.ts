import { DomainError } from '@scheduling/errors';
import { eventually } from '@scheduling/testing';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { answerWith, type EndpointServer, type ReceivedCall, startEndpoint } from './endpoint-server.ts';
import { createCrm, startWebhook, type TestCrm, type WebhookUnderTest } from './webhook-under-test.ts';

let stack: WebhookUnderTest;
let crm: TestCrm;
let endpoint: EndpointServer;
let used: AsyncDisposableStack;

beforeAll(async () => {
  stack = await startWebhook();
}, 60_000);
afterAll(() => stack?.[Symbol.asyncDispose]());

beforeEach(async () => {
  used = new AsyncDisposableStack();
  endpoint = used.use(await startEndpoint());
  crm = await createCrm(stack);
});
afterEach(() => used.disposeAsync());

interface Created {
  reference: string;
  secret: string;
}

async function createWebhook(settings: Record<string, unknown> = {}, owner: TestCrm = crm): Promise<Created> {
  const reference = `hook-${randomUUID()}`;
  const { secret, created } = await stack.webhooks.createWebhook({
    crmId: owner.crmId,
    reference,
    url: endpoint.url,
    types: [],
    ignoreActors: [],
    ...settings,
  });
  expect(created).toBe(true);
  return { reference, secret: secret! };
}

async function readWebhook({ reference }: Created) {
  const { webhook } = await stack.webhooks.getWebhook({ crmId: crm.crmId, webhookReference: reference });
  return webhook!;
}

async function attemptsOf({ reference }: Created) {
  const { attempts } = await stack.webhooks.listAttempts({ crmId: crm.crmId, webhookReference: reference, limit: 100 });
  return attempts;
}

/** The references of the customers whose events have arrived, in order. */
const arrived = ({ calls }: EndpointServer = endpoint): (string | null)[] =>
  calls.map(({ event }) => event.data.reference);

function verify(secret: string, { headers, body }: ReceivedCall): void {
  new Verifier(secret).verify(body, headers as Record<string, string>);
}

it('sends each event of the feed, in order, as it is in the feed, with a signature that the foreign library verifies', async () => {
  await crm.createCustomers(1);
  await eventually(async () => expect(await crm.feed()).toHaveLength(1));
  const webhook = await createWebhook();
  const references = await crm.createCustomers(120);
  await eventually(() => expect(arrived()).toEqual(references));
  const feed = await crm.feed();
  expect(endpoint.calls.map(({ event }) => event)).toEqual(feed.slice(1));
  for (const call of endpoint.calls) {
    verify(webhook.secret, call);
    expect(call.headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': call.event.id });
  }
  await eventually(async () =>
    expect(await readWebhook(webhook)).toMatchObject({ after: feed.at(-1)!.id, failedAttempts: 0, enabled: true }),
  );
  expect(() => verify(webhook.secret, { ...endpoint.calls[0]!, body: `${endpoint.calls[0]!.body} ` })).toThrow(
    /signature/i,
  );
});

describe('an event that cannot be delivered', () => {
  it('is sent again, with the same id, before those behind it', async () => {
    let failures = 3;
    endpoint.answer = (response) => {
      failures -= 1;
      response.writeHead(failures >= 0 ? 500 : 200).end();
    };
    const webhook = await createWebhook();
    const [first, second] = await crm.createCustomers(2);
    await eventually(() => expect(arrived()).toEqual([first, first, first, first, second]));
    expect(new Set(endpoint.calls.slice(0, 4).map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    await eventually(async () =>
      expect(await attemptsOf(webhook)).toMatchObject([
        { status: 200 },
        { status: 200 },
        { status: 500 },
        { status: 500 },
        { status: 500 },
      ]),
    );
    for (const call of endpoint.calls) verify(webhook.secret, call);
  });

  it('does not have those before it sent again', async () => {
    endpoint.answer = (response) => void response.writeHead(endpoint.calls.length === 3 ? 500 : 204).end();
    await createWebhook({ types: ['customer.created'] });
    const [first, second, third, fourth] = await crm.createCustomers(4);
    await eventually(() => expect(arrived()).toEqual([first, second, third, third, fourth]));
  });

  it.each([
    ['after its last attempt', 4, answerWith(503)],
    ['at once if the endpoint says that it is gone', 1, answerWith(410)],
    ['after its last attempt, if it is redirected', 4, answerWith(302, { location: 'http://127.0.0.1:1/' })],
  ])(
    'disables the webhook %s, which is an event; enabled again, it continues where it stopped',
    async (_, attempts, answer) => {
      endpoint.answer = answer;
      const other = used.use(await startEndpoint());
      const webhook = await createWebhook();
      await createWebhook({ url: other.url, types: ['webhook.disabled'] });
      const references = await crm.createCustomers(2);
      await eventually(async () => expect(await readWebhook(webhook)).toMatchObject({ enabled: false }));
      expect(arrived()).toEqual(Array.from({ length: attempts }, () => references[0]));
      await eventually(() =>
        expect(other.calls.map(({ event }) => event)).toMatchObject([
          {
            type: 'webhook.disabled',
            data: { reference: webhook.reference, state: 'DISABLED', previousState: 'ENABLED' },
          },
        ]),
      );
      const feed = await crm.feed();
      expect(feed.map(({ type }) => type).toSorted()).toEqual([
        'customer.created',
        'customer.created',
        'webhook.disabled',
      ]);
      endpoint.calls.splice(0);
      endpoint.answer = answerWith(204);
      await stack.webhooks.updateWebhook({ crmId: crm.crmId, webhookReference: webhook.reference, enabled: true });
      await eventually(() => expect(endpoint.calls.map(({ event }) => event)).toEqual(feed));
    },
  );

  it('waits as long as the endpoint asks for', async () => {
    endpoint.answer = answerWith(429, { 'retry-after': '3600' });
    const webhook = await createWebhook();
    await crm.createCustomers(1);
    await eventually(async () => {
      const { failedAttempts, nextAttemptAt } = await readWebhook(webhook);
      expect(failedAttempts).toBe(1);
      expect(nextAttemptAt!.getTime() - Date.now()).toBeGreaterThan(3_500_000);
    });
  });

  it('delays neither other webhooks nor other CRMs', async () => {
    endpoint.answer = () => undefined;
    const fast = used.use(await startEndpoint());
    const foreign = used.use(await startEndpoint());
    const other = await createCrm(stack);
    await createWebhook();
    await createWebhook({ url: fast.url });
    await createWebhook({ url: foreign.url }, other);
    const [references, foreignReferences] = await Promise.all([crm.createCustomers(5), other.createCustomers(5)]);
    await eventually(() => {
      expect(arrived(fast)).toEqual(references);
      expect(arrived(foreign)).toEqual(foreignReferences);
    });
    expect(endpoint.calls).toHaveLength(1);
  });
});

describe('a webhook', () => {
  it('is not sent what it does not ask for', async () => {
    const types = used.use(await startEndpoint());
    const provider = used.use(await startEndpoint());
    const ignoring = used.use(await startEndpoint());
    await createWebhook();
    await createWebhook({ url: types.url, types: ['customer.deleted', 'customer.changed'] });
    await createWebhook({ url: provider.url, providerReference: crm.providerReference });
    await createWebhook({ url: ignoring.url, ignoreActors: ['service'] });
    const [reference] = await crm.createCustomers(1);
    const key = { crmId: crm.crmId, providerReference: crm.providerReference, customerReference: reference! };
    await stack.customers.updateCustomer({ ...key, userName: 'Grace' });
    await eventually(() => {
      const created = ['customer.created', 'customer.changed'];
      expect(endpoint.calls.map(({ event }) => event.type)).toEqual(created);
      expect(provider.calls.map(({ event }) => event.type)).toEqual(created);
      expect(types.calls.map(({ event }) => event.type)).toEqual(['customer.changed']);
    });
    expect(ignoring.calls).toEqual([]);
  });

  it('is moved by its CRM: back to send events again, or forward to leave them out', async () => {
    const webhook = await createWebhook();
    const references = await crm.createCustomers(4);
    await eventually(() => expect(arrived()).toEqual(references));
    const move = (after: string) =>
      stack.webhooks.updateWebhook({ crmId: crm.crmId, webhookReference: webhook.reference, after });
    const feed = await crm.feed();
    await move(feed[1]!.id);
    await eventually(() => expect(arrived()).toEqual([...references, ...references.slice(2)]));
    await move('start');
    await eventually(() => expect(arrived().slice(6)).toEqual(references));
    endpoint.answer = answerWith(500);
    await stack.webhooks.updateWebhook({ crmId: crm.crmId, webhookReference: webhook.reference, enabled: false });
    await crm.createCustomers(2);
    await eventually(async () => expect(await crm.feed()).toHaveLength(6));
    endpoint.answer = answerWith(204);
    await stack.webhooks.updateWebhook({
      crmId: crm.crmId,
      webhookReference: webhook.reference,
      enabled: true,
      after: 'end',
    });
    const [last] = await crm.createCustomers(1);
    await eventually(() => expect(arrived().slice(10)).toEqual([last]));
  });

  it('that is moved while a request is in progress goes on from there when that has ended', async () => {
    const { promise: held, resolve: hold } = Promise.withResolvers<ServerResponse>();
    endpoint.answer = hold;
    const webhook = await createWebhook();
    const [first] = await crm.createCustomers(3);
    await eventually(async () => expect(await crm.feed()).toHaveLength(3));
    const response = await held;
    endpoint.answer = answerWith(204);
    const { webhook: moved } = await stack.webhooks.updateWebhook({
      crmId: crm.crmId,
      webhookReference: webhook.reference,
      after: 'end',
    });
    const [last] = await crm.createCustomers(1);
    response.writeHead(204).end();
    await eventually(async () => expect(await attemptsOf(webhook)).toMatchObject([{ status: 204 }]));
    expect(await readWebhook(webhook)).toMatchObject({ after: moved!.after });
    // As if the longest time had passed that a request can take.
    const waiting = await stack.database.kysely
      .selectFrom('webhook')
      .select('dueAt')
      .where('reference', '=', webhook.reference)
      .executeTakeFirstOrThrow();
    expect(waiting.dueAt.getTime() - Date.now()).toBeGreaterThan(5_000);
    await stack.database.kysely
      .updateTable('webhook')
      .set({ dueAt: new Date() })
      .where('reference', '=', webhook.reference)
      .execute();
    await eventually(() => expect(arrived()).toEqual([first, last]));
  });

  it('signs with both secrets after a rotation', async () => {
    const webhook = await createWebhook();
    const { secret } = await stack.webhooks.rotateSecret({ crmId: crm.crmId, webhookReference: webhook.reference });
    await crm.createCustomers(1);
    await eventually(() => expect(endpoint.calls).toHaveLength(1));
    for (const each of [webhook.secret, secret]) verify(each, endpoint.calls[0]!);
    await stack.database.kysely
      .updateTable('webhook')
      .set({ previousSecretUntil: new Date() })
      .where('reference', '=', webhook.reference)
      .execute();
    await crm.createCustomers(1);
    await eventually(() => expect(endpoint.calls).toHaveLength(2));
    verify(secret, endpoint.calls[1]!);
    expect(() => verify(webhook.secret, endpoint.calls[1]!)).toThrow(/signature/i);
  });

  it('has a secret that is nowhere in the database', async () => {
    const { secret, reference } = await createWebhook();
    const row = await stack.database.kysely
      .selectFrom('webhook')
      .selectAll()
      .where('reference', '=', reference)
      .executeTakeFirstOrThrow();
    expect(row.secret).toMatch(/^test:/);
    expect(JSON.stringify(row)).not.toContain(secret.slice('whsec_'.length));
  });

  it('can be tested without an effect on the feed or on its position, even if it is disabled', async () => {
    const webhook = await createWebhook();
    const key = { crmId: crm.crmId, webhookReference: webhook.reference };
    await stack.webhooks.updateWebhook({ ...key, enabled: false });
    endpoint.answer = answerWith(418);
    const { eventId } = await stack.webhooks.testWebhook(key);
    await eventually(async () =>
      expect(await attemptsOf(webhook)).toMatchObject([{ eventId, eventType: 'webhook.test', status: 418 }]),
    );
    expect(endpoint.calls).toMatchObject([
      { event: { id: eventId, type: 'webhook.test', data: { reference: webhook.reference } } },
    ]);
    verify(webhook.secret, endpoint.calls[0]!);
    expect(await crm.feed()).toEqual([]);
    expect(await readWebhook(webhook)).toMatchObject({ enabled: false, failedAttempts: 0 });
  });
});

describe('the tests of a CRM', () => {
  const test = async (webhook: Created, { crmId }: TestCrm = crm) => {
    const { eventId } = await stack.webhooks.testWebhook({ crmId, webhookReference: webhook.reference });
    return eventId;
  };
  /** The requests to the endpoint that have not been answered. */
  const hold = (): ServerResponse[] => {
    const held: ServerResponse[] = [];
    endpoint.answer = (response) => void held.push(response);
    return held;
  };
  const limited = { category: 'limited', code: 'webhook.tests_limited' };

  it('are five at a time, and take nothing from those of another one', async () => {
    const other = await createCrm(stack);
    const [webhook, ofOther] = [await createWebhook(), await createWebhook({}, other)];
    const held = hold();
    for (let count = 0; count < 5; count += 1) await test(webhook);
    for (let count = 0; count < 20; count += 1) await expect(test(webhook)).rejects.toMatchObject(limited);
    await test(ofOther, other);
    await eventually(() => expect(held).toHaveLength(6));
    const refusal = await test(webhook).catch((error: unknown) => error as DomainError);
    expect((refusal as DomainError).retryAfterSeconds).toBeGreaterThan(0);
    expect((refusal as DomainError).retryAfterSeconds).toBeLessThanOrEqual(15);
    endpoint.answer = answerWith(204);
    held[0]!.writeHead(204).end();
    await eventually(() => test(webhook));
    for (const response of held) response.end();
  });

  it('are five at a time, however many come at once', async () => {
    const webhook = await createWebhook();
    const held = hold();
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => unlessTooMany(() => test(webhook))));
    expect(results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))).toMatchObject(
      [limited, limited, limited],
    );
    await eventually(() => expect(held).toHaveLength(5));
    for (const response of held) response.writeHead(204).end();
  });

  it('are 30 in a minute, also after a restart and for a new webhook', async () => {
    const webhook = await createWebhook();
    for (let count = 0; count < 30; count += 1) {
      const eventId = await test(webhook);
      await eventually(async () =>
        expect(await attemptsOf(webhook)).toContainEqual(expect.objectContaining({ eventId })),
      );
    }
    await stack.restart();
    await stack.webhooks.deleteWebhook({ crmId: crm.crmId, webhookReference: webhook.reference });
    const next = await createWebhook();
    await expect(test(next)).rejects.toMatchObject(limited);
    await stack.database.kysely
      .updateTable('webhookTest')
      .set({ startedAt: sql<Date>`started_at - interval '1 minute'` })
      .where('crmId', '=', crm.crmId)
      .execute();
    await test(next);
    expect(
      await stack.database.kysely.selectFrom('webhookTest').select('eventId').where('crmId', '=', crm.crmId).execute(),
    ).toHaveLength(1);
  });

  it('are not among those being sent if their process was killed', async () => {
    const webhook = await createWebhook();
    const held = hold();
    for (let count = 0; count < 5; count += 1) await test(webhook);
    await expect(test(webhook)).rejects.toMatchObject(limited);
    await stack.database.kysely
      .updateTable('webhookTest')
      .set({ startedAt: sql<Date>`started_at - interval '15 seconds'` })
      .where('crmId', '=', crm.crmId)
      .execute();
    await test(webhook);
    await eventually(() => expect(held).toHaveLength(6));
    for (const response of held) response.writeHead(204).end();
  });
});

it('sends nothing to webhooks that were disabled while they waited for a connection', async () => {
  const owners = await Promise.all(Array.from({ length: 3 }, () => createCrm(stack)));
  const held: ServerResponse[] = [];
  endpoint.answer = (response) => void held.push(response);
  // One host gets 25 connections.
  const urls = owners.flatMap((owner, index) =>
    Array.from({ length: 9 }, (_, number) => ({ owner, url: `${endpoint.url}/${index}/${number}` })),
  );
  const webhooks: (Created & { owner: TestCrm; path: string })[] = [];
  for (const { owner, url } of urls)
    webhooks.push({ owner, path: new URL(url).pathname, ...(await createWebhook({ url }, owner)) });
  await Promise.all(owners.map((owner) => owner.createCustomers(1)));
  const leased = () =>
    stack.database.kysely
      .selectFrom('webhook')
      .select('reference')
      .where(
        'crmId',
        'in',
        owners.map(({ crmId }) => crmId),
      )
      .where('lease', 'is not', null)
      .execute();
  await eventually(async () => expect([held.length, (await leased()).length]).toEqual([25, 27]));
  const waiting = webhooks.filter(({ path }) => !endpoint.calls.some((call) => call.path === path));
  for (const { owner, reference } of waiting)
    await stack.webhooks.updateWebhook({ crmId: owner.crmId, webhookReference: reference, enabled: false });
  endpoint.answer = answerWith(204);
  for (const response of held) response.writeHead(204).end();
  await eventually(async () => expect(await leased()).toEqual([]));
  expect(waiting).toHaveLength(2);
  expect(endpoint.calls).toHaveLength(25);
});

it('goes on after a restart where it stopped, and misses nothing', async () => {
  const webhook = await createWebhook();
  const { promise: busy, resolve: isBusy } = Promise.withResolvers<void>();
  endpoint.answer = (response, call) => {
    if (endpoint.calls.length === 3) isBusy();
    else answerWith(204)(response, call);
  };
  const creating = crm.createCustomers(10);
  await busy;
  const stopping = stack.restart();
  endpoint.answer = answerWith(204);
  await stopping;
  const references = await creating;
  await eventually(() => expect([...new Set(arrived())]).toEqual(references));
  for (const call of endpoint.calls) verify(webhook.secret, call);
});

it('a CRM can have 10 webhooks, however many are created at once', async () => {
  const creations = await Promise.allSettled(Array.from({ length: 15 }, () => unlessTooMany(() => createWebhook())));
  const refusals = creations.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  expect(refusals).toHaveLength(5);
  expect(refusals[0]).toMatchObject({ category: 'conflict', code: 'webhook.limit_reached' });
  const { webhooks } = await stack.webhooks.listWebhooks({ crmId: crm.crmId });
  expect(webhooks).toHaveLength(10);
});

/** Repeats a call that had to wait for too long for others of the CRM. */
async function unlessTooMany<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof DomainError) || error.code !== 'service.unavailable') throw error;
    }
  }
}
