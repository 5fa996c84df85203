import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { AddStaffRequest } from '@scheduling/contracts/identity/v1';
import { spokenLanguage } from '@scheduling/runtime';
import { type Static, Type } from 'typebox';
import type { Clients } from '../clients.ts';
import { alternative, given, givenFields, line, optionalLine, pathReference } from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import { apiInfoValue, list, problems, wrapped } from '../schemas.ts';
import { providerParams } from './path-parameters.ts';
import { personFields, spokenLanguageTags, user } from './users.ts';

/** The users with access to a provider (interface 4.7). */
export function staffRoutes({ identity }: Clients): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/provider/:providerRef/staff', { schema: listStaffSchema, config: needsRead }, async (request) => {
      const { users } = await identity.listStaff(request.params);
      return users;
    });

    app.post('/provider/:providerRef/staff', { schema: addStaffSchema, config: needsAll }, async (request, reply) => {
      const { user, added } = await identity.addStaff(request.params, { member: memberOf(request.body) });
      return reply.code(added ? 201 : 200).send({ 'api-info': apiInfoValue, user: user! });
    });

    app.delete(
      '/provider/:providerRef/staff/:userRef',
      { schema: removeStaffSchema, config: needsAll },
      async (request, reply) => {
        await identity.removeStaff(request.params);
        return reply.code(204).send(null);
      },
    );
  };
}

function memberOf(body: Static<typeof existingUser> | Static<typeof invitation>): AddStaffRequest['member'] {
  if (isExistingUser(body)) return { $case: 'userReference', value: body.reference };
  const person = givenFields(invitation, body);
  return { $case: 'invitation', value: { ...person, language: spokenLanguage(person.language) } };
}

function isExistingUser(
  body: Static<typeof existingUser> | Static<typeof invitation>,
): body is Static<typeof existingUser> {
  return 'reference' in body && given(body.reference) !== undefined;
}

const existingUser = Type.Object(
  { reference: line({ description: 'Reference of an existing user.' }) },
  { title: 'ExistingUser' },
);

const invitationLanguage = `Language tag of the person’s mails. One that the service does not speak (${spokenLanguageTags}) is ignored: then the CRM’s language counts.`;
const invitationExample = {
  email: 'carl.beispiel@acme.example',
  username: 'carl.beispiel',
  lastName: 'Beispiel',
  firstName: 'Carl',
};

const invitation = Type.Object(
  {
    ...personFields,
    language: Type.Optional(optionalLine({ format: 'language-tag', description: invitationLanguage })),
  },
  {
    title: 'Invitation',
    description:
      'Invites a person as a user without a reference. Creating a user with the same e-mail address later gives that user its reference.',
  },
);

const listStaffSchema = {
  operationId: 'listStaff',
  summary: 'List the staff of a provider',
  description: 'All users with access to the provider, the owner first.',
  tags: ['Staff'],
  params: providerParams,
  response: { 200: list(user, { description: 'The staff' }), ...problems(['provider.not_found']) },
} as const;

const addStaffSchema = {
  operationId: 'addStaff',
  summary: 'Add a member of staff',
  description: 'Gives an existing user access, or invites a person. Adding the same member again has no effect.',
  tags: ['Staff'],
  params: providerParams,
  headers: idempotencyHeaders,
  body: alternative('reference', existingUser, invitation, {
    examples: [{ reference: '4711@acme' }, invitationExample],
  }),
  response: {
    200: wrapped('user', user, 'The user already had access'),
    201: wrapped('user', user, 'Added', { ...invitationExample, reference: null, phone: null, mobile: null }),
    ...problems(['provider.not_found', 'user.not_found', 'user.email_taken', 'user.username_taken'], {
      body: true,
      idempotencyKey: true,
    }),
  },
} as const;

const removeStaffSchema = {
  operationId: 'removeStaff',
  summary: 'Remove a member of staff',
  description: 'The owner always has access and cannot be removed.',
  tags: ['Staff'],
  params: Type.Object({ ...providerParams.properties, userRef: pathReference('Reference of the user.') }),
  response: {
    204: Type.Null({ description: 'Removed' }),
    ...problems(['provider.not_found', 'staff.not_found', 'staff.owner'], { body: true }),
  },
} as const;
