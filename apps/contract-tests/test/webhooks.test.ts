import { waitUntil } from '@scheduling/embedded';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { apiInfo } from './answers.ts';
import { type Answer, path, type Problem, readPages } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { readFeed } from './feed.ts';
import { startReceiver, type TestReceiver } from './webhook-receiver.ts';

interface Webhook {
  reference: string;
  state: string;
  after: string | null;
  secret?: string;
}

interface Attempt {
  eventId: string;
  eventType: string;
  status: number | null;
  error: string | null;
}

let crm: TestCrm;
let receiver: TestReceiver;
let resources: AsyncDisposableStack;
beforeEach(async () => {
  resources = new AsyncDisposableStack();
  receiver = resources.use(await startReceiver());
  crm = await createCrm();
});
afterEach(() => resources.disposeAsync());

const at = (reference: string, rest = ''): string => path`/webhooks/${reference}` + rest;
const newWebhook = (fields: Record<string, unknown> = {}) => ({
  reference: `${unique('hook')}@test`,
  url: receiver.url,
  ...fields,
});
const arrival = (count: number) =>
  waitUntil(() => receiver.events.length >= count, { what: `${count} events at the endpoint`, timeoutMs: 30_000 });

describe('webhooks (interface 6.4)', () => {
  it('are created with a secret that is shown once, read, changed and deleted', async () => {
    const request = newWebhook({ types: ['customer.created', 'customer.changed'], ignoreActors: ['person'] });
    const created = await crm.post<{ webhook: Webhook }>('/webhooks', request);
    const { secret, ...webhook } = created.body.webhook;
    expect(created.status).toBe(201);
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(webhook).toEqual({
      ...request,
      types: ['customer.changed', 'customer.created'],
      providerReference: null,
      state: 'ENABLED',
      after: null,
      failedAttempts: 0,
      nextAttemptAt: null,
      createdAt: expect.stringMatching(/Z$/) as string,
    });
    expect(await crm.post('/webhooks', request)).toMatchObject({ status: 200, body: { 'api-info': apiInfo, webhook } });
    expect((await crm.post('/webhooks', request)).text).not.toContain('whsec_');
    expect(await crm.post('/webhooks', { ...request, types: [] })).toMatchObject({
      status: 409,
      body: { code: 'webhook.reference_taken' },
    });
    expect((await crm.get<Webhook[]>('/webhooks')).body).toEqual([webhook]);
    expect((await crm.get(at(request.reference))).body).toEqual({ 'api-info': apiInfo, webhook });
    const change = { url: `${receiver.url}/new`, types: null, ignoreActors: [], state: 'DISABLED' };
    expect((await crm.put(at(request.reference), change)).body).toEqual({
      'api-info': apiInfo,
      webhook: { ...webhook, ...change, types: [] },
    });
    expect(await crm.delete(at(request.reference))).toMatchObject({ status: 204 });
    for (const answer of [
      crm.get(at(request.reference)),
      crm.delete(at(request.reference)),
      crm.put(at(request.reference), {}),
      crm.get(at(request.reference, '/attempts')),
    ]) {
      expect(await answer).toMatchObject({ status: 404, body: { code: 'webhook.not_found' } });
    }
    expect((await crm.get('/webhooks')).body).toEqual([]);
  });

  it('send the events of the feed, as they are in the feed', async () => {
    const { body } = await crm.post<{ webhook: Webhook }>('/webhooks', newWebhook());
    receiver.secret = body.webhook.secret!;
    const practice = await createPractice(crm);
    const appointment = await createAppointment(practice);
    const participation = await createParticipation(practice, appointment);
    await crm.post(practice.at + path`/participations/${participation}`, { state: 'CANCELED' });
    await arrival(4);
    expect(receiver.forgeries).toBe(0);
    expect(receiver.events).toEqual(await readFeed(crm));
    await waitUntil(
      async () =>
        (await crm.get<{ webhook: Webhook }>(at(body.webhook.reference))).body.webhook.after ===
        receiver.events.at(-1)!.id,
      { what: 'the position', timeoutMs: 30_000 },
    );
    const pages = await readPages<Attempt>(crm, at(body.webhook.reference, '/attempts'), { limit: '3' });
    expect(pages.map((page) => page.length)).toEqual([3, 1]);
    expect(pages.flat().toReversed()).toMatchObject(
      receiver.events.map(({ id: eventId, type: eventType }) => ({ eventId, eventType, status: 204, error: null })),
    );
  });

  it('leave out what their CRM did itself, if it asks for that', async () => {
    const { body } = await crm.post<{ webhook: Webhook }>(
      '/webhooks',
      newWebhook({ ignoreActors: [`crm:${crm.key.slice(0, 12)}`] }),
    );
    receiver.secret = body.webhook.secret!;
    const practice = await createPractice(crm);
    await createParticipation(practice, await createAppointment(practice));
    await waitUntil(async () => (await readFeed(crm)).length === 3, { what: 'the feed', timeoutMs: 30_000 });
    await waitUntil(
      async () => (await crm.get<{ webhook: Webhook }>(at(body.webhook.reference))).body.webhook.after !== null,
      { what: 'the position', timeoutMs: 30_000 },
    );
    expect(receiver.events).toEqual([]);
  });

  it('are tested, and say what came of it', async () => {
    const { body } = await crm.post<{ webhook: Webhook }>('/webhooks', newWebhook({ url: 'http://127.0.0.1:1/' }));
    const test = await crm.post<{ test: { eventId: string } }>(at(body.webhook.reference, '/test'), undefined);
    expect(test.status).toBe(202);
    const attempts = await waitUntil(
      async () => {
        const { body: found } = await crm.get<Attempt[]>(at(body.webhook.reference, '/attempts'));
        return found.length > 0 && found;
      },
      { what: 'the attempt', timeoutMs: 30_000 },
    );
    expect(attempts).toMatchObject([
      { eventId: test.body.test.eventId, eventType: 'webhook.test', status: null, error: 'connect' },
    ]);
  });
});

describe('a request with an Idempotency-Key that is repeated', () => {
  const repeat = async <Body>(
    send: (headers: Record<string, string>) => Promise<Answer<Body>>,
  ): Promise<[Answer<Body>, Answer<Body>]> => {
    const headers = { 'idempotency-key': unique('key') };
    return [await send(headers), await send(headers)];
  };

  it('is answered with the same secret, and sends one test', async () => {
    const request = newWebhook();
    const created = await repeat((headers) => crm.post<{ webhook: Webhook }>('/webhooks', request, { headers }));
    expect(created[1]).toMatchObject({ status: 201, body: created[0].body });
    receiver.secret = created[0].body.webhook.secret!;
    const tests = await repeat((headers) =>
      crm.post<{ test: object }>(at(request.reference, '/test'), undefined, { headers }),
    );
    expect(tests[1]).toMatchObject({ status: 202, body: tests[0].body });
    await arrival(1);
    const rotated = await repeat((headers) =>
      crm.post<{ webhook: Webhook }>(at(request.reference, '/secret'), undefined, { headers }),
    );
    expect(rotated[1]).toMatchObject({ status: 200, body: rotated[0].body });
    expect(rotated[0].body.webhook.secret).not.toBe(created[0].body.webhook.secret);
    expect(receiver.events).toHaveLength(1);
  });

  it('does not show a secret that a later request has made', async () => {
    const request = newWebhook();
    const headers = [unique('key'), unique('key'), unique('key')].map((key) => ({ 'idempotency-key': key }));
    const create = () => crm.post<{ webhook: Webhook }>('/webhooks', request, { headers: headers[0]! });
    const rotate = (index: number) =>
      crm.post<{ webhook: Webhook }>(at(request.reference, '/secret'), undefined, { headers: headers[index]! });
    await create();
    const { secret } = (await rotate(1)).body.webhook;
    expect((await create()).body.webhook).not.toHaveProperty('secret');
    expect((await rotate(1)).body.webhook).toMatchObject({ secret });
    await rotate(2);
    for (const { status, body } of [await create(), await rotate(1)]) {
      expect([200, 201]).toContain(status);
      expect(body.webhook).toMatchObject({ reference: request.reference });
      expect(body.webhook).not.toHaveProperty('secret');
    }
  });
});

describe('what is wrong with a webhook', () => {
  const long = 'x'.repeat(256);
  const faults: [field: string, values: unknown[], pointer?: string][] = [
    ['reference', ['', ' ', null, undefined, 5, long, 'a\nb', '.', '..']],
    [
      'url',
      [
        '',
        null,
        undefined,
        5,
        'example.com',
        'ftp://example.com/',
        'https://user@example.com/',
        'https://example.com/#a',
        `https://example.com/${'x'.repeat(2_048)}`,
      ],
    ],
    ['types', ['customer.created', 5, Array.from({ length: 51 }, () => 'customer.created')]],
    ['types', [['customer'], ['Customer.created'], [''], [5]], '/types/0'],
    ['providerReference', [5, long, []]],
    ['ignoreActors', ['person', 5, Array.from({ length: 51 }, () => 'person')]],
    ['ignoreActors', [[''], [5], [long]], '/ignoreActors/0'],
  ];

  it.each(faults)('is named: %s', async (field, values, pointer = `/${field}`) => {
    const { reference } = (await crm.post<{ webhook: Webhook }>('/webhooks', newWebhook())).body.webhook;
    for (const value of values) {
      const created = await crm.post<Problem>('/webhooks', { ...newWebhook(), [field]: value });
      expect([created.status, created.body.errors?.map((error) => error.pointer)], JSON.stringify(value)).toEqual([
        400,
        [pointer],
      ]);
      if (field === 'reference' || value === undefined || (value === null && field !== 'url')) continue;
      const changed = await crm.put<Problem>(at(reference), { [field]: value });
      expect([changed.status, changed.body.errors?.map((error) => error.pointer)], JSON.stringify(value)).toEqual([
        400,
        [pointer],
      ]);
    }
    expect((await crm.get<Webhook[]>('/webhooks')).body).toHaveLength(1);
  });

  it('is named in a change of its state or position', async () => {
    const { reference } = (await crm.post<{ webhook: Webhook }>('/webhooks', newWebhook())).body.webhook;
    for (const state of ['enabled', '', null, 5])
      expect(await crm.put(at(reference), { state })).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/state' }] },
      });
    for (const after of ['', 'now', '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1f\n', null, 5])
      expect(await crm.put(at(reference), { after })).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: '/after' }] },
      });
    expect(await crm.put(at(reference), { after: '018f0000-0000-7000-8000-000000000000' })).toMatchObject({
      status: 410,
      body: { code: 'events.expired' },
    });
    expect(await crm.put(at(reference), { providerReference: 'nobody@test' })).toMatchObject({
      status: 404,
      body: { code: 'provider.not_found' },
    });
    expect(await crm.get(at(reference, '/attempts'), { query: { cursor: 'made-up' } })).toMatchObject({
      status: 400,
      body: { errors: [{ parameter: 'cursor' }] },
    });
  });
});
