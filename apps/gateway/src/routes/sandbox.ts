import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { SandboxClock } from '@scheduling/contracts/calendar/v1';
import type { SandboxMail } from '@scheduling/contracts/notification/v1';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { weightOfMany } from '../admission.ts';
import type { Clients } from '../clients.ts';
import { given, integer, nullableInstant, queryLine } from '../fields.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import { linkHeader, linkToNext, pageFields } from '../paging.ts';
import { apiInfoValue, instant, list, nullable, presentInstant, problems, wrapped } from '../schemas.ts';
import { crmParams } from './path-parameters.ts';

/** A mail can have 100 kB, and a message between services at most 4 MiB. */
const maxMails = 20;

/** interface 11. */
export function sandboxRoutes({ clocks, sandboxMails }: Clients, publicUrl: string): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/sandbox/clock', { schema: getClockSchema, config: needsRead }, async ({ params }) => {
      const { clock } = await clocks.getSandboxClock(params);
      return { 'api-info': apiInfoValue, clock: presentClock(clock!) };
    });

    app.put('/sandbox/clock', { schema: setClockSchema, config: needsAll }, async ({ params, body }) => {
      const { clock } = await clocks.setSandboxClock(params, {
        now: body.now === null ? undefined : new Date(body.now),
      });
      return { 'api-info': apiInfoValue, clock: presentClock(clock!) };
    });

    app.get(
      '/sandbox/mails',
      { schema: listMailsSchema, config: { ...needsAll, weigh } },
      async ({ params, query, url }, reply) => {
        const { limit = maxMails, cursor } = query;
        const { mails, nextCursor } = await sandboxMails.listSandboxMails(params, {
          to: given(query.to),
          limit,
          cursor,
        });
        if (nextCursor !== undefined) void reply.header('link', linkToNext(publicUrl, url, 'cursor', nextCursor));
        return mails.map(presentMail);
      },
    );
  };
}

function weigh({ query }: FastifyRequest): number {
  return weightOfMany((query as { limit?: number }).limit ?? maxMails);
}

function presentMail({ from, to, sentAt, ...mail }: SandboxMail) {
  return { ...mail, from: from!, to: to!, sentAt: presentInstant(sentAt) };
}

function presentClock({ now, aheadMs }: SandboxClock) {
  return { now: presentInstant(now), aheadSeconds: Math.round(aheadMs / 1_000) };
}

const clockExample = { now: '2030-05-06T07:00:00Z', aheadSeconds: 0 };

const clock = Type.Object(
  {
    now: instant('What the clock shows; UTC, `YYYY-MM-DDThh:mm:ssZ`.'),
    aheadSeconds: Type.Integer({
      description: 'How far it is ahead of the real time; 0 if the clock was not set, negative if it is behind.',
    }),
  },
  { title: 'SandboxClock', examples: [clockExample] },
);

const getClockSchema = {
  operationId: 'getSandboxClock',
  summary: 'Get the clock of a sandbox',
  description: 'The sandbox’s current time.',
  tags: ['Sandbox'],
  params: crmParams,
  response: {
    200: wrapped('clock', clock, 'The clock'),
    ...problems(['sandbox.not_found']),
  },
} as const;

const setClockSchema = {
  operationId: 'setSandboxClock',
  summary: 'Set the clock of a sandbox',
  description:
    'The clock continues from there. Reservations, booking rules, the list of slots, archiving and retention follow it; reservations that have expired by the new ' +
    'time are removed. `null` sets it to the real time.',
  tags: ['Sandbox'],
  params: crmParams,
  body: Type.Object(
    { now: nullableInstant('The new time, at most 10 years from the real one; `null`: the real time.') },
    { title: 'SandboxClockChange', examples: [{ now: null }] },
  ),
  response: {
    200: wrapped('clock', clock, 'The clock'),
    ...problems(['sandbox.invalid', 'sandbox.not_found'], { body: true }),
  },
} as const;

const mailExample = {
  id: '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e',
  template: 'booking-confirmed',
  sentAt: '2030-05-06T07:00:00Z',
  from: { name: 'Studio Blum via Acme', address: 'no-reply@acme.example' },
  to: { name: 'Ada Lovelace', address: 'ada@example.com' },
  replyTo: { name: 'Studio Blum', address: 'desk@studio.example' },
  subject: 'Your booking: Mon 3 Jun, 10:00 – Yoga Flow',
  text: 'Your booking is confirmed\n\nHello Ada Lovelace,\nWe look forward to seeing you.\n…\n',
  html: '<!doctype html>\n<html lang="en">\n…\n</html>\n',
  calendars: [{ method: 'REQUEST', text: 'BEGIN:VCALENDAR\r\n…\r\nEND:VCALENDAR\r\n' }],
};

const mailAddress = { name: Type.String(), address: Type.String() };

const mail = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    template: Type.String({ description: 'Which mail it is: `booking-confirmed`, `email-verification` and so on.' }),
    sentAt: instant('When it would have been sent; UTC, `YYYY-MM-DDThh:mm:ssZ`.'),
    from: Type.Object(mailAddress),
    to: Type.Object(mailAddress),
    replyTo: nullable<{ name: string; address: string }>({
      type: 'object',
      required: Object.keys(mailAddress),
      properties: mailAddress,
    }),
    subject: Type.String(),
    text: Type.String(),
    html: Type.String(),
    calendars: Type.Array(
      Type.Object(
        { method: Type.String({ description: '`REQUEST` or `CANCEL`.' }), text: Type.String() },
        { title: 'SandboxMailCalendar' },
      ),
      { description: 'The calendar files.' },
    ),
  },
  { title: 'SandboxMail', examples: [mailExample] },
);

const listMailsSchema = {
  operationId: 'listSandboxMails',
  summary: 'List the mails of a sandbox',
  description: `The mails that would have been sent, newest first, for 7 days. Mails to a person who has been erased are deleted. At most ${maxMails}, or \`limit\` if that is smaller.`,
  tags: ['Sandbox'],
  params: crmParams,
  querystring: Type.Object({
    to: queryLine('Only mails to this address, in any case, and with its domain in its Unicode form or in A-labels.'),
    ...pageFields,
    limit: Type.Optional(
      integer({
        minimum: 1,
        maximum: maxMails,
        description: 'Maximum number of mails per page. The URL of the next page is in the `Link` header.',
      }),
    ),
  }),
  response: {
    200: list(mail, { description: 'The mails', headers: linkHeader }),
    ...problems(['sandbox.invalid', 'sandbox.not_found']),
  },
} as const;
