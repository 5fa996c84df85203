import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Crm } from '@scheduling/contracts/identity/v1';
import { DomainError } from '@scheduling/errors';
import { Type } from 'typebox';
import { credentialsOf } from '../authentication.ts';
import type { Credentials } from '../key-ring.ts';
import { needsRead, scopes } from '../key-scopes.ts';
import { oneOf } from '../fields.ts';
import {
  apiInfoValue,
  instant,
  nullable,
  nullableString,
  presentInstant,
  problems,
  wrappedTogether,
} from '../schemas.ts';
import { crmParams } from './path-parameters.ts';

/** interface 5.2: what the check of the key has found out already, so no service is asked. */
export function crmRoute(): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('', { schema: getCrmSchema, config: needsRead }, async (request) => {
      const { crm, ...key } = credentialsOf(request);
      return { 'api-info': apiInfoValue, crm: presentCrm(crm), key: presentKey(key) };
    });
  };
}

function presentCrm({ senderAddress, ...settings }: Crm) {
  return { ...settings, senderAddress: senderAddress || null };
}

function presentKey({ keyPrefix, scope, createdAt, expiresAt }: Omit<Credentials, 'crm'>) {
  // For as long as identity has an older version.
  if (createdAt === undefined) throw new DomainError('service.unavailable');
  return {
    prefix: keyPrefix,
    scope,
    createdAt: presentInstant(createdAt),
    expiresAt: expiresAt && presentInstant(expiresAt),
  };
}

const crmExample = {
  crmId: 'acme',
  name: 'Acme',
  sandbox: false,
  language: 'de',
  timeZone: 'Europe/Berlin',
  requestsPerMinute: 6_000,
  anonymiseAfterDays: null,
  notifyOnCustomerDeletion: true,
  senderName: 'Acme',
  senderAddress: 'bookings@acme.example',
  logoUrl: 'https://cdn.acme.example/logo.png',
  colour: '#2450c8',
  imprint: 'Acme GmbH\nBerlin',
  privacyUrl: 'https://acme.example/privacy',
};

const crm = Type.Object(
  {
    crmId: Type.String(),
    name: Type.String(),
    sandbox: Type.Boolean({
      description: 'Whether it is for tests: its mails reach nobody, and its clock can be set.',
    }),
    language: Type.String({ description: 'Of mails and of new users, unless they have their own: a BCP 47 tag.' }),
    timeZone: Type.String({ description: 'Of providers that are created without one: an IANA name.' }),
    requestsPerMinute: nullable<number>({
      type: 'integer',
      description: 'How many requests a key can send in a minute; null: no limit.',
    }),
    anonymiseAfterDays: nullable<number>({
      type: 'integer',
      description:
        'How many days after their appointment bookings are anonymised; null: the CRM has no period of its own.',
    }),
    notifyOnCustomerDeletion: Type.Boolean({
      description: 'Whether customers who are deleted while they have future appointments get a mail.',
    }),
    senderName: Type.String({ description: 'Of its mails.' }),
    senderAddress: nullableString({ description: 'Of its mails; null: that of the service.' }),
    logoUrl: nullableString({ description: 'At the top of its mails; null: none.' }),
    colour: nullableString({
      description: 'Background of white text in its mails, as `#rrggbb`; null: that of the service.',
    }),
    imprint: nullableString({ description: 'Lines at the foot of its mails and pages; null: none.' }),
    privacyUrl: nullableString({ description: 'Its privacy notice, which pages link to; null: none.' }),
  },
  { title: 'Crm', examples: [crmExample] },
);

const keyExample = { prefix: 'sk_lbaS6G-oW', scope: 'all', createdAt: '2030-05-06T07:00:00Z', expiresAt: null };

const key = Type.Object(
  {
    prefix: Type.String({ description: 'Its first characters, by which people distinguish keys.' }),
    scope: oneOf(scopes, { description: 'What it permits. Each scope includes the ones before it.' }),
    createdAt: instant(),
    expiresAt: nullable<string>({
      type: 'string',
      format: 'date-time',
      description: 'When it stops working; UTC, `YYYY-MM-DDThh:mm:ssZ`. Null: never.',
    }),
  },
  { title: 'ApiKey', examples: [keyExample] },
);

const getCrmSchema = {
  operationId: 'getCrm',
  summary: 'Get the CRM and the key',
  description:
    'The CRM as its operator has set it up, and the API key of the request. A change of the settings shows within 30 seconds.',
  tags: ['CRM'],
  params: crmParams,
  response: {
    200: wrappedTogether({ crm, key }, 'The CRM and the key'),
    ...problems(),
  },
} as const;
