import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { branches } from '@scheduling/runtime';
import { Type } from 'typebox';
import type { Admission } from '../admission.ts';
import type { Clients } from '../clients.ts';
import { clearing, formats, givenFields, line, optionalEmail, optionalLine, pathReference } from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import { linkHeader, pageFields } from '../paging.ts';
import { RequestError } from '../problem.ts';
import { apiInfoValue, list, nullable, nullableString, problems, wrapped } from '../schemas.ts';
import { listConfig, openObjects, sendList } from './json-list.ts';
import { crmParams } from './path-parameters.ts';

/** interface 4.6. */
export function accountRoutes(
  { identity }: Clients,
  publicUrl: string,
  admission: Admission,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/account', { schema: createAccountSchema, config: needsAll }, async (request, reply) => {
      const { params, body } = request;
      requireReference(body.accountReference);
      const { account, created } = await identity.createAccount(params, {
        account: givenFields(createAccountSchema.body, body),
      });
      return reply.code(created ? 201 : 200).send({ 'api-info': apiInfoValue, account: account! });
    });

    app.get('/account/:reference', { schema: getAccountSchema, config: needsRead }, async (request) => {
      const { account } = await identity.getAccount(request.params);
      return { 'api-info': apiInfoValue, account: account! };
    });

    app.get(
      '/accounts',
      { schema: listAccountsSchema, config: { ...needsRead, ...listConfig } },
      async (request, reply) => {
        const call = (signal: AbortSignal) => identity.listAccounts(request.params, request.query, signal);
        const open = openObjects(reply, elementSchema, call, (message) => message.accounts);
        return sendList({ request, reply, admission }, publicUrl, open);
      },
    );

    app.put('/account/:reference', { schema: updateAccountSchema, config: needsAll }, async (request) => {
      const { params, body } = request;
      const { account } = await identity.updateAccount(params, {
        branch: body.branch,
        invoiceAddress: body.invoiceAddress === null ? noAddress : body.invoiceAddress,
        invoiceContactName: clearing(body.invoiceContactName),
        invoiceCompanyName: clearing(body.invoiceCompanyName),
        invoiceTaxId: clearing(body.invoiceTaxId),
        email: clearing(body.email),
      });
      return { 'api-info': apiInfoValue, account: account! };
    });

    app.delete('/account/:reference', { schema: deleteAccountSchema, config: needsAll }, async (request, reply) => {
      await identity.deleteAccount(request.params);
      return reply.code(204).send(null);
    });
  };
}

/** Sent to identity, this clears the address. */
const noAddress: InvoiceAddress = { city: '', countryCode: '', street: '', number: '', zip: '' };

function requireReference(accountReference: string): void {
  if (formats.reference.passes(accountReference)) return;
  throw new RequestError('account.reference_unparsable', {
    detail: `Unable to parse account reference. Was ${accountReference}`,
  });
}

interface InvoiceAddress {
  city: string;
  countryCode: string;
  street: string;
  number: string;
  zip: string;
}

const invoiceAddressFields = { city: line(), countryCode: line(), street: line(), number: line(), zip: line() };

const accountExample = {
  ownerReference: '4711@acme',
  accountReference: 'main@acme',
  branch: 'handyman',
  invoiceAddress: { city: 'Berlin', countryCode: 'DE', street: 'Beispielstraße', number: '1', zip: '10115' },
  invoiceCompanyName: 'Beispiel GmbH',
  invoiceTaxId: 'DE123456789',
  email: 'invoices@acme.example',
};

const account = Type.Object(
  {
    ownerReference: Type.String(),
    accountReference: Type.String(),
    branch: Type.Unsafe<string>({ type: 'string', enum: branches }),
    invoiceAddress: nullable<InvoiceAddress>({
      title: 'InvoiceAddress',
      type: 'object',
      required: Object.keys(invoiceAddressFields),
      properties: Object.fromEntries(Object.keys(invoiceAddressFields).map((name) => [name, { type: 'string' }])),
    }),
    invoiceContactName: nullableString(),
    invoiceCompanyName: nullableString(),
    invoiceTaxId: nullableString(),
    email: nullableString(),
  },
  { title: 'Account', examples: [{ ...accountExample, invoiceContactName: null }] },
);

// An unknown branch gets 404 instead of 400 (interface 7): from identity.
const branch = () => line({ description: 'Line of business.', documentedEnum: branches });

const invoiceFields = {
  invoiceAddress: Type.Optional(
    Type.Unsafe<InvoiceAddress | null>({
      title: 'NewInvoiceAddress',
      type: ['object', 'null'],
      required: Object.keys(invoiceAddressFields),
      properties: invoiceAddressFields,
    }),
  ),
  invoiceContactName: Type.Optional(optionalLine({ description: 'Name of the invoice recipient.' })),
  invoiceCompanyName: Type.Optional(optionalLine()),
  invoiceTaxId: Type.Optional(optionalLine({ description: 'VAT identifier.' })),
  email: Type.Optional(optionalEmail({ description: 'E-mail address for invoices.' })),
};

const elementSchema: Record<string, unknown> = { ...account };

const createAccountSchema = {
  operationId: 'createAccount',
  summary: 'Create an account',
  description: 'If the `accountReference` exists, returns the existing account unchanged.',
  tags: ['Accounts'],
  params: crmParams,
  headers: idempotencyHeaders,
  body: Type.Object(
    {
      ownerReference: line({ description: 'Reference of an existing user.' }),
      // An invalid format gets 404 instead of 400 (interface 7): from the handler.
      accountReference: line({ description: 'Unique, `uniqueId@platformName`.' }),
      branch: branch(),
      ...invoiceFields,
    },
    { title: 'NewAccount', examples: [accountExample] },
  ),
  response: {
    200: wrapped('account', account, 'The account already exists'),
    201: wrapped('account', account, 'Created'),
    ...problems(['account.reference_unparsable', 'branch.unknown', 'account.owner_not_found'], {
      body: true,
      idempotencyKey: true,
    }),
  },
} as const;

const accountParams = Type.Object({ ...crmParams.properties, reference: pathReference('Reference of the account.') });

const getAccountSchema = {
  operationId: 'getAccount',
  summary: 'Get an account',
  description: 'The account with this reference, with its invoice data.',
  tags: ['Accounts'],
  params: accountParams,
  response: { 200: wrapped('account', account, 'The account'), ...problems(['account.not_found']) },
} as const;

const listAccountsSchema = {
  operationId: 'listAccounts',
  summary: 'List the accounts',
  description: 'In order of creation. Returns all of them unless `limit` is given.',
  tags: ['Accounts'],
  params: crmParams,
  querystring: Type.Object({
    ownerReference: Type.Optional(
      line({ description: 'Only accounts of this user. The list is empty if there is no such user.' }),
    ),
    ...pageFields,
  }),
  response: {
    // Without a type, because it is sent as a stream.
    200: Type.Unsafe<unknown>(list(account, { description: 'The accounts', headers: linkHeader })),
    ...problems(['account.invalid']),
  },
} as const;

const updateAccountSchema = {
  operationId: 'updateAccount',
  summary: 'Update an account',
  description:
    'Absent fields keep their value; `null` clears an optional field. The owner and the reference cannot be changed.',
  tags: ['Accounts'],
  params: accountParams,
  body: Type.Object(
    { branch: Type.Optional(branch()), ...invoiceFields },
    { title: 'AccountChange', examples: [{ invoiceContactName: 'Berta Beispiel', invoiceTaxId: null }] },
  ),
  response: {
    200: wrapped('account', account, 'The updated account', {
      ...accountExample,
      invoiceContactName: 'Berta Beispiel',
      invoiceTaxId: null,
    }),
    ...problems(['branch.unknown', 'account.not_found'], { body: true }),
  },
} as const;

const deleteAccountSchema = {
  operationId: 'deleteAccount',
  summary: 'Delete an account',
  description: 'The reference can be used again. Rejected while the account has providers.',
  tags: ['Accounts'],
  params: accountParams,
  response: {
    204: Type.Null({ description: 'Deleted' }),
    ...problems(['account.not_found', 'account.in_use'], { body: true }),
  },
} as const;
