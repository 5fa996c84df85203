import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { AddressErasure } from '@scheduling/contracts/customer/v1';
import { Type } from 'typebox';
import type { Clients } from '../clients.ts';
import { email, pathReference } from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import { apiInfoValue, instant, nullable, presentInstant, problems, wrapped } from '../schemas.ts';
import { crmParams } from './path-parameters.ts';

/**
 * What follows a request: a search for the person in three services, the events of its erasure, and their
 * confirmations.
 */
const weightOfErasure = 8;

/** interface 4.8. */
export function erasureRoutes({ customers }: Clients): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/erasures',
      { schema: requestErasureSchema, config: { ...needsAll, weigh: () => weightOfErasure } },
      async ({ params, body }, reply) => {
        const { erasure } = await customers.eraseAddress(params, { email: body.email });
        return reply.code(202).send({ 'api-info': apiInfoValue, erasure: presentErasure(erasure!) });
      },
    );

    app.get('/erasures/:erasureId', { schema: getErasureSchema, config: needsRead }, async ({ params }) => {
      const { erasure } = await customers.getAddressErasure(params);
      return { 'api-info': apiInfoValue, erasure: presentErasure(erasure!) };
    });
  };
}

function presentErasure({ requestedAt, completedAt, ...erasure }: AddressErasure) {
  return {
    ...erasure,
    requestedAt: presentInstant(requestedAt),
    completedAt: completedAt && presentInstant(completedAt),
  };
}

const erasureExample = {
  id: '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e',
  requestedAt: '2030-05-06T07:00:00Z',
  completedAt: null,
  confirmed: [],
  awaiting: ['customer', 'calendar', 'notification'],
};

const erasure = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    requestedAt: instant(),
    completedAt: nullable<string>({
      type: 'string',
      format: 'date-time',
      description: 'When all services had confirmed; UTC, `YYYY-MM-DDThh:mm:ssZ`.',
    }),
    confirmed: Type.Array(Type.String(), { description: 'The services that no longer have any data of the person.' }),
    awaiting: Type.Array(Type.String(), { description: 'The services that have not confirmed this yet.' }),
  },
  { title: 'Erasure', examples: [erasureExample] },
);

const requestErasureSchema = {
  operationId: 'requestErasure',
  summary: 'Erase everybody with an e-mail address',
  description:
    'Deletes the customers of all providers of the CRM with this address, in any of its forms, with their future appointments; removes participants embedded in ' +
    'appointments in the same way; and deletes mails that wait. Users are not affected. Repeating the request is safe.',
  tags: ['Erasures'],
  params: crmParams,
  headers: idempotencyHeaders,
  body: Type.Object(
    {
      email: email({
        description:
          'The address. Its case does not matter, and its domain can be in Unicode or in A-labels (`xn--…`).',
      }),
    },
    { title: 'NewErasure', examples: [{ email: 'grace@customers.example' }] },
  ),
  response: {
    202: wrapped('erasure', erasure, 'Requested', erasureExample),
    ...problems([], { body: true, idempotencyKey: true }),
  },
} as const;

const getErasureSchema = {
  operationId: 'getErasure',
  summary: 'Get an erasure',
  description: 'Which services have confirmed that they no longer have any data of the person.',
  tags: ['Erasures'],
  params: Type.Object({ ...crmParams.properties, erasureId: pathReference('ID of the erasure.') }),
  response: {
    200: wrapped('erasure', erasure, 'The erasure', {
      ...erasureExample,
      confirmed: ['customer', 'calendar'],
      awaiting: ['notification'],
    }),
    ...problems(['erasure.not_found']),
  },
} as const;
