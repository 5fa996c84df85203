import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { UserVerification } from '@scheduling/contracts/identity/v1';
import { spokenLanguage, spokenLanguages } from '@scheduling/runtime';
import { Type } from 'typebox';
import type { Admission } from '../admission.ts';
import type { Clients } from '../clients.ts';
import { clearing, email, line, optionalLine, pathReference } from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import { linkHeader, pageFields } from '../paging.ts';
import { apiInfoValue, list, nullable, nullableString, presentInstant, problems, wrapped } from '../schemas.ts';
import { listConfig, openObjects, sendList } from './json-list.ts';
import { crmParams } from './path-parameters.ts';

/** interface 4.5. */
export function userRoutes({ identity }: Clients, publicUrl: string, admission: Admission): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/user', { schema: createUserSchema, config: needsAll }, async (request, reply) => {
      const { params, body } = request;
      const { user, created } = await identity.createUser(params, {
        reference: body.reference,
        email: body.email,
        username: body.username,
        lastName: body.lastName,
        firstName: clearing(body.firstName),
        phone: clearing(body.phone),
        mobile: clearing(body.mobile),
        language: spokenLanguage(request.cookies['SERVICE_LANG']),
      });
      return reply.code(created ? 201 : 200).send({ 'api-info': apiInfoValue, user: user! });
    });

    app.get('/user/:reference', { schema: getUserSchema, config: needsRead }, async (request) => {
      const { user } = await identity.getUser(request.params);
      return { 'api-info': apiInfoValue, user: user! };
    });

    app.get('/users', { schema: listUsersSchema, config: { ...needsRead, ...listConfig } }, async (request, reply) => {
      const call = (signal: AbortSignal) => identity.listUsers(request.params, request.query, signal);
      const open = openObjects(reply, elementSchema, call, (message) => message.users);
      return sendList({ request, reply, admission }, publicUrl, open);
    });

    app.put('/user/:reference', { schema: updateUserSchema, config: needsAll }, async (request) => {
      const { params, body } = request;
      const { user } = await identity.updateUser(params, {
        email: body.email,
        username: body.username,
        lastName: body.lastName,
        firstName: clearing(body.firstName),
        phone: clearing(body.phone),
        mobile: clearing(body.mobile),
      });
      return { 'api-info': apiInfoValue, user: user! };
    });

    app.delete('/user/:reference', { schema: deleteUserSchema, config: needsAll }, async (request, reply) => {
      await identity.deleteUser(request.params);
      return reply.code(204).send(null);
    });

    app.post(
      '/user/:reference/verification',
      { schema: requestVerificationSchema, config: needsAll },
      async (request, reply) => {
        await identity.requestVerification(request.params);
        return reply.code(204).send(null);
      },
    );

    app.get(
      '/user/:reference/verification',
      { schema: getUserVerificationSchema, config: needsRead },
      async (request) => {
        const { verification } = await identity.getUserVerification(request.params);
        return { 'api-info': apiInfoValue, verification: presentVerification(verification!) };
      },
    );
  };
}

function presentVerification({ sentAt, expiresAt, ...verification }: UserVerification) {
  return {
    ...verification,
    sentAt: sentAt && presentInstant(sentAt),
    expiresAt: expiresAt && presentInstant(expiresAt),
  };
}

/** For descriptions: `` `de`, `en` ``. */
export const spokenLanguageTags = spokenLanguages.map((tag) => `\`${tag}\``).join(', ');

function username() {
  return line({
    format: 'username',
    description:
      'Login name, unique as people read it: case, invisible characters and the amount of white space are ignored. The characters `/ ? : & # \\` are forbidden.',
  });
}

/** interface 2.1 without the reference; also describes a person who is invited as staff. */
export const personFields = {
  email: email(),
  username: username(),
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

const elementSchema: Record<string, unknown> = { ...user };

const createUserSchema = {
  operationId: 'createUser',
  summary: 'Create a user',
  description:
    'Creates a user, or finds an existing one. A known `reference` updates phone, mobile and names: absent fields keep their value, ' +
    '`null` clears. An e-mail address that another user has is replaced by a derived one. A person who was invited as staff gets the reference, and a ' +
    `verification mail, for which the limits of verification mails apply. The cookie \`SERVICE_LANG\` (${spokenLanguageTags}) sets the language of a new user.`,
  tags: ['Users'],
  params: crmParams,
  headers: idempotencyHeaders,
  body: Type.Object(
    { reference: line({ format: 'reference', description: 'Unique, `uniqueId@platformName`.' }), ...personFields },
    { title: 'NewUser', examples: [userExample] },
  ),
  response: {
    200: wrapped('user', user, 'The user existed'),
    201: wrapped('user', user, 'Created'),
    ...problems(['user.email_taken', 'user.username_taken', 'verification.limited'], {
      body: true,
      idempotencyKey: true,
    }),
  },
} as const;

const userParams = Type.Object({ ...crmParams.properties, reference: pathReference('Reference of the user.') });

const getUserSchema = {
  operationId: 'getUser',
  summary: 'Get a user',
  description: 'The user with this reference.',
  tags: ['Users'],
  params: userParams,
  response: { 200: wrapped('user', user, 'The user'), ...problems(['user.not_found']) },
} as const;

const listUsersSchema = {
  operationId: 'listUsers',
  summary: 'List the users',
  description:
    'In order of creation. A person who was invited as staff is listed, too: the `reference` is null until the CRM creates a user with this e-mail address. ' +
    'Returns all of them unless `limit` is given.',
  tags: ['Users'],
  params: crmParams,
  querystring: Type.Object({
    email: Type.Optional(
      email({
        description:
          'Only the user with this e-mail address, ignoring case, whether its domain is in Unicode or in A-labels.',
      }),
    ),
    ...pageFields,
  }),
  response: {
    // Without a type, because it is sent as a stream.
    200: Type.Unsafe<unknown>(list(user, { description: 'The users', headers: linkHeader })),
    ...problems(['user.invalid']),
  },
} as const;

const updateUserSchema = {
  operationId: 'updateUser',
  summary: 'Update a user',
  description:
    'Absent fields keep their value; `null` clears an optional field. A new e-mail address is not verified, and gets a verification mail, for ' +
    'which the limits of verification mails apply.',
  tags: ['Users'],
  params: userParams,
  body: Type.Object(
    {
      ...personFields,
      email: Type.Optional(email()),
      username: Type.Optional(username()),
      lastName: Type.Optional(line()),
    },
    { title: 'UserChange', examples: [{ lastName: 'Beispiel-Neu', phone: null }] },
  ),
  response: {
    200: wrapped('user', user, 'The updated user', { ...userExample, lastName: 'Beispiel-Neu', phone: null }),
    ...problems(['user.not_found', 'user.email_taken', 'user.username_taken', 'verification.limited'], { body: true }),
  },
} as const;

const deleteUserSchema = {
  operationId: 'deleteUser',
  summary: 'Delete a user',
  description:
    'Deletes all personal data, and the access to providers. Rejected while the user owns an account or a provider.',
  tags: ['Users'],
  params: userParams,
  response: {
    204: Type.Null({ description: 'Deleted' }),
    ...problems(['user.not_found', 'user.owner'], { body: true }),
  },
} as const;

const requestVerificationSchema = {
  operationId: 'requestVerification',
  summary: 'Send a verification mail',
  description:
    'Sends the user a mail with a link to confirm the e-mail address. The links of earlier mails stop working. One mail a minute and five ' +
    'in 24 hours can be sent to a user, and by a CRM to a mailbox; past that 429, with the time to wait in `Retry-After`. The request has no body.',
  tags: ['Users'],
  params: userParams,
  headers: idempotencyHeaders,
  response: {
    204: Type.Null({ description: 'The mail is on its way' }),
    ...problems(['user.not_found', 'user.email_verified', 'user.email_derived', 'verification.limited'], {
      body: true,
      idempotencyKey: true,
    }),
  },
} as const;

const verification = Type.Object(
  {
    email: Type.String(),
    verified: Type.Boolean({ description: 'Whether the person has confirmed the e-mail address.' }),
    sentAt: nullable<string>({
      type: 'string',
      format: 'date-time',
      description: 'When the last verification mail was requested; UTC, `YYYY-MM-DDThh:mm:ssZ`.',
    }),
    expiresAt: nullable<string>({
      type: 'string',
      format: 'date-time',
      description:
        'Until when the link of that mail works; null if it does not, or if the mail is still being written. UTC, `YYYY-MM-DDThh:mm:ssZ`.',
    }),
  },
  {
    title: 'UserVerification',
    examples: [
      {
        email: 'berta.beispiel@acme.example',
        verified: false,
        sentAt: '2030-05-06T07:00:00Z',
        expiresAt: '2030-05-07T07:00:01Z',
      },
    ],
  },
);

const getUserVerificationSchema = {
  operationId: 'getUserVerification',
  summary: 'Get the verification of an e-mail address',
  description:
    'Whether the person has confirmed the e-mail address of the user, and when the last verification mail was requested.',
  tags: ['Users'],
  params: userParams,
  response: { 200: wrapped('verification', verification, 'The verification'), ...problems(['user.not_found']) },
} as const;
