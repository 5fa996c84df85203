import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { type NewTimeslot, TimeslotState } from '@scheduling/contracts/calendar/v1';
import { enumNames } from '@scheduling/rpc';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { type Admission, weightOfMany } from '../admission.ts';
import type { Clients } from '../clients.ts';
import {
  dateTime,
  givenFields,
  oneOf,
  optionalDateTime,
  optionalReference,
  pathReference,
  reference,
} from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import { linkHeader, linkToNext, pageFields } from '../paging.ts';
import { instant, list, problems, wrapped } from '../schemas.ts';
import { maxListLength } from '../validation.ts';
import { appointment, appointmentExample } from './appointment-presentation.ts';
import { sendJson } from './json-stream.ts';
import { toLocation } from './locations.ts';
import { providerParams, resourceParams } from './path-parameters.ts';
import { changedTimeslotFields, newTimeslotFields, timeslotFields } from './timeslot-fields.ts';
import { partsFrom, type ReadPart, type TimeslotsPart, timeslotTexts } from './timeslot-texts.ts';
import { wrapperOf } from './wrap-json.ts';

/**
 * interface 4.1. The timeslots come from calendar in parts, because nobody knows how many appointments they contain.
 */
export function timeslotRoutes(
  { timeslots }: Clients,
  publicUrl: string,
  admission: Admission,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/provider/:providerRef/timeslots',
      { schema: createTimeslotsSchema, config: { ...needsAll, weigh: weightOfCreation, isStreamed } },
      async (request, reply) => {
        const { params, body } = request;
        const { created, ...first } = await timeslots.createTimeslots(params, {
          timeslots: body.timeslots.map(toNewTimeslot),
        });
        const parts = partsFrom(first, restOfAnswer(timeslots, params));
        void reply.code(created ? 201 : 200);
        return sendJson({ request, reply, admission }, timeslotTexts(parts, array), { admitted: true });
      },
    );

    app.get(
      '/provider/:providerRef/resource/:resourceRef/timeslots',
      { schema: listTimeslotsSchema, config: { ...needsRead, isStreamed } },
      async (request, reply) => {
        const { params, query } = request;
        const list = givenFields(listTimeslotsSchema.querystring, query);
        async function* listed(): AsyncGenerator<TimeslotsPart> {
          const readPart = (continuation?: string) => timeslots.listTimeslots(params, { ...list, continuation });
          const first = await readPart();
          if (first.nextCursor !== undefined)
            void reply.header('link', linkToNext(publicUrl, request.url, 'cursor', first.nextCursor));
          yield* partsFrom(first, readPart);
        }
        return sendJson({ request, reply, admission }, timeslotTexts(listed(), array));
      },
    );

    app.put(
      '/provider/:providerRef/timeslots/:timeslotRef',
      { schema: updateTimeslotSchema, config: { ...needsAll, isStreamed } },
      async (request, reply) => {
        const { params, body } = request;
        const { timeslot, continuation } = await timeslots.updateTimeslot(params, {
          ...givenFields(updateTimeslotSchema.body, body),
          state: body.state && TimeslotState[body.state],
        });
        const parts = partsFrom({ timeslots: [timeslot!], continuation }, restOfAnswer(timeslots, params));
        return sendJson({ request, reply, admission }, timeslotTexts(parts, wrapperOf('timeslot')), {
          admitted: true,
        });
      },
    );

    app.delete(
      '/provider/:providerRef/timeslots/:timeslotRef',
      { schema: deleteTimeslotSchema, config: needsAll },
      async (request, reply) => {
        await timeslots.deleteTimeslot(request.params);
        return reply.code(204).send(null);
      },
    );
  };
}

const array = { before: '[', after: ']' };

/** Nobody knows how many appointments they contain. */
const isStreamed = (): boolean => true;

function weightOfCreation({ body }: FastifyRequest): number {
  return weightOfMany((body as { timeslots: unknown[] }).timeslots.length);
}

function toNewTimeslot(body: Static<typeof newTimeslot>): NewTimeslot {
  return {
    ...givenFields(newTimeslot, body),
    address: toLocation(body.address),
    state: TimeslotState[body.state],
  };
}

/** Of the list only the continuation counts. */
function restOfAnswer(
  timeslots: Clients['timeslots'],
  { crmId, providerRef }: Static<typeof providerParams>,
): ReadPart {
  return (continuation) =>
    timeslots.listTimeslots({ crmId, providerRef }, { resourceReference: '', from: '', to: '', continuation });
}

/** interface 3.3. */
const timeslotStates = enumNames(TimeslotState);

const state = oneOf(timeslotStates, {
  description: '`CREATED` is hidden, `BOOKABLE` is publicly visible and bookable.',
});

const newTimeslot = Type.Object(
  {
    reference: Type.Optional(optionalReference({ description: 'Unique; generated if absent.' })),
    resourceReference: reference({ description: 'Reference of the resource it belongs to.' }),
    start: Type.Optional(optionalDateTime()),
    end: dateTime(),
    ...newTimeslotFields,
    state,
  },
  { title: 'NewTimeslot' },
);

const timeslotExample = {
  reference: 't-1@acme',
  resourceReference: 'room-1@acme',
  start: '2030-05-06T07:00:00Z',
  end: '2030-05-06T10:00:00Z',
  raster: 30,
  defaultCapacity: 1,
  defaultAcceptBookings: true,
  address: null,
  bufferBefore: 0,
  bufferAfter: 0,
  state: 'BOOKABLE',
  fromHours: false,
  appointments: [appointmentExample],
};

const timeslot = Type.Object(
  {
    reference: Type.String(),
    resourceReference: Type.String(),
    start: instant(),
    end: instant(),
    ...timeslotFields,
    state: oneOf(timeslotStates),
    fromHours: Type.Boolean({
      description: 'Whether it was made from opening hours, which remove or hide it when they change.',
    }),
    appointments: Type.Array(appointment, { description: 'Appointments of the resource that lie within the window.' }),
  },
  { title: 'Timeslot', examples: [timeslotExample] },
);

const timeslotParams = Type.Object({
  ...providerParams.properties,
  timeslotRef: pathReference('Reference of the timeslot.'),
});

const createTimeslotsSchema = {
  operationId: 'createTimeslots',
  summary: 'Create timeslots',
  description:
    'Creates all of them or none. If a `reference` exists with the same content, the existing timeslot is returned.',
  tags: ['Timeslots'],
  params: providerParams,
  headers: idempotencyHeaders,
  body: Type.Object(
    { timeslots: Type.Array(newTimeslot, { minItems: 1, maxItems: maxListLength }) },
    {
      title: 'NewTimeslots',
      examples: [
        {
          timeslots: [
            {
              reference: 't-1@acme',
              resourceReference: 'room-1@acme',
              start: '2030-05-06T09:00',
              end: '2030-05-06T12:00',
              raster: 30,
              defaultCapacity: 1,
              defaultAcceptBookings: true,
              state: 'BOOKABLE',
            },
          ],
        },
      ],
    },
  ),
  response: {
    // Without a type, because it is sent as a stream.
    201: Type.Unsafe<unknown>(list(timeslot, { description: 'In the order of the request' })),
    200: Type.Unsafe<unknown>(list(timeslot, { description: 'All of them already exist' })),
    ...problems(['timeslot.invalid', 'provider.not_found', 'timeslot.not_found', 'timeslot.reference_taken'], {
      body: true,
      idempotencyKey: true,
    }),
  },
} as const;

const listTimeslotsSchema = {
  operationId: 'listTimeslots',
  summary: 'List the timeslots of a resource',
  description: 'Timeslots that overlap the period, ordered by start, each with its appointments.',
  tags: ['Timeslots'],
  params: resourceParams,
  querystring: Type.Object({ from: dateTime(), to: dateTime(), ...pageFields }),
  response: {
    // Without a type, because it is sent as a stream.
    200: Type.Unsafe<unknown>(list(timeslot, { description: 'The timeslots', headers: linkHeader })),
    ...problems(['timeslot.invalid', 'provider.not_found']),
  },
} as const;

const updateTimeslotSchema = {
  operationId: 'updateTimeslot',
  summary: 'Update a timeslot',
  description:
    'Changes only the given fields. One that was made from opening hours is left alone by them from then on.',
  tags: ['Timeslots'],
  params: timeslotParams,
  body: Type.Object(
    {
      start: Type.Optional(dateTime()),
      end: Type.Optional(dateTime()),
      ...changedTimeslotFields,
      state: Type.Optional(state),
    },
    { title: 'TimeslotChange', examples: [{ end: '2030-05-06T13:00', state: 'BOOKABLE' }] },
  ),
  response: {
    // Without a type, because it is sent as a stream.
    200: Type.Unsafe<unknown>(
      wrapped('timeslot', timeslot, 'The updated timeslot', { ...timeslotExample, end: '2030-05-06T11:00:00Z' }),
    ),
    ...problems(['timeslot.invalid', 'provider.not_found', 'timeslot.not_found', 'timeslot.has_appointments'], {
      body: true,
    }),
  },
} as const;

const deleteTimeslotSchema = {
  operationId: 'deleteTimeslot',
  summary: 'Delete a timeslot',
  description: 'Its appointments must be cancelled or deleted first.',
  tags: ['Timeslots'],
  params: timeslotParams,
  response: {
    204: Type.Null({ description: 'Deleted' }),
    ...problems(['provider.not_found', 'timeslot.not_found', 'timeslot.has_appointments'], { body: true }),
  },
} as const;
