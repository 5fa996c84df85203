import { type Client, type ClientOptions, createClient, paginate, ProblemError } from '@scheduling/client';
import { waitUntil } from '@scheduling/embedded';
import { openLink } from '@scheduling/testing/link';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import {
  createAppointment,
  createCrm,
  createPractice,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import { waitForFeed } from './feed.ts';
import { withLockedRow } from './lost-answers.ts';

let practice: Practice;
let params: { path: { providerRef: string } };
beforeAll(async () => {
  practice = await createPractice(await createCrm());
  params = { path: { providerRef: practice.provider } };
});

type Send = (request: Request) => Promise<Response>;

function open(crm: TestCrm, options: Partial<ClientOptions> = {}): Client {
  return createClient({ url: inject('stack').gateway, crmId: crm.crmId, key: crm.key, ...options });
}

/** Sends every attempt, and shows its response to the client as this function makes it. */
function recording(show: (response: Response, attempt: number) => Response = (response) => response): {
  fetch: Send;
  attempts: Request[];
  statuses: number[];
} {
  const attempts: Request[] = [];
  const statuses: number[] = [];
  const send: Send = async (request) => {
    attempts.push(request.clone());
    const response = await fetch(request);
    statuses.push(response.status);
    return show(response, attempts.length);
  };
  return { fetch: send, attempts, statuses };
}

function loseFirst(response: Response, attempt: number): Response {
  if (attempt === 1) throw new TypeError('fetch failed');
  return response;
}

/** The first body ends after ten bytes. */
function cutFirst(response: Response, attempt: number): Response {
  if (attempt > 1) return response;
  const cut = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => controller.enqueue(chunk.subarray(0, 10)),
    flush: (controller) => controller.error(new TypeError('terminated')),
  });
  return new Response(response.body!.pipeThrough(cut), response);
}

async function rejection(call: Promise<unknown>): Promise<ProblemError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ProblemError);
  return error as ProblemError;
}

describe('a request of the typed client', () => {
  it.each(['y@t', 'a/b c@t', '100%25ü@t'])('names what has the reference %s', async (name) => {
    const client = open(practice.crm);
    const customerReference = `${unique('c')}${name}`;
    const customer = { customerReference, providerReference: practice.provider, userName: 'Grace' };
    expect((await client.POST('/provider/{providerRef}/customers', { params, body: customer })).response.status).toBe(
      201,
    );
    const { data } = await client.GET('/provider/{providerRef}/customers/{customerRef}', {
      params: { path: { ...params.path, customerRef: customerReference } },
    });
    expect(data?.customer).toMatchObject({ customerReference, userName: 'Grace' });
  });

  it('rejects with the problem', async () => {
    const path = { ...params.path, appointmentRef: 'none' };
    const error = await rejection(
      open(practice.crm).GET('/provider/{providerRef}/appointments/{appointmentRef}', { params: { path } }),
    );
    expect(error).toMatchObject({
      name: 'ProblemError',
      status: 404,
      code: 'appointment.not_found',
      errors: [],
      reason: undefined,
    });
    expect(error.message).toMatch(/^404 appointment\.not_found: \S/);
    expect(error.requestId).toBe(error.response.headers.get('x-request-id'));
  });

  it('rejects with every invalid field', async () => {
    const user = { reference: 'nobody', email: 'x', username: 'x', lastName: 'x' };
    const error = await rejection(open(practice.crm).POST('/user', { body: user }));
    expect(error.errors.map(({ pointer }) => pointer)).toContain('/reference');
    expect(error.message).toMatch(/^400 request\.invalid: .*; \/reference \S/);
  });

  it('rejects with the status if the response is not one of the service', async () => {
    const proxy = async (): Promise<Response> =>
      new Response('<h1>Bad Gateway</h1>', { status: 502, statusText: 'Bad Gateway' });
    const error = await rejection(open(practice.crm, { fetch: proxy, retryForMs: 0 }).GET('/webhooks'));
    expect(error).toMatchObject({ status: 502, code: undefined, message: '502 Bad Gateway', requestId: undefined });
  });
});

describe('the typed client repeats a request', () => {
  it.each([
    ['is lost', loseFirst],
    ['is cut off', cutFirst],
  ])('whose response %s, and it has its effect once', async (_, show) => {
    const { fetch, attempts } = recording(show);
    const resource = unique('room');
    const period = { start: '2031-03-03T09:00', end: '2031-03-03T10:00', raster: 60 };
    const timeslot = {
      resourceReference: resource,
      ...period,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
      state: 'BOOKABLE' as const,
    };
    const { response } = await open(practice.crm, { fetch }).POST('/provider/{providerRef}/timeslots', {
      params,
      body: { timeslots: [timeslot] },
    });
    expect(response.status).toBe(201);
    expect(await query('calendar', 'SELECT 1 FROM timeslot WHERE resource_reference = $1', [resource])).toHaveLength(1);
    expect(attempts).toHaveLength(2);
    const keys = attempts.map(({ headers }) => headers.get('idempotency-key'));
    expect(keys[0]).toMatch(/^[\da-f-]{36}$/);
    expect(keys[1]).toBe(keys[0]);
  });

  it('when the service can be reached again', async () => {
    const ports: number[] = [];
    await using link = await openLink(() => ports);
    let attempts = 0;
    const send: Send = (request) => {
      attempts += 1;
      if (attempts === 2) ports.push(Number(new URL(inject('stack').gateway).port));
      return fetch(request);
    };
    const client = open(practice.crm, { url: `http://127.0.0.1:${link.port}`, fetch: send });
    expect((await client.GET('/webhooks')).data).toEqual([]);
    expect(attempts).toBe(2);
  });

  it.each([
    ['that was answered with 503', { attemptMs: 10_000, status: 503 }],
    ['that took too long and is still in progress', { attemptMs: 500, status: 409 }],
  ])('%s', async (_, { attemptMs, status }) => {
    const appointmentReference = await createAppointment(practice);
    const { fetch, statuses } = recording();
    const client = open(practice.crm, { fetch, attemptMs, retryForMs: 60_000 });
    const body = {
      reference: unique('booking'),
      appointmentReference,
      customerReference: practice.customer,
      state: 'BOOKED' as const,
    };
    let booking: ReturnType<typeof book>;
    const book = () => client.POST('/provider/{providerRef}/participations', { params, body });
    await withLockedRow('appointment', appointmentReference, async () => {
      booking = book();
      await waitUntil(() => statuses.includes(status), { what: `a response with ${status}`, timeoutMs: 30_000 });
    });
    expect((await booking!).data.participation).toMatchObject({ reference: body.reference, state: 'BOOKED' });
  });

  it('and knows that a deletion whose response is lost has succeeded', async () => {
    const customerRef = unique('customer');
    const customer = { customerReference: customerRef, providerReference: practice.provider, userName: 'Grace' };
    await open(practice.crm).POST('/provider/{providerRef}/customers', { params, body: customer });
    const { fetch, statuses } = recording(loseFirst);
    const path = { ...params.path, customerRef };
    const { response } = await open(practice.crm, { fetch }).DELETE('/provider/{providerRef}/customers/{customerRef}', {
      params: { path },
    });
    expect(response.status).toBe(204);
    expect(statuses).toEqual([204, 404]);
  });

  it('and knows that a cancellation whose response is lost has not, if nothing is found', async () => {
    const { fetch, statuses } = recording(loseFirst);
    const cancelling = open(practice.crm, { fetch }).DELETE('/provider/{providerRef}/appointments', {
      params,
      body: { appointmentReference: 'none' },
    });
    expect(await rejection(cancelling)).toMatchObject({ code: 'appointment.not_found' });
    expect(statuses).toEqual([404, 404]);
  });
});

describe('the typed client does not repeat a request', () => {
  it('that was rejected, or is to wait for longer than it is repeated', async () => {
    const { fetch, statuses } = recording();
    const client = open(await createCrm({ requestsPerMinute: 1 }), { fetch });
    expect(
      await rejection(client.GET('/webhooks/{webhookRef}', { params: { path: { webhookRef: 'none' } } })),
    ).toMatchObject({ code: 'webhook.not_found' });
    expect(await rejection(client.GET('/webhooks'))).toMatchObject({ code: 'rate.limited' });
    expect(statuses).toEqual([404, 429]);
  });

  it('if it is told not to', async () => {
    const { fetch, attempts } = recording(loseFirst);
    await expect(open(practice.crm, { fetch, retryForMs: 0 }).GET('/webhooks')).rejects.toThrow('fetch failed');
    expect(attempts).toHaveLength(1);
  });

  it('that is aborted, and rejects with the reason at once', async () => {
    const aborting = new AbortController();
    const reason = new Error('the user has gone');
    const { fetch, attempts } = recording((response, attempt) => {
      queueMicrotask(() => aborting.abort(reason));
      return loseFirst(response, attempt);
    });
    await expect(open(practice.crm, { fetch }).GET('/webhooks', { signal: aborting.signal })).rejects.toBe(reason);
    expect(attempts).toHaveLength(1);
  });
});

describe('the pages of a list', () => {
  it('are fetched as they are needed', async () => {
    const own = await createPractice(practice.crm);
    const references = [];
    for (const hour of ['09', '11', '13', '15', '17']) {
      references.push(await createAppointment(own, { start: `2031-03-03T${hour}:00`, end: `2031-03-03T${hour}:30` }));
    }
    const { fetch, attempts } = recording();
    const appointments = paginate(open(practice.crm, { fetch }), '/provider/{providerRef}/appointments', {
      params: { path: { providerRef: own.provider }, query: { limit: 2 } },
    });
    const listed = [];
    for await (const { reference } of appointments) {
      listed.push(reference);
      expect(attempts).toHaveLength(Math.ceil(listed.length / 2));
    }
    expect(listed).toEqual(references);
  });

  it('of users, accounts and providers have all of them', async () => {
    const own = await createPractice(await createCrm());
    const second = await createPractice(own.crm);
    const client = open(own.crm);
    const query = { limit: 1 };
    const users = await Array.fromAsync(paginate(client, '/users', { params: { query } }));
    expect(users.map(({ reference }) => reference)).toEqual([own.owner, second.owner]);
    const accounts = await Array.fromAsync(paginate(client, '/accounts', { params: { query } }));
    expect(accounts.map(({ accountReference }) => accountReference)).toEqual([own.account, second.account]);
    const providers = await Array.fromAsync(
      paginate(client, '/providers', { params: { query: { ...query, ownerReference: second.owner } } }),
    );
    expect(providers.map(({ reference }) => reference)).toEqual([second.provider]);
  });

  it('of the feed end where it has caught up, and go on after an event', async () => {
    const own = await createPractice(await createCrm());
    for (let count = 0; count < 4; count += 1) await createAppointment(own, { resource: unique('room') });
    const feed = await waitForFeed(own.crm, 5);
    const client = open(own.crm);
    const ids = async (query: { after?: string }) =>
      (await Array.fromAsync(paginate(client, '/events', { params: { query: { limit: 2, ...query } } }))).map(
        ({ id }) => id,
      );
    expect(await ids({})).toEqual(feed.map(({ id }) => id));
    expect(await ids({ after: feed[1]!.id })).toEqual(feed.slice(2).map(({ id }) => id));
    expect(await ids({ after: feed.at(-1)!.id })).toEqual([]);
  });
});
