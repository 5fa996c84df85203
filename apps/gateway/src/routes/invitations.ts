import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Invitation } from '@scheduling/contracts/calendar/v1';
import { Type } from 'typebox';
import type { Clients } from '../clients.ts';
import { dateTime, givenFields, integer, line, pathReference } from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsBook } from '../key-scopes.ts';
import { apiInfoValue, instant, list, presentInstant, problems, wrapped } from '../schemas.ts';
import { customerParams } from './customers.ts';

/**
 * interface 13: the links by which customers book on the page of the provider; `pageUrl` is the base of its address,
 * without a trailing slash.
 */
export function invitationRoutes({ invitations }: Clients, pageUrl: string): FastifyPluginAsyncTypebox {
  const present = ({ providerId, token, expiresAt, createdAt, ...rest }: Invitation) => ({
    ...rest,
    url: `${pageUrl}/book/${providerId}?for=${token}`,
    expiresAt: presentInstant(expiresAt),
    createdAt: presentInstant(createdAt),
  });
  return async (app) => {
    app.post(
      '/provider/:providerRef/customers/:customerRef/invitations',
      { schema: createInvitationSchema, config: needsBook },
      async ({ params, body }, reply) => {
        const { invitation } = await invitations.createInvitation(
          params,
          givenFields(createInvitationSchema.body, body),
        );
        return reply.code(201).send({ 'api-info': apiInfoValue, invitation: present(invitation!) });
      },
    );

    app.get(
      '/provider/:providerRef/customers/:customerRef/invitations',
      { schema: listInvitationsSchema, config: needsBook },
      async ({ params }) => (await invitations.listInvitations(params)).invitations.map(present),
    );

    app.delete(
      '/provider/:providerRef/customers/:customerRef/invitations/:invitationId',
      { schema: deleteInvitationSchema, config: needsBook },
      async ({ params }, reply) => {
        await invitations.deleteInvitation(params);
        return reply.code(204).send(null);
      },
    );
  };
}

const maxBookings = 100;

const invitationExample = {
  id: '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e',
  url: 'https://scheduling.example.com/book/01990000-0000-7000-8000-000000000001?for=BQEBmhYzmGh1cLWhMvO0ZQZhY21lU0nJ2mC1qX3bFr0oKQvYtg',
  productReference: 'haircut@acme',
  bookings: 3,
  booked: 0,
  expiresAt: '2030-06-30T16:00:00Z',
  createdAt: '2030-05-06T07:00:00Z',
};

const bookings = {
  minimum: 1,
  maximum: maxBookings,
  description:
    'How many bookings and requests can be made by it. Those that are cancelled, declined or deleted do not count.',
};

const invitation = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    url: Type.String({ description: 'Where the customer books. Whoever has it can do that in the customer’s name.' }),
    productReference: Type.String(),
    bookings: Type.Integer({ description: bookings.description }),
    booked: Type.Integer({ description: 'How many have been made.' }),
    expiresAt: instant(),
    createdAt: instant(),
  },
  { title: 'CustomerInvitation', examples: [invitationExample] },
);

const createInvitationSchema = {
  operationId: 'createInvitation',
  summary: 'Invite a customer to book on the booking page',
  description:
    'Makes a URL at which the customer books the offers of a product, without saying who they are. It works until the e-mail address of the customer changes, and at most until ' +
    '`expiresAt`. A customer can have 100 invitations that have not expired.',
  tags: ['Customers'],
  params: customerParams,
  headers: idempotencyHeaders,
  body: Type.Object(
    {
      productReference: line({ description: 'That of an offer in the booking rules.' }),
      bookings: integer(bookings),
      expiresAt: dateTime('In the future, and at most 366 days ahead.'),
    },
    {
      title: 'NewCustomerInvitation',
      examples: [{ productReference: 'haircut@acme', bookings: 3, expiresAt: '2030-06-30T18:00' }],
    },
  ),
  response: {
    201: wrapped('invitation', invitation, 'Created'),
    ...problems(
      [
        'invitation.invalid',
        'provider.not_found',
        'customer.not_found',
        'invitation.not_found',
        'invitation.no_page',
        'invitation.limit_reached',
      ],
      { body: true, idempotencyKey: true },
    ),
  },
} as const;

const listInvitationsSchema = {
  operationId: 'listInvitations',
  summary: 'List the invitations of a customer',
  description:
    'Those that have not expired, at most 100. If the e-mail address of the customer has changed, each has another URL.',
  tags: ['Customers'],
  params: customerParams,
  response: {
    200: list(invitation, { description: 'The invitations, in the order of their creation' }),
    ...problems(['provider.not_found', 'customer.not_found']),
  },
} as const;

const deleteInvitationSchema = {
  operationId: 'deleteInvitation',
  summary: 'Delete an invitation',
  description: 'Its URL stops working at once. What was booked by it stays.',
  tags: ['Customers'],
  params: Type.Object({
    ...customerParams.properties,
    invitationId: pathReference('ID of the invitation.'),
  }),
  response: {
    204: Type.Null({ description: 'Deleted' }),
    ...problems(['provider.not_found', 'customer.not_found', 'invitation.not_found']),
  },
} as const;
