import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { MailState, type ParticipationMail } from '@scheduling/contracts/notification/v1';
import { enumNames } from '@scheduling/rpc';
import { type ParticipationMailTemplate, participationMailTemplates } from '@scheduling/runtime';
import { Type } from 'typebox';
import type { Clients } from '../clients.ts';
import { oneOf, pathReference } from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsBook, needsRead } from '../key-scopes.ts';
import {
  apiInfoValue,
  instant,
  list,
  nullable,
  nullableString,
  presentEnum,
  presentInstant,
  problems,
  wrapped,
} from '../schemas.ts';
import { participationParams } from './participations.ts';

/** interface 4.3: mails about a participation. */
export function participationMailRoutes({ participationMails }: Clients): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/provider/:providerRef/participations/:participationRef/mails',
      { schema: listMailsSchema, config: needsRead },
      async ({ params }) => {
        const { mails } = await participationMails.listParticipationMails(params);
        return mails.map(presentMail);
      },
    );

    app.post(
      '/provider/:providerRef/participations/:participationRef/mails/:mailId/resend',
      { schema: resendMailSchema, config: needsBook },
      async ({ params }, reply) => {
        const { mail } = await participationMails.resendMail(params);
        return reply.code(202).send({ 'api-info': apiInfoValue, mail: presentMail(mail!) });
      },
    );
  };
}

function presentMail({ createdAt, finishedAt, ...mail }: ParticipationMail) {
  return {
    ...mail,
    // A newer service may have templates that the document of this gateway does not list.
    template: mail.template as ParticipationMailTemplate,
    state: presentEnum(MailState, mail.state),
    createdAt: presentInstant(createdAt),
    finishedAt: finishedAt && presentInstant(finishedAt),
  };
}

const mailExample = {
  id: '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e',
  template: 'booking-confirmed',
  state: 'FAILED',
  error: 'address-rejected',
  attempts: 1,
  createdAt: '2030-05-06T07:00:00Z',
  finishedAt: '2030-05-06T07:00:02Z',
};

const resentExample = {
  ...mailExample,
  id: '0197c4d1-1f62-7c09-8a53-6b1d4e0f7a92',
  state: 'PENDING',
  error: null,
  attempts: 0,
  finishedAt: null,
};

const mail = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    template: oneOf(participationMailTemplates),
    state: oneOf(enumNames(MailState), { description: '`SENT`: the mail server has accepted it.' }),
    error: nullableString({
      description:
        'Why the last attempt failed, or what the mail waits for: `address-rejected`, `mail-rejected`, `deferred`, `server-unavailable`, `uncertain`, ' +
        '`recipient-quota`, `crm-quota` or `superseded`.',
    }),
    attempts: Type.Integer({ description: 'How often the mail server has answered.' }),
    createdAt: instant(),
    finishedAt: nullable<string>({
      type: 'string',
      format: 'date-time',
      description: 'When it was sent or given up; UTC, `YYYY-MM-DDThh:mm:ssZ`.',
    }),
  },
  { title: 'Mail', examples: [mailExample] },
);

const listMailsSchema = {
  operationId: 'listParticipationMails',
  summary: 'List the mails about a participation',
  description:
    'What became of each mail, without its text and address, for 30 days after it was sent or given up. At most the 500 newest.',
  tags: ['Participations'],
  params: participationParams,
  response: {
    200: list(mail, { description: 'The mails, oldest first' }),
    ...problems(['provider.not_found', 'participation.not_found']),
  },
} as const;

const resendMailSchema = {
  operationId: 'resendMail',
  summary: 'Send a mail again',
  description:
    'Writes a mail that was sent or given up again, from the present data and to the present address, and sends it as a new one. Its calendar file stands for the same ' +
    'event. Only while the participation has not changed since, and only one copy at a time.',
  tags: ['Participations'],
  params: Type.Object({ ...participationParams.properties, mailId: pathReference('ID of the mail.') }),
  headers: idempotencyHeaders,
  response: {
    202: wrapped('mail', mail, 'The new mail, which waits for its turn', resentExample),
    ...problems(
      [
        'provider.not_found',
        'participation.not_found',
        'mail.not_found',
        'mail.pending',
        'mail.outdated',
        'mail.address_missing',
      ],
      { idempotencyKey: true },
    ),
  },
} as const;
