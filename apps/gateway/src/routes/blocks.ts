import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { Admission } from '../admission.ts';
import type { Clients } from '../clients.ts';
import { dateTime, givenFields, maxNoteLength, optionalReference, optionalText, pathReference } from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import { linkHeader, pageFields } from '../paging.ts';
import { instant, list, nullableString, problems, wrappedTogether } from '../schemas.ts';
import { conflicts } from './conflicts.ts';
import { listConfig, sendList } from './json-list.ts';
import { jsonType } from './json-stream.ts';
import { resourceParams } from './path-parameters.ts';
import { wrapJson } from './wrap-json.ts';

/** interface 15: periods in which nothing of a resource can be booked. */
export function blockRoutes({ blocks }: Clients, publicUrl: string, admission: Admission): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/provider/:providerRef/resource/:resourceRef/blocks',
      { schema: createBlockSchema, config: needsAll },
      async ({ params, body }, reply) => {
        const answer = await blocks.createBlock(params, givenFields(createBlockSchema.body, body));
        return reply
          .code(answer.created ? 201 : 200)
          .type(jsonType)
          .send(wrapJson('block', answer.json, { conflicts: answer.conflicts! }));
      },
    );

    app.get(
      '/provider/:providerRef/resource/:resourceRef/blocks',
      { schema: listBlocksSchema, config: { ...needsRead, ...listConfig } },
      async (request, reply) => {
        const { params, query } = request;
        const { from, to, limit, cursor } = query;
        return sendList({ request, reply, admission }, publicUrl, (signal) =>
          blocks.listBlocks(params, { from, to, limit, cursor }, signal),
        );
      },
    );

    app.delete(
      '/provider/:providerRef/resource/:resourceRef/blocks/:blockRef',
      { schema: deleteBlockSchema, config: needsAll },
      async ({ params }, reply) => {
        await blocks.deleteBlock(params);
        return reply.code(204).send(null);
      },
    );
  };
}

const blockExample = {
  reference: 'block-1@acme',
  resourceReference: 'room-1@acme',
  start: '2030-05-13T10:00:00Z',
  end: '2030-05-14T16:00:00Z',
  note: 'Training',
};

const block = Type.Object(
  {
    reference: Type.String(),
    resourceReference: Type.String(),
    start: instant(),
    end: instant(),
    note: nullableString({ description: 'For the CRM; customers never see it.' }),
  },
  { title: 'Block', examples: [blockExample] },
);

const createBlockSchema = {
  operationId: 'createBlock',
  summary: 'Block a period of a resource',
  description:
    'Once the response has arrived, no booking can start in the period any more, neither in a timeslot nor in an open appointment. What has been booked stays: `conflicts` are the active ' +
    'appointments that overlap the period. The CRM can still create appointments and participations in it. If the `reference` exists with the same content, the existing block is returned.',
  tags: ['Blocks'],
  params: resourceParams,
  headers: idempotencyHeaders,
  body: Type.Object(
    {
      reference: Type.Optional(optionalReference({ description: 'Unique; generated if absent.' })),
      start: dateTime('A slot may end then.'),
      end: dateTime('After `start`.'),
      note: Type.Optional(
        optionalText({ maxLength: maxNoteLength, description: 'For the CRM; customers never see it.' }),
      ),
    },
    {
      title: 'NewBlock',
      examples: [{ reference: 'block-1@acme', start: '2030-05-13T12:00', end: '2030-05-14T18:00', note: 'Training' }],
    },
  ),
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(wrappedTogether({ block, conflicts }, 'The block already exists')),
    201: Type.Unsafe<unknown>(wrappedTogether({ block, conflicts }, 'Created')),
    ...problems(
      ['block.invalid', 'provider.not_found', 'block.not_found', 'block.reference_taken', 'block.limit_reached'],
      { body: true, idempotencyKey: true },
    ),
  },
} as const;

const listBlocksSchema = {
  operationId: 'listBlocks',
  summary: 'List the blocks of a resource',
  description: 'Blocks that overlap the period, ordered by start. Returns all of them unless `limit` is given.',
  tags: ['Blocks'],
  params: resourceParams,
  querystring: Type.Object({ from: dateTime(), to: dateTime(), ...pageFields }),
  response: {
    // Without a type, because it is sent as a stream.
    200: Type.Unsafe<unknown>(list(block, { description: 'The blocks', headers: linkHeader })),
    ...problems(['block.invalid', 'provider.not_found']),
  },
} as const;

const deleteBlockSchema = {
  operationId: 'deleteBlock',
  summary: 'Delete a block',
  description: 'The period can be booked again at once.',
  tags: ['Blocks'],
  params: Type.Object({ ...resourceParams.properties, blockRef: pathReference('Reference of the block.') }),
  response: {
    204: Type.Null({ description: 'Deleted' }),
    ...problems(['provider.not_found', 'block.not_found'], { body: true }),
  },
} as const;
