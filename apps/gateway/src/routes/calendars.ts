import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { type Calendar, CalendarDetails } from '@scheduling/contracts/calendar/v1';
import { type EnumName, enumNames } from '@scheduling/rpc';
import { Type } from 'typebox';
import type { Clients } from '../clients.ts';
import { givenFields, oneOf, optionalLine, pathReference, reference } from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import {
  apiInfoValue,
  instant,
  list,
  nullableString,
  presentEnum,
  presentInstant,
  problems,
  wrapped,
} from '../schemas.ts';
import { providerParams } from './path-parameters.ts';

/** interface 12: the URLs under which calendar programs read a provider's appointments; `pageUrl` is their base. */
export function calendarRoutes({ calendars }: Clients, pageUrl: string): FastifyPluginAsyncTypebox {
  const urlOf = (secret: string | undefined): string | undefined => secret && `${pageUrl}/calendar/${secret}.ics`;
  return async (app) => {
    app.post(
      '/provider/:providerRef/calendars',
      { schema: createCalendarSchema, config: needsAll },
      async ({ params, body }, reply) => {
        const { details = 'NONE', ...fields } = givenFields(createCalendarSchema.body, body);
        const { calendar, secret, created } = await calendars.createCalendar(params, {
          ...fields,
          details: CalendarDetails[details],
        });
        return reply
          .code(created ? 201 : 200)
          .send({ 'api-info': apiInfoValue, calendar: { ...presentCalendar(calendar!), url: urlOf(secret) } });
      },
    );

    app.get(
      '/provider/:providerRef/calendars',
      { schema: listCalendarsSchema, config: needsRead },
      async ({ params }) => (await calendars.listCalendars(params)).calendars.map(presentCalendar),
    );

    app.delete(
      '/provider/:providerRef/calendars/:calendarRef',
      { schema: deleteCalendarSchema, config: needsAll },
      async ({ params }, reply) => {
        await calendars.deleteCalendar(params);
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/provider/:providerRef/calendars/:calendarRef/secret',
      { schema: replaceSecretSchema, config: needsAll },
      async ({ params }) => {
        const { calendar, secret } = await calendars.replaceCalendarSecret(params);
        return { 'api-info': apiInfoValue, calendar: { ...presentCalendar(calendar!), url: urlOf(secret) } };
      },
    );
  };
}

function presentCalendar({ details, createdAt, ...calendar }: Calendar) {
  return { ...calendar, details: presentEnum(CalendarDetails, details), createdAt: presentInstant(createdAt) };
}

const calendarExample = {
  reference: 'cal-1@acme',
  resourceReference: 'room-1@acme',
  contactReference: null,
  details: 'NAMES',
  createdAt: '2030-05-06T07:00:00Z',
};

const withUrlExample = {
  ...calendarExample,
  url: 'https://scheduling.example.com/calendar/3q2-7wWmVnZC0Hc9hVqk1u5rJ8yQ4tXzB6aLsDfGhJk.ics',
};

const detailsText =
  'What the events tell of those who take part: `NONE`, how many; `NAMES`, who; `CONTACT`, also phone numbers, addresses and notes.';

const calendar = Type.Object(
  {
    reference: Type.String(),
    resourceReference: nullableString({ description: 'Only appointments of this resource.' }),
    contactReference: nullableString({ description: 'Only appointments with this contact.' }),
    details: oneOf(enumNames(CalendarDetails), { description: detailsText }),
    createdAt: instant(),
    url: Type.Optional(
      Type.String({
        description:
          'What a calendar program subscribes to. Whoever has it reads the calendar. Only in the response that makes it: it is not stored, so a repetition of the request does not have it.',
      }),
    ),
  },
  { title: 'Calendar', examples: [calendarExample] },
);

const calendarParams = Type.Object({
  ...providerParams.properties,
  calendarRef: pathReference('Reference of the calendar.'),
});

const createCalendarSchema = {
  operationId: 'createCalendar',
  summary: 'Create a calendar subscription',
  description:
    'Makes a URL at which calendar programs such as Google Calendar, Apple Calendar and Outlook read the appointments of the provider. A provider can have 100.',
  tags: ['Calendars'],
  params: providerParams,
  headers: idempotencyHeaders,
  body: Type.Object(
    {
      reference: reference({ description: 'Unique.' }),
      resourceReference: Type.Optional(optionalLine({ description: 'Only appointments of this resource.' })),
      contactReference: Type.Optional(optionalLine({ description: 'Only appointments with this contact.' })),
      details: Type.Optional(
        Type.Unsafe<EnumName<typeof CalendarDetails> | null>({
          type: ['string', 'null'],
          enum: [...enumNames(CalendarDetails), null],
          description: `${detailsText} Default: \`NONE\`.`,
        }),
      ),
    },
    {
      title: 'NewCalendar',
      examples: [{ reference: 'cal-1@acme', resourceReference: 'room-1@acme', details: 'NAMES' }],
    },
  ),
  response: {
    200: wrapped('calendar', calendar, 'The calendar already exists'),
    201: wrapped('calendar', calendar, 'Created', withUrlExample),
    ...problems(
      [
        'calendar.invalid',
        'provider.not_found',
        'calendar.not_found',
        'calendar.reference_taken',
        'calendar.limit_reached',
      ],
      { body: true, idempotencyKey: true },
    ),
  },
} as const;

const listCalendarsSchema = {
  operationId: 'listCalendars',
  summary: 'List the calendar subscriptions of a provider',
  description: 'All of them, without their URLs.',
  tags: ['Calendars'],
  params: providerParams,
  response: {
    200: list(calendar, { description: 'The calendars, in the order of their creation' }),
    ...problems(['provider.not_found']),
  },
} as const;

const deleteCalendarSchema = {
  operationId: 'deleteCalendar',
  summary: 'Delete a calendar subscription',
  description: 'Its URL stops working at once. What calendar programs have read, they keep.',
  tags: ['Calendars'],
  params: calendarParams,
  response: {
    204: Type.Null({ description: 'Deleted' }),
    ...problems(['provider.not_found', 'calendar.not_found']),
  },
} as const;

const replaceSecretSchema = {
  operationId: 'replaceCalendarSecret',
  summary: 'Replace the URL of a calendar subscription',
  description: 'The previous URL stops working at once.',
  tags: ['Calendars'],
  params: calendarParams,
  headers: idempotencyHeaders,
  response: {
    200: wrapped('calendar', calendar, 'The calendar with its new URL', withUrlExample),
    ...problems(['provider.not_found', 'calendar.not_found'], { idempotencyKey: true }),
  },
} as const;
