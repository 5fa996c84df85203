import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { User } from '@scheduling/contracts/identity/v1';
import { Type } from 'typebox';
import type { Clients } from '../clients.ts';
import { clearing, email, line, optionalLine, pathReference } from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { apiInfoValue, nullableString, problems, wrapped } from '../schemas.ts';

/** interface 4.5. */
export function userRoutes({ identity }: Clients): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/user', { schema: createUserSchema }, async (request, reply) => {
      const { body } = request;
      const { user, created } = await identity.createUser({
        crmId: request.params.crmId,
        reference: body.reference,
        email: body.email,
        username: body.username,
        lastName: body.lastName,
        firstName: clearing(body.firstName),
        phone: clearing(body.phone),
        mobile: clearing(body.mobile),
        language: spokenLanguage(request.cookies['SERVICE_LANG']),
      });
      return reply.code(created ? 201 : 200).send({ 'api-info': apiInfoValue, user: presentUser(user!) });
    });

    app.get('/user/:reference', { schema: getUserSchema }, async (request) => {
      const { user } = await identity.getUser(request.params);
      return { 'api-info': apiInfoValue, user: presentUser(user!) };
    });
  };
}

export function presentUser(user: User) {
  return {
    reference: user.reference ?? null,
    email: user.email,
    username: user.username,
    lastName: user.lastName,
    firstName: user.firstName ?? null,
    phone: user.phone ?? null,
    mobile: user.mobile ?? null,
  };
}

/** The languages of the service's mails and pages. */
export const spokenLanguages = ['de', 'en'] as const;

/** The language of a tag such as `de-AT`, undefined when the service does not speak it. */
export function spokenLanguage(tag: string | undefined): (typeof spokenLanguages)[number] | undefined {
  const primary = tag?.split('-', 1)[0]?.toLowerCase();
  return spokenLanguages.find((language) => language === primary);
}

/** interface 2.1 without the reference: the person whom staff are invited as, too. */
export const personFields = {
  email: email(),
  username: line({ format: 'username', description: 'Login name. The characters `/ ? : & # \\` are forbidden.' }),
  lastName: line(),
  firstName: Type.Optional(optionalLine()),
  phone: Type.Optional(optionalLine({ description: 'Landline number.' })),
  mobile: Type.Optional(optionalLine()),
};

const userExample = {
  reference: '4711@acme',
  email: 'berta.beispiel@acme.example',
  username: 'berta.beispiel',
  lastName: 'Beispiel',
  firstName: 'Berta',
  phone: '+49 30 1234567',
  mobile: null,
};

export const user = Type.Object(
  {
    reference: nullableString({ description: 'Null for an invited user that no CRM has given a reference yet.' }),
    email: Type.String(),
    username: Type.String(),
    lastName: Type.String(),
    firstName: nullableString(),
    phone: nullableString(),
    mobile: nullableString(),
  },
  { title: 'User', examples: [userExample] },
);

const crmParams = Type.Object({ crmId: pathReference('ID of the calling CRM.') });

const createUserSchema = {
  operationId: 'createUser',
  summary: 'Create a user',
  description:
    'Creates a user, or finds an existing one. A known `reference` updates phone, mobile and names: absent fields keep their value, ' +
    'null clears. An e-mail address that another user has is replaced by a derived one. The cookie `SERVICE_LANG` (`de`, `en`) sets ' +
    'the language of a new user.',
  tags: ['Users'],
  params: crmParams,
  headers: idempotencyHeaders,
  body: Type.Object(
    { reference: line({ format: 'user-reference', description: 'Unique, `uniqueId@platformName`.' }), ...personFields },
    { title: 'NewUser', examples: [userExample] },
  ),
  response: {
    200: wrapped('user', user, 'The user existed'),
    201: wrapped('user', user, 'Created'),
    ...problems({ 400: ['user.invalid'], 409: ['user.email_taken', 'user.username_taken'] }, { body: true, idempotencyKey: true }),
  },
} as const;

const getUserSchema = {
  operationId: 'getUser',
  summary: 'Get a user',
  tags: ['Users'],
  params: Type.Object({ crmId: pathReference('ID of the calling CRM.'), reference: pathReference('Reference of the user.') }),
  response: { 200: wrapped('user', user, 'The user'), ...problems({ 404: ['user.not_found'] }) },
} as const;
