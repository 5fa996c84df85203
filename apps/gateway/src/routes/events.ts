import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { crmEventTypes } from '@scheduling/events';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { weightOfMany } from '../admission.ts';
import type { Clients } from '../clients.ts';
import { given, integer, queryLine } from '../fields.ts';
import { needsRead } from '../key-scopes.ts';
import { linkToNext } from '../paging.ts';
import { instant, list, nullable, nullableString, problems } from '../schemas.ts';
import { jsonType } from './json-stream.ts';
import { crmParams } from './path-parameters.ts';

const defaultLimit = 100;

/** interface 6.1. */
export function eventRoutes({ events }: Clients, publicUrl: string): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/events',
      { schema: listEventsSchema, config: { ...needsRead, weigh } },
      async ({ params, query, url }, reply) => {
        const { json, nextAfter } = await events.listEvents(params, {
          after: query.after ?? 'start',
          limit: query.limit ?? defaultLimit,
          types: given(query.types)?.split(',') ?? [],
          providerReference: given(query.providerRef),
        });
        void reply.header('link', linkToNext(publicUrl, url, 'after', nextAfter));
        return reply.type(jsonType).send(`[${String(json)}]`);
      },
    );
  };
}

function weigh({ query }: FastifyRequest): number {
  return weightOfMany((query as { limit?: number }).limit ?? defaultLimit);
}

const eventExample = {
  id: '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e',
  type: 'participation.created',
  timestamp: '2030-05-06T07:00:00.123Z',
  actor: 'crm:c3Vu',
  providerReference: 'studio@acme',
  data: {
    id: '0197c4ce-5a3d-7b02-8f6e-4c1d2e3f4a5b',
    reference: 'b-1@acme',
    appointmentId: '0197c4ce-5a3d-71c8-b3a0-95d1e0a7c2f4',
    appointmentReference: 'a-1@acme',
    previousAppointmentId: null,
    customerReference: 'c-1@acme',
    state: 'BOOKED',
    previousState: null,
    version: 1,
    capacity: null,
    ignoreCapacity: false,
    start: '2030-05-13T07:00:00Z',
    expiresAt: null,
  },
};

/** interface 6.2. */
const eventTypes = Object.entries(crmEventTypes);
const namesOfTypes = eventTypes.map(([type]) => `\`${type}\``).join(', ');

const eventData = Type.Object(
  {
    id: Type.String({
      format: 'uuid',
      description:
        'Of the participation, appointment or customer: the same in all its events. Of `mail.failed`: of what the mail is about.',
    }),
    reference: nullableString({
      description: 'Its current reference; null if it no longer exists, or if its person was erased.',
    }),
    appointmentId: nullable<string>({
      type: 'string',
      format: 'uuid',
      description: 'Of the appointment of a participation, after the event: the `data.id` of its events.',
    }),
    appointmentReference: nullableString({ description: 'Of that appointment, as it is now.' }),
    previousAppointmentId: nullable<string>({
      type: 'string',
      format: 'uuid',
      description: 'Of `participation.moved`: the appointment that it left.',
    }),
    customerReference: nullableString({
      description: 'Of the customer of a participation, or the recipient of a mail, as it is now.',
    }),
    state: nullableString({ description: 'After the event; null if there is none.' }),
    previousState: nullableString({ description: 'Before the event; null if there was none.' }),
    version: nullable<number>({
      type: 'integer',
      description: 'Ascends in the events with the same `data.id`; null in `mail.failed`.',
    }),
    capacity: nullable<number>({
      type: 'integer',
      description: 'Of an appointment, after the event; null if it was deleted.',
    }),
    ignoreCapacity: nullable<boolean>({
      type: 'boolean',
      description: 'Of a participation: whether its seat is given even if all are taken.',
    }),
    start: nullable<string>({
      type: 'string',
      format: 'date-time',
      description: 'When the appointment starts, as it is now.',
    }),
    expiresAt: nullable<string>({ type: 'string', format: 'date-time', description: 'When the reservation expires.' }),
  },
  { title: 'EventData' },
);

const event = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Unique: an event that arrives again is the same one.' }),
    type: Type.String({
      description: `There may be new ones.\n\n${eventTypes.map(([type, when]) => `- \`${type}\`: ${when}`).join('\n')}`,
    }),
    timestamp: instant('When it happened; UTC, `YYYY-MM-DDThh:mm:ss.sssZ`.'),
    actor: Type.String({
      description: '`crm:` and the prefix of the API key, `person` for somebody with a link, or `service`.',
    }),
    providerReference: nullableString(),
    data: eventData,
  },
  { title: 'Event', examples: [eventExample] },
);

const listEventsSchema = {
  operationId: 'listEvents',
  summary: 'List events',
  description:
    'What happened in the CRM in the last 30 days, oldest first. The `Link` header always names the next page: follow it. If it is the URL that was ' +
    'just requested, nothing new has happened yet; request it again a few seconds later.',
  tags: ['Events'],
  params: crmParams,
  querystring: Type.Object({
    after: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        format: 'line',
        description:
          'Only events after the one with this id. `start`: from the oldest one on; `end`: only from now on.',
      }),
    ),
    limit: Type.Optional(
      integer({ minimum: 1, maximum: 1_000, description: `Maximum number of events; ${defaultLimit} by default.` }),
    ),
    types: queryLine(
      `Only events of these types, separated by commas: ${namesOfTypes}. A page may then be empty although more follow.`,
    ),
    providerRef: queryLine('Only events of this provider. A page may then be empty although more follow.'),
  }),
  response: {
    // Not compiled, because the service has written the JSON.
    200: Type.Unsafe<unknown>(
      list(event, {
        description: 'The events',
        headers: { Link: { type: 'string', description: 'The URL of the next page, `<…>; rel="next"`.' } },
      }),
    ),
    ...problems(['events.invalid', 'events.expired', 'provider.not_found']),
  },
} as const;
