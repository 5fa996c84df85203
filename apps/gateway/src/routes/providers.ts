import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Provider } from '@scheduling/contracts/identity/v1';
import { branches } from '@scheduling/runtime';
import { Type } from 'typebox';
import type { Admission } from '../admission.ts';
import type { Clients } from '../clients.ts';
import {
  clearing,
  givenFields,
  line,
  maxLongTextLength,
  optionalEmail,
  optionalLine,
  optionalText,
  pathReference,
  reference,
} from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import { linkHeader, pageFields } from '../paging.ts';
import { apiInfoValue, list, nullableString, problems, wrapped } from '../schemas.ts';
import { listConfig, openObjects, sendList } from './json-list.ts';
import { crmParams } from './path-parameters.ts';

/** interface 4.7. */
export function providerRoutes(
  { identity, providers }: Clients,
  publicUrl: string,
  admission: Admission,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/provider', { schema: createProviderSchema, config: needsAll }, async (request, reply) => {
      const { params, body } = request;
      const { provider, created } = await identity.createProvider(params, givenFields(createProviderSchema.body, body));
      return reply.code(created ? 201 : 200).send({ 'api-info': apiInfoValue, provider: presentProvider(provider!) });
    });

    app.get('/provider/:reference', { schema: getProviderSchema, config: needsRead }, async (request) => {
      const { crmId, reference } = request.params;
      const { provider } = await identity.getProvider({ crmId }, { key: { $case: 'reference', value: reference } });
      return { 'api-info': apiInfoValue, provider: presentProvider(provider!) };
    });

    app.get(
      '/providers',
      { schema: listProvidersSchema, config: { ...needsRead, ...listConfig } },
      async (request, reply) => {
        const call = (signal: AbortSignal) => identity.listProviders(request.params, request.query, signal);
        const open = openObjects(reply, elementSchema, call, (message) => message.providers.map(presentProvider));
        return sendList({ request, reply, admission }, publicUrl, open);
      },
    );

    app.put('/provider/:reference', { schema: updateProviderSchema, config: needsAll }, async (request) => {
      const { params, body } = request;
      const { provider } = await identity.updateProvider(params, {
        name: body.name,
        email: clearing(body.email),
        mobile: clearing(body.mobile),
        phone: clearing(body.phone),
        impressum: clearing(body.impressum),
        branch: clearing(body.branch),
        subbranch: clearing(body.subbranch),
        timeZone: clearing(body.timeZone),
      });
      return { 'api-info': apiInfoValue, provider: presentProvider(provider!) };
    });

    app.delete('/provider/:reference', { schema: deleteProviderSchema, config: needsAll }, async (request, reply) => {
      await providers.deleteProvider(request.params);
      return reply.code(204).send(null);
    });
  };
}

function presentProvider(provider: Provider) {
  return { ...provider, uuid: provider.id };
}

const providerExample = {
  reference: 'workshop@acme',
  ownerReference: '4711@acme',
  accountReference: 'main@acme',
  name: 'Beispiel Workshop',
  email: 'workshop@acme.example',
  branch: 'handyman',
  timeZone: 'Europe/Berlin',
};

const returnedExample = {
  ...providerExample,
  mobile: null,
  phone: null,
  impressum: null,
  subbranch: null,
  uuid: 'b2c9f7a4-6f0e-4d6e-9a35-1f4e0d2c8a77',
};

const provider = Type.Object(
  {
    reference: Type.String(),
    ownerReference: Type.String(),
    accountReference: Type.String(),
    name: Type.String(),
    email: nullableString(),
    mobile: nullableString(),
    phone: nullableString(),
    impressum: nullableString(),
    branch: nullableString({ enum: [...branches, null] }),
    subbranch: nullableString(),
    timeZone: Type.String({ description: 'IANA time zone in which the provider’s local date-times are interpreted.' }),
    uuid: Type.String({ format: 'uuid' }),
  },
  {
    title: 'Provider',
    examples: [returnedExample],
  },
);

const optionalFields = {
  email: Type.Optional(optionalEmail({ description: 'Contact e-mail address.' })),
  mobile: Type.Optional(optionalLine()),
  phone: Type.Optional(optionalLine()),
  // A legal notice may be several pages long.
  impressum: Type.Optional(optionalText({ maxLength: maxLongTextLength, description: 'Legal notice.' })),
  // Identity checks it, because an unknown one gets a 404 (interface 7, as for accounts).
  branch: Type.Optional(optionalLine({ description: 'Line of business.', documentedEnum: [...branches, null] })),
  subbranch: Type.Optional(optionalLine({ description: 'Free-form label.' })),
  timeZone: Type.Optional(optionalLine({ description: 'IANA time zone; the CRM’s if it is null.' })),
};

const elementSchema: Record<string, unknown> = { ...provider };

const createProviderSchema = {
  operationId: 'createProvider',
  summary: 'Create a provider',
  description: 'If the `reference` exists, returns the existing provider unchanged.',
  tags: ['Providers'],
  params: crmParams,
  headers: idempotencyHeaders,
  body: Type.Object(
    {
      reference: reference({ description: 'Unique.' }),
      ownerReference: line({ description: 'Reference of the owner, an existing user.' }),
      accountReference: line({ description: 'Reference of an existing account.' }),
      name: line({ description: 'Display name.' }),
      ...optionalFields,
    },
    { title: 'NewProvider', examples: [providerExample] },
  ),
  response: {
    200: wrapped('provider', provider, 'The provider already exists'),
    201: wrapped('provider', provider, 'Created'),
    ...problems(
      ['provider.time_zone_unknown', 'branch.unknown', 'provider.owner_not_found', 'provider.account_not_found'],
      { body: true, idempotencyKey: true },
    ),
  },
} as const;

const ownParams = Type.Object({ ...crmParams.properties, reference: pathReference('Reference of the provider.') });

const getProviderSchema = {
  operationId: 'getProvider',
  summary: 'Get a provider',
  description: 'The provider with this reference, with its time zone.',
  tags: ['Providers'],
  params: ownParams,
  response: { 200: wrapped('provider', provider, 'The provider'), ...problems(['provider.not_found']) },
} as const;

const listProvidersSchema = {
  operationId: 'listProviders',
  summary: 'List the providers',
  description: 'In order of creation. Returns all of them unless `limit` is given.',
  tags: ['Providers'],
  params: crmParams,
  querystring: Type.Object({
    ownerReference: Type.Optional(
      line({ description: 'Only providers of this user. The list is empty if there is no such user.' }),
    ),
    accountReference: Type.Optional(
      line({ description: 'Only providers of this account. The list is empty if there is no such account.' }),
    ),
    ...pageFields,
  }),
  response: {
    // Without a type, because it is sent as a stream.
    200: Type.Unsafe<unknown>(list(provider, { description: 'The providers', headers: linkHeader })),
    ...problems(['provider.invalid']),
  },
} as const;

const updateProviderSchema = {
  operationId: 'updateProvider',
  summary: 'Update a provider',
  description:
    'Absent fields keep their value; `null` clears an optional field. A new time zone applies to the date-times of later requests and to later ' +
    'e-mails; stored instants do not change. Owner, account and reference cannot be changed.',
  tags: ['Providers'],
  params: ownParams,
  body: Type.Object(
    { name: Type.Optional(line({ description: 'Display name.' })), ...optionalFields },
    { title: 'ProviderChange', examples: [{ phone: '+49 30 7654321', timeZone: 'Europe/Vienna', email: null }] },
  ),
  response: {
    200: wrapped('provider', provider, 'The updated provider', {
      ...returnedExample,
      phone: '+49 30 7654321',
      timeZone: 'Europe/Vienna',
      email: null,
    }),
    ...problems(['provider.time_zone_unknown', 'branch.unknown', 'provider.not_found'], { body: true }),
  },
} as const;

const deleteProviderSchema = {
  operationId: 'deleteProvider',
  summary: 'Delete a provider',
  description:
    'Deletes the provider with its booking rules, the access of its staff, and the webhooks that are for it alone. The reference can be used again. ' +
    'Rejected while it has customers, appointments, also past or cancelled ones, timeslots, opening hours, blocks, invitations or calendars.',
  tags: ['Providers'],
  params: ownParams,
  response: {
    204: Type.Null({ description: 'Deleted' }),
    ...problems(['provider.not_found', 'provider.in_use'], { body: true }),
  },
} as const;
