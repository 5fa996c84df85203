import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { enumNames } from '@scheduling/rpc';
import { type Static, Type } from 'typebox';
import type { Admission } from '../admission.ts';
import type { Clients } from '../clients.ts';
import {
  dateTime,
  flag,
  given,
  givenFields,
  line,
  oneOf,
  optionalText,
  pathReference,
  queryLine,
  reference,
} from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsBook, needsRead } from '../key-scopes.ts';
import { metadata, metadataFilter, metadataInput, toMetadata, toMetadataChange } from '../metadata.ts';
import { linkHeader, pageFields } from '../paging.ts';
import { invalidRequest } from '../problem.ts';
import { instant, list, nullable, nullableString, problems, wrapped } from '../schemas.ts';
import { listConfig, sendList } from './json-list.ts';
import { jsonType } from './json-stream.ts';
import { providerParams } from './path-parameters.ts';
import { wrapJson } from './wrap-json.ts';

/** interface 4.3. */
export function participationRoutes(
  { participations }: Clients,
  publicUrl: string,
  admission: Admission,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/provider/:providerRef/participations',
      { schema: listParticipationsSchema, config: { ...needsRead, ...listConfig } },
      async (request, reply) => {
        const { params, query } = request;
        const filter = {
          customerReference: given(query.customerRef),
          state: query.state && ParticipationState[query.state],
          from: given(query.from),
          to: given(query.to),
          changedSince: given(query.changedSince),
          metadata: toMetadata(query.metadata),
          noShow: query.noShow,
          limit: query.limit,
          cursor: query.cursor,
        };
        return sendList({ request, reply, admission }, publicUrl, (signal) =>
          participations.listParticipations(params, filter, signal),
        );
      },
    );

    app.get(
      '/provider/:providerRef/participations/:participationRef',
      { schema: getParticipationSchema, config: needsRead },
      async ({ params }, reply) => {
        const { json } = await participations.getParticipation(params);
        return reply.type(jsonType).send(wrapJson('participation', json));
      },
    );

    app.post(
      '/provider/:providerRef/participations',
      { schema: createParticipationSchema, config: needsBook },
      async (request, reply) => {
        const { params, body, query } = request;
        const { json, created } = await participations.createParticipation(params, {
          ...givenFields(createParticipationSchema.body, body),
          ...givenFields(createParticipationSchema.querystring, query),
          state: ParticipationState[body.state],
          metadata: toMetadata(body.metadata),
        });
        return reply
          .code(created ? 201 : 200)
          .type(jsonType)
          .send(wrapJson('participation', json));
      },
    );

    app.post(
      '/provider/:providerRef/participations/:participationRef',
      { schema: updateParticipationSchema, config: needsBook },
      async (request, reply) => {
        const { params, body, query } = request;
        requireChange(body);
        const { json } = await participations.updateParticipation(params, {
          ...givenFields(updateParticipationSchema.body, body),
          ...givenFields(updateParticipationSchema.querystring, query),
          state: body.state === undefined ? ParticipationState.UNSPECIFIED : ParticipationState[body.state],
          metadata: toMetadataChange(body.metadata),
        });
        return reply.type(jsonType).send(wrapJson('participation', json));
      },
    );
  };
}

/** Only the mail about a state has a message. */
function requireChange({
  state,
  metadata,
  noShow,
  message: text,
}: Static<typeof updateParticipationSchema.body>): void {
  if (state !== undefined) return;
  if (metadata === undefined && noShow === undefined)
    throw invalidRequest([{ pointer: '/state', detail: 'is required without metadata and noShow' }]);
  if (given(text) !== undefined)
    throw invalidRequest([{ pointer: '/message', detail: 'can be given only together with state' }]);
}

/** interface 3.1. */
export const participationStates = enumNames(ParticipationState);

export const participationExample = {
  reference: 'b-1@acme',
  appointmentReference: 'a-1@acme',
  customerReference: 'c-1@acme',
  email: 'ada.kundin@customers.example',
  mobile: '+49 170 1234567',
  name: 'Ada Kundin',
  note: null,
  state: 'BOOKED',
  messages: ['See you then!'],
  metadata: { channel: 'phone' },
  noShow: false,
};

export const canceledParticipationExample = {
  ...participationExample,
  state: 'CANCELED',
  messages: ['See you then!', 'We are ill, sorry.'],
};

/** Both on its own and within an appointment (interface 2.6). */
export const participation = Type.Object(
  {
    reference: Type.String(),
    appointmentReference: nullableString({ description: 'Reference of the appointment.' }),
    customerReference: nullableString({
      description: 'Reference of the customer; null for a participant without a customer record.',
    }),
    email: nullableString(),
    mobile: nullableString(),
    name: Type.String(),
    note: nullableString(),
    state: oneOf(participationStates),
    messages: nullable<string[]>({
      type: 'array',
      items: { type: 'string' },
      description:
        'Messages sent with the participation, also by the person on cancelling by their link, oldest first.',
    }),
    metadata,
    noShow: Type.Boolean({ description: 'Whether the CRM has noted that the person did not come.' }),
    expiresAt: Type.Optional(instant('When the reservation expires; only present in the state `RESERVED`.')),
    attendanceConfirmedAt: Type.Optional(
      instant('When the person said, by their link, that they will be there; only present once they have.'),
    ),
  },
  { title: 'Participation', examples: [participationExample] },
);

const ignoreCapacity = flag(false, 'Create the participation even if all seats are taken.');
export const sendMails = flag(true, 'Send the e-mail for this change of state.');
const message = Type.Optional(optionalText({ description: 'Text for the e-mail to the customer.' }));
export const participationMetadata = metadataInput('What the CRM notes of the participation.');

/** The path parameters of every operation on one participation. */
export const participationParams = Type.Object({
  ...providerParams.properties,
  participationRef: pathReference('Reference of the participation.'),
});

const listParticipationsSchema = {
  operationId: 'listParticipations',
  summary: 'List the participations of a provider',
  description:
    'Participations in any state, ordered by the start of the appointment, without expired reservations. Returns all of them unless `limit` is given.',
  tags: ['Participations'],
  params: providerParams,
  querystring: Type.Object({
    customerRef: queryLine('Only participations of this customer.'),
    state: Type.Optional(oneOf(participationStates, { description: 'Only participations in this state.' })),
    from: Type.Optional(dateTime('Only participations whose appointment ends after it.')),
    to: Type.Optional(dateTime('Only participations whose appointment starts before it.')),
    changedSince: Type.Optional(dateTime('Only participations that were created or changed at or after it.')),
    metadata: metadataFilter('participations'),
    noShow: Type.Optional(
      Type.Boolean({ description: 'Only participations whose person did not come, or only the others.' }),
    ),
    ...pageFields,
  }),
  response: {
    // Without a type, because it is sent as a stream.
    200: Type.Unsafe<unknown>(list(participation, { description: 'The participations', headers: linkHeader })),
    ...problems(['participation.invalid', 'provider.not_found']),
  },
} as const;

const getParticipationSchema = {
  operationId: 'getParticipation',
  summary: 'Get a participation',
  description: 'A participation with its current state, its customer and its messages.',
  tags: ['Participations'],
  params: participationParams,
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(wrapped('participation', participation, 'The participation')),
    ...problems(['provider.not_found', 'participation.not_found']),
  },
} as const;

const createParticipationSchema = {
  operationId: 'createParticipation',
  summary: 'Create a participation',
  description:
    '`BOOKED` and `RESERVED` take a seat; a reservation expires after 3 minutes. If the `reference` exists, the existing participation moves to the given state.',
  tags: ['Participations'],
  params: providerParams,
  headers: idempotencyHeaders,
  querystring: Type.Object({
    ignoreCapacity,
    onDuplicateRaise: flag(false, 'Treat an existing reference as an error.'),
    sendMails,
  }),
  body: Type.Object(
    {
      reference: reference({ description: 'Unique.' }),
      appointmentReference: line(),
      customerReference: line(),
      state: oneOf(participationStates),
      message,
      metadata: participationMetadata,
    },
    {
      title: 'NewParticipation',
      examples: [
        {
          reference: 'b-1@acme',
          appointmentReference: 'a-1@acme',
          customerReference: 'c-1@acme',
          state: 'BOOKED',
          message: 'See you then!',
          metadata: { channel: 'phone' },
        },
      ],
    },
  ),
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(wrapped('participation', participation, 'The participation already exists')),
    201: Type.Unsafe<unknown>(wrapped('participation', participation, 'Created')),
    ...problems(
      [
        'participation.invalid',
        'participation.state_unsupported',
        'provider.not_found',
        'appointment.not_found',
        'customer.not_found',
        'participation.not_found',
        'participation.capacity_exhausted',
        'participation.reference_taken',
        'participation.move_not_allowed',
        'appointment.cancelled',
      ],
      { body: true, idempotencyKey: true },
    ),
  },
} as const;

const updateParticipationSchema = {
  operationId: 'updateParticipation',
  summary: 'Change the state of a participation, its metadata, or whether its person did not come',
  description:
    'Only certain transitions are allowed: others are rejected with 409, and `RESERVED` and `REQUESTED` with 400. Moving it to its current state has no effect. ' +
    'Absent fields keep their value, and at least one of `state`, `metadata` and `noShow` is required. Only a change of the state has an e-mail, so `message` needs a `state`.',
  tags: ['Participations'],
  params: participationParams,
  headers: idempotencyHeaders,
  querystring: Type.Object({ ignoreCapacity, sendMails }),
  body: Type.Object(
    {
      state: Type.Optional(oneOf(participationStates)),
      message,
      metadata: metadataInput('Replaces all pairs; `null` clears them.'),
      noShow: Type.Optional(
        Type.Boolean({
          description:
            'Whether the person did not come: only of a `BOOKED` participation, from the start of its appointment on. `false` takes it back.',
        }),
      ),
    },
    { title: 'ParticipationChange', examples: [{ state: 'CANCELED', message: 'We are ill, sorry.' }] },
  ),
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(
      wrapped('participation', participation, 'The updated participation', canceledParticipationExample),
    ),
    ...problems(
      [
        'participation.invalid',
        'participation.state_unsupported',
        'provider.not_found',
        'participation.not_found',
        'participation.capacity_exhausted',
        'participation.move_not_allowed',
        'appointment.cancelled',
        'booking.customer_missing',
        'participation.not_booked',
        'participation.not_started',
        'participation.anonymous',
      ],
      { body: true, idempotencyKey: true },
    ),
  },
} as const;
