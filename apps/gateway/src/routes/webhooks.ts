import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Attempt, Webhook } from '@scheduling/contracts/webhook/v1';
import { Type } from 'typebox';
import type { Clients } from '../clients.ts';
import { given, givenFields, line, oneOf, optionalLine, pathReference, reference } from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import { linkHeader, linkToNext, pageFields } from '../paging.ts';
import {
  apiInfoValue,
  instant,
  list,
  nullable,
  nullableString,
  presentInstant,
  problems,
  wrapped,
} from '../schemas.ts';
import { crmParams } from './path-parameters.ts';

const defaultAttempts = 100;

/** interface 6.4. */
export function webhookRoutes({ webhooks }: Clients, publicUrl: string): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/webhooks', { schema: createWebhookSchema, config: needsAll }, async ({ params, body }, reply) => {
      const { reference, url, providerReference } = givenFields(createWebhookSchema.body, body);
      const { webhook, secret, created } = await webhooks.createWebhook(params, {
        reference,
        url,
        types: body.types ?? [],
        providerReference,
        ignoreActors: body.ignoreActors ?? [],
      });
      return reply
        .code(created ? 201 : 200)
        .send({ 'api-info': apiInfoValue, webhook: { ...presentWebhook(webhook!), secret } });
    });

    app.get('/webhooks', { schema: listWebhooksSchema, config: needsRead }, async ({ params }) =>
      (await webhooks.listWebhooks(params)).webhooks.map(presentWebhook),
    );

    app.get('/webhooks/:webhookRef', { schema: getWebhookSchema, config: needsRead }, async ({ params }) => {
      const { webhook } = await webhooks.getWebhook(params);
      return { 'api-info': apiInfoValue, webhook: presentWebhook(webhook!) };
    });

    app.put('/webhooks/:webhookRef', { schema: updateWebhookSchema, config: needsAll }, async ({ params, body }) => {
      const { url, types, providerReference, ignoreActors, state, after } = body;
      const { webhook } = await webhooks.updateWebhook(params, {
        url,
        types: types === undefined ? undefined : { values: types ?? [] },
        providerReference: providerReference === null ? '' : providerReference,
        ignoreActors: ignoreActors === undefined ? undefined : { values: ignoreActors ?? [] },
        enabled: state === undefined ? undefined : state === 'ENABLED',
        after: given(after),
      });
      return { 'api-info': apiInfoValue, webhook: presentWebhook(webhook!) };
    });

    app.delete(
      '/webhooks/:webhookRef',
      { schema: deleteWebhookSchema, config: needsAll },
      async ({ params }, reply) => {
        await webhooks.deleteWebhook(params);
        return reply.code(204).send(null);
      },
    );

    app.post('/webhooks/:webhookRef/secret', { schema: rotateSecretSchema, config: needsAll }, async ({ params }) => {
      const { webhook, secret } = await webhooks.rotateSecret(params);
      return { 'api-info': apiInfoValue, webhook: { ...presentWebhook(webhook!), secret: secret || undefined } };
    });

    app.post(
      '/webhooks/:webhookRef/test',
      { schema: testWebhookSchema, config: needsAll },
      async ({ params }, reply) => {
        const { eventId } = await webhooks.testWebhook(params);
        return reply.code(202).send({ 'api-info': apiInfoValue, test: { eventId } });
      },
    );

    app.get(
      '/webhooks/:webhookRef/attempts',
      { schema: listAttemptsSchema, config: needsRead },
      async ({ params, query, url }, reply) => {
        const { limit = defaultAttempts, cursor } = query;
        const { attempts, nextCursor } = await webhooks.listAttempts(params, { limit, cursor });
        if (nextCursor !== undefined) void reply.header('link', linkToNext(publicUrl, url, 'cursor', nextCursor));
        return attempts.map(presentAttempt);
      },
    );
  };
}

function presentWebhook({ enabled, nextAttemptAt, createdAt, ...webhook }: Webhook) {
  return {
    ...webhook,
    state: enabled ? ('ENABLED' as const) : ('DISABLED' as const),
    nextAttemptAt: nextAttemptAt && presentInstant(nextAttemptAt),
    createdAt: presentInstant(createdAt),
  };
}

function presentAttempt({ attemptedAt, ...attempt }: Attempt) {
  return { ...attempt, attemptedAt: presentInstant(attemptedAt) };
}

const webhookExample = {
  reference: 'w-1@acme',
  url: 'https://crm.example/hooks/scheduling',
  types: ['participation.changed', 'participation.created'],
  providerReference: null,
  ignoreActors: [],
  state: 'ENABLED',
  after: '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e',
  failedAttempts: 0,
  nextAttemptAt: null,
  createdAt: '2030-05-06T07:00:00Z',
};

const states = ['ENABLED', 'DISABLED'] as const;

const webhook = Type.Object(
  {
    reference: Type.String(),
    url: Type.String(),
    types: Type.Array(Type.String(), { description: 'The types of events that are sent; empty: all.' }),
    providerReference: nullableString({ description: 'Only events of this provider are sent.' }),
    ignoreActors: Type.Array(Type.String(), { description: 'Events of these actors are not sent.' }),
    state: oneOf(states, { description: '`DISABLED`: nothing is sent.' }),
    after: nullableString({
      description:
        'ID of the last event that was delivered or skipped; null if there is none, or if it is no longer available.',
    }),
    failedAttempts: Type.Integer({ description: 'How often the next event could not be delivered.' }),
    nextAttemptAt: nullable<string>({
      type: 'string',
      format: 'date-time',
      description: 'When it is sent again; null if it has not failed, or is being sent.',
    }),
    createdAt: instant(),
    secret: Type.Optional(
      Type.String({
        description:
          'Signs the events. Only in the response to the request that creates it; absent if that request is repeated after the secret has been replaced.',
      }),
    ),
  },
  { title: 'Webhook', examples: [webhookExample] },
);

const withSecretExample = { ...webhookExample, secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD' };

const url = line({
  maxLength: 2_048,
  description: 'Where events are sent: an https URL with port 443, or from 1024, in a public network.',
});

const types = Type.Optional(
  Type.Unsafe<string[] | null>({
    type: ['array', 'null'],
    items: line(),
    maxItems: 50,
    description: 'Only events of these types (see List events); if empty, all.',
  }),
);
const providerReference = Type.Optional(optionalLine({ description: 'Only events of this provider.' }));
const ignoreActors = Type.Optional(
  Type.Unsafe<string[] | null>({
    type: ['array', 'null'],
    items: line(),
    maxItems: 50,
    description:
      'Events of these actors are not sent: `crm:` and the prefix of an API key leaves out what the CRM did with this key itself.',
  }),
);

const webhookParams = Type.Object({ ...crmParams.properties, webhookRef: pathReference('Reference of the webhook.') });

const createWebhookSchema = {
  operationId: 'createWebhook',
  summary: 'Create a webhook',
  description:
    'Every event from now on is sent to the URL in a POST request of its own, one after the other, signed as in Standard Webhooks 1.0 with the `secret` in the response. ' +
    'A CRM can have 10 webhooks.',
  tags: ['Webhooks'],
  params: crmParams,
  headers: idempotencyHeaders,
  body: Type.Object(
    { reference: reference({ description: 'Unique.' }), url, types, providerReference, ignoreActors },
    {
      title: 'NewWebhook',
      examples: [
        {
          reference: 'w-1@acme',
          url: 'https://crm.example/hooks/scheduling',
          types: ['participation.changed', 'participation.created'],
        },
      ],
    },
  ),
  response: {
    200: wrapped('webhook', webhook, 'The webhook already exists'),
    201: wrapped('webhook', webhook, 'Created', withSecretExample),
    ...problems(
      [
        'webhook.invalid',
        'provider.not_found',
        'webhook.not_found',
        'webhook.reference_taken',
        'webhook.limit_reached',
      ],
      { body: true, idempotencyKey: true },
    ),
  },
} as const;

const listWebhooksSchema = {
  operationId: 'listWebhooks',
  summary: 'List webhooks',
  description: 'All webhooks of the CRM, without their secrets.',
  tags: ['Webhooks'],
  params: crmParams,
  response: { 200: list(webhook, { description: 'The webhooks, in the order of their creation' }), ...problems([]) },
} as const;

const getWebhookSchema = {
  operationId: 'getWebhook',
  summary: 'Get a webhook',
  description:
    'A webhook without its secret. `state`, `failedAttempts` and `nextAttemptAt` tell how its deliveries are going.',
  tags: ['Webhooks'],
  params: webhookParams,
  response: { 200: wrapped('webhook', webhook, 'The webhook'), ...problems(['webhook.not_found']) },
} as const;

const updateWebhookSchema = {
  operationId: 'updateWebhook',
  summary: 'Update a webhook',
  description:
    'Changes what is given, and sends the next event at once. `after` makes it continue behind another event, to send events again or to leave some out. A disabled webhook ' +
    'that is enabled continues where it stopped.',
  tags: ['Webhooks'],
  params: webhookParams,
  body: Type.Object(
    {
      url: Type.Optional(url),
      types,
      providerReference,
      ignoreActors,
      state: Type.Optional(oneOf(states)),
      after: Type.Optional(line({ maxLength: 64, description: 'ID of an event, `start` or `end`.' })),
    },
    { title: 'WebhookChange', examples: [{ state: 'ENABLED', after: 'end' }] },
  ),
  response: {
    200: wrapped('webhook', webhook, 'The updated webhook'),
    ...problems(['webhook.invalid', 'events.invalid', 'events.expired', 'webhook.not_found', 'provider.not_found'], {
      body: true,
    }),
  },
} as const;

const deleteWebhookSchema = {
  operationId: 'deleteWebhook',
  summary: 'Delete a webhook',
  description: 'No more events are sent. A request that is under way is not recalled.',
  tags: ['Webhooks'],
  params: webhookParams,
  response: { 204: Type.Null({ description: 'Deleted' }), ...problems(['webhook.not_found']) },
} as const;

const rotateSecretSchema = {
  operationId: 'rotateSecret',
  summary: 'Replace the secret of a webhook',
  description: 'For 24 hours every event is signed with the previous secret, too.',
  tags: ['Webhooks'],
  params: webhookParams,
  headers: idempotencyHeaders,
  response: {
    200: wrapped('webhook', webhook, 'The webhook with its new secret', withSecretExample),
    ...problems(['webhook.not_found'], { idempotencyKey: true }),
  },
} as const;

const test = Type.Object(
  { eventId: Type.String({ format: 'uuid' }) },
  { title: 'WebhookTest', examples: [{ eventId: '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e' }] },
);

const testWebhookSchema = {
  operationId: 'testWebhook',
  summary: 'Test a webhook',
  description:
    'Sends an event of the type `webhook.test`, once, also to a disabled webhook. What came of it is among the attempts, after 10 seconds at the latest.',
  tags: ['Webhooks'],
  params: webhookParams,
  headers: idempotencyHeaders,
  response: {
    202: wrapped('test', test, 'The event is being sent'),
    ...problems(['webhook.not_found', 'webhook.tests_limited'], { idempotencyKey: true }),
  },
} as const;

const attempt = Type.Object(
  {
    eventId: Type.String({ format: 'uuid' }),
    eventType: Type.String(),
    attemptedAt: instant('When it ended; UTC, `YYYY-MM-DDThh:mm:ssZ`.'),
    status: nullable<number>({
      type: 'integer',
      description: 'The HTTP status; null if there was no answer. 200 to 299 is success.',
    }),
    error: nullableString({
      description: 'Why there was none: `blocked`, `dns`, `connect`, `tls`, `timeout` or `protocol`.',
    }),
    durationMs: Type.Integer({ description: 'In milliseconds.' }),
  },
  {
    title: 'WebhookAttempt',
    examples: [
      {
        eventId: '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e',
        eventType: 'participation.created',
        attemptedAt: '2030-05-06T07:00:00Z',
        status: 503,
        error: null,
        durationMs: 120,
      },
    ],
  },
);

const listAttemptsSchema = {
  operationId: 'listAttempts',
  summary: 'List the attempts of a webhook',
  description: `What was sent in the last 7 days, newest first; ${defaultAttempts} unless \`limit\` is given.`,
  tags: ['Webhooks'],
  params: webhookParams,
  querystring: Type.Object(pageFields),
  response: {
    200: list(attempt, { description: 'The attempts', headers: linkHeader }),
    ...problems(['webhook.invalid', 'webhook.not_found']),
  },
} as const;
