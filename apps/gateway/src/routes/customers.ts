import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Customer } from '@scheduling/contracts/customer/v1';
import { DomainError } from '@scheduling/errors';
import { Type } from 'typebox';
import type { Admission } from '../admission.ts';
import type { Clients } from '../clients.ts';
import {
  clearing,
  email,
  givenFields,
  line,
  maxNoteLength,
  optionalBody,
  optionalEmail,
  optionalLine,
  optionalText,
  pathReference,
  reference,
} from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsBook, needsRead } from '../key-scopes.ts';
import { metadata, metadataFilter, metadataInput, toMetadata, toMetadataChange } from '../metadata.ts';
import { linkHeader, pageFields } from '../paging.ts';
import { invalidRequest } from '../problem.ts';
import { apiInfoValue, list, nullableString, problems, wrapped } from '../schemas.ts';
import { listConfig, openObjects, sendList } from './json-list.ts';
import { providerParams } from './path-parameters.ts';

const customersPath = '/provider/:providerRef/customers';
const customerPath = `${customersPath}/:customerRef`;

/** interface 4.4. */
export function customerRoutes(
  { customers }: Clients,
  publicUrl: string,
  admission: Admission,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      customersPath,
      { schema: listCustomersSchema, config: { ...needsRead, ...listConfig } },
      async (request, reply) => {
        const { q: text, metadata: pairs, ...query } = request.query;
        const filter = { ...query, text, metadata: toMetadata(pairs) };
        const call = (signal: AbortSignal) => customers.listCustomers(request.params, filter, signal);
        const open = openObjects(reply, elementSchema, call, (message) => message.customers.map(presentCustomer));
        return sendList({ request, reply, admission }, publicUrl, open);
      },
    );

    app.get(customerPath, { schema: getCustomerSchema, config: needsRead }, async (request, reply) => {
      const { crmId, providerRef, customerRef } = request.params;
      try {
        const { customer } = await customers.getCustomer(
          { crmId },
          {
            key: { $case: 'reference', value: { providerReference: providerRef, customerReference: customerRef } },
          },
        );
        return { 'api-info': apiInfoValue, customer: presentCustomer(customer!) };
      } catch (error) {
        // interface 7: not an error status.
        if (error instanceof DomainError && error.category === 'not_found') return reply.code(204).send(null);
        throw error;
      }
    });

    app.post(customersPath, { schema: createCustomerSchema, config: needsBook }, async (request, reply) => {
      const { params, body } = request;
      const { providerReference, ...fields } = givenFields(createCustomerSchema.body, body);
      requireSameProvider(params.providerRef, providerReference);
      const { customer, created } = await customers.createCustomer(params, {
        ...fields,
        metadata: toMetadata(body.metadata),
      });
      return reply.code(created ? 201 : 200).send({ 'api-info': apiInfoValue, customer: presentCustomer(customer!) });
    });

    app.put(customerPath, { schema: updateCustomerSchema, config: needsBook }, async (request) => {
      const { params, body } = request;
      const { customer } = await customers.updateCustomer(params, {
        newCustomerReference: body.customerReference,
        userName: body.userName,
        email: clearing(body.email),
        mobile: clearing(body.mobile),
        note: clearing(body.note),
        language: clearing(body.language),
        metadata: toMetadataChange(body.metadata),
      });
      return { 'api-info': apiInfoValue, customer: presentCustomer(customer!) };
    });

    app.delete(customerPath, { schema: deleteCustomerSchema, config: needsBook }, async (request, reply) => {
      const { params, body, query } = request;
      await customers.deleteCustomer(params, {
        ignoreFutureAppointments: singleFlag(body?.ignoreFutureAppointments, query.ignoreFutureAppointments),
      });
      return reply.code(204).send(null);
    });
  };
}

function presentCustomer(message: Customer): Omit<Customer, 'metadata'> & { metadata: Record<string, string> | null } {
  return { ...message, metadata: message.metadata?.pairs ?? null };
}

/** From the body or the query; two different values are rejected (interface 1). */
function singleFlag(inBody: unknown, inQuery: unknown): boolean {
  const [bodyIsSet, queryIsSet] = [flagIsSet(inBody), flagIsSet(inQuery)];
  if (inBody !== undefined && inQuery !== undefined && bodyIsSet !== queryIsSet) {
    throw invalidRequest([
      { pointer: '/ignoreFutureAppointments', detail: 'has different values in the body and the query' },
    ]);
  }
  return bodyIsSet || queryIsSet;
}

/** Its presence counts: without a value, or with any value but `false` (interface 4.4). */
function flagIsSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && value !== 'false';
}

/** The provider is in both the address and the body (interface 2.7). */
function requireSameProvider(inAddress: string, inBody: string): void {
  if (inAddress === inBody) return;
  throw invalidRequest([{ pointer: '/providerReference', detail: 'must match the provider in the path' }]);
}

export const customerExample = {
  customerReference: 'c-1@acme',
  providerReference: 'workshop@acme',
  userName: 'Ada Kundin',
  email: 'ada.kundin@customers.example',
  mobile: '+49 170 1234567',
  language: 'de',
  metadata: { tier: 'gold' },
};

const customer = Type.Object(
  {
    customerReference: Type.String(),
    email: nullableString(),
    note: nullableString({ description: 'Internal note.' }),
    userName: Type.String(),
    mobile: nullableString(),
    language: nullableString(),
    providerReference: Type.String(),
    metadata,
  },
  { title: 'Customer', examples: [{ ...customerExample, note: null }] },
);

const elementSchema: Record<string, unknown> = { ...customer };

const optionalFields = {
  email: Type.Optional(optionalEmail()),
  mobile: Type.Optional(optionalLine({ description: 'With country code.' })),
  note: Type.Optional(optionalText({ maxLength: maxNoteLength, description: 'Internal note.' })),
  language: Type.Optional(
    optionalLine({
      format: 'language-tag',
      description: 'Language tag such as `de` or `en`, for e-mails to the customer.',
    }),
  ),
  metadata: metadataInput('What the CRM notes of the customer. On an update it replaces all pairs.'),
};

const listCustomersSchema = {
  operationId: 'listCustomers',
  summary: 'List the customers of a provider',
  description: 'In order of creation. Returns all of them unless `limit` is given.',
  tags: ['Customers'],
  params: providerParams,
  querystring: Type.Object({
    email: Type.Optional(
      email({
        description:
          'Only customers with this e-mail address, ignoring case, whether its domain is in Unicode or in A-labels.',
      }),
    ),
    q: Type.Optional(
      line({
        minLength: 2,
        description:
          'Only customers whose name, e-mail address, mobile number or reference contains this text, ignoring case.',
      }),
    ),
    metadata: metadataFilter('customers'),
    ...pageFields,
  }),
  response: {
    // Without a type, because it is sent as a stream.
    200: Type.Unsafe<unknown>(list(customer, { description: 'The customers', headers: linkHeader })),
    ...problems(['customer.invalid', 'provider.not_found']),
  },
} as const;

export const newCustomerFields = {
  customerReference: reference({ description: 'Unique per provider.' }),
  userName: line({ description: 'Name of the customer.' }),
  ...optionalFields,
};

/** The path parameters of every operation on a customer. */
export const customerParams = Type.Object({
  ...providerParams.properties,
  customerRef: pathReference('Reference of the customer.'),
});

const getCustomerSchema = {
  operationId: 'getCustomer',
  summary: 'Get a customer',
  description: 'The contact data of a customer. The response for an unknown customer is 204, which is not an error.',
  tags: ['Customers'],
  params: customerParams,
  response: {
    200: wrapped('customer', customer, 'The customer'),
    204: Type.Null({ description: 'No customer with this reference' }),
    ...problems(),
  },
} as const;

const createCustomerSchema = {
  operationId: 'createCustomer',
  summary: 'Create a customer',
  description: 'If the `customerReference` exists, returns the existing customer unchanged.',
  tags: ['Customers'],
  params: providerParams,
  headers: idempotencyHeaders,
  body: Type.Object(
    {
      ...newCustomerFields,
      providerReference: line({ description: 'Reference of the provider; must match the path.' }),
    },
    { title: 'NewCustomer', examples: [customerExample] },
  ),
  response: {
    200: wrapped('customer', customer, 'The customer already exists'),
    201: wrapped('customer', customer, 'Created'),
    ...problems(['provider.not_found', 'customer.not_found'], { body: true, idempotencyKey: true }),
  },
} as const;

const updateCustomerSchema = {
  operationId: 'updateCustomer',
  summary: 'Update a customer',
  description:
    'Absent fields keep their value; `null` clears an optional field. A new `customerReference` changes the reference.',
  tags: ['Customers'],
  params: customerParams,
  body: Type.Object(
    { customerReference: Type.Optional(reference()), userName: Type.Optional(line()), ...optionalFields },
    { title: 'CustomerChange', examples: [{ userName: 'Ada Kundin-Neu', note: null }] },
  ),
  response: {
    200: wrapped('customer', customer, 'The updated customer', {
      ...customerExample,
      userName: 'Ada Kundin-Neu',
      note: null,
    }),
    ...problems(['customer.not_found', 'customer.reference_taken'], { body: true }),
  },
} as const;

const deleteCustomerSchema = {
  operationId: 'deleteCustomer',
  summary: 'Delete a customer',
  description:
    'Deletes all personal data; past bookings are kept anonymously. Rejected while the customer has future appointments, unless ' +
    '`ignoreFutureAppointments` is present: then the customer is removed from them and notified by e-mail, if the CRM is configured to do so.',
  tags: ['Customers'],
  params: customerParams,
  querystring: Type.Object({
    ignoreFutureAppointments: Type.Optional(
      Type.String({
        description:
          'Delete the customer despite future appointments. Counts as set if present, without a value or with any value except `false`.',
      }),
    ),
  }),
  body: optionalBody(
    { ignoreFutureAppointments: Type.Optional(Type.Unknown()) },
    { title: 'CustomerDeletion', examples: [{}] },
  ),
  response: {
    204: Type.Null({ description: 'Deleted' }),
    ...problems(['customer.not_found', 'customer.has_future_appointments'], { body: true }),
  },
} as const;
