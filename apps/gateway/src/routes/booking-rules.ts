import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Access, AskMobile, type BookingRules, Confirmation, type Offer } from '@scheduling/contracts/calendar/v1';
import { enumName, enumNames } from '@scheduling/rpc';
import { type Static, Type } from 'typebox';
import type { Clients } from '../clients.ts';
import { givenFields, integer, line, oneOf, optionalBoolean, optionalInteger, rasterRange } from '../fields.ts';
import { needsAll, needsRead } from '../key-scopes.ts';
import { apiInfoValue, nullable, nullableString, presentEnum, problems, wrapped } from '../schemas.ts';
import { price } from './appointment-presentation.ts';
import { priceInput } from './appointment-schemas.ts';
import { providerParams } from './path-parameters.ts';

/** interface 10.4; `pageUrl` is the base of the address of a booking page, without a trailing slash. */
export function bookingRulesRoutes({ bookings }: Clients, pageUrl: string): FastifyPluginAsyncTypebox {
  const present = (rules: BookingRules) => ({
    ...rules,
    confirmation: presentEnum(Confirmation, rules.confirmation),
    // Calendar has no page yet if it does not answer these, in a rollout.
    askMobile: enumName(AskMobile, rules.askMobile) ?? 'NO',
    access: enumName(Access, rules.access) ?? 'PUBLIC',
    pageUrl: rules.page && rules.providerId !== '' ? `${pageUrl}/book/${rules.providerId}` : null,
  });
  return async (app) => {
    app.get(
      '/provider/:providerRef/booking-rules',
      { schema: getBookingRulesSchema, config: needsRead },
      async ({ params }) => {
        const { rules } = await bookings.getBookingRules(params);
        return { 'api-info': apiInfoValue, bookingRules: present(rules!) };
      },
    );

    app.put(
      '/provider/:providerRef/booking-rules',
      { schema: updateBookingRulesSchema, config: needsAll },
      async ({ params, body }) => {
        const { horizon, confirmation, reminders, offers, selfService, dailyList, askMobile, embedOn, verifyEmail } =
          body;
        const { rules } = await bookings.updateBookingRules(params, {
          minimumNotice: body.minimumNotice,
          horizon: horizon ?? undefined,
          noHorizon: horizon === null,
          changeNotice: body.changeNotice,
          confirmation: confirmation && Confirmation[confirmation],
          page: body.page,
          reminders: reminders && { minutes: reminders },
          notifyProvider: body.notifyProvider,
          maxPerPerson: body.maxPerPerson,
          offers: offers && { offers: offers.map(toOffer) },
          selfService: selfService ?? undefined,
          defaultSelfService: selfService === null || undefined,
          dailyList: dailyList ?? undefined,
          noDailyList: dailyList === null || undefined,
          askMobile: askMobile && AskMobile[askMobile],
          embedOn: embedOn && { origins: embedOn },
          verifyEmail,
          access: body.access && Access[body.access],
        });
        return { 'api-info': apiInfoValue, bookingRules: present(rules!) };
      },
    );
  };
}

function toOffer(input: Static<typeof offerInput>): Offer {
  return givenFields(offerInput, input);
}

const noticeRange = { minimum: 0, maximum: rasterRange.maximum };
const maxHorizonDays = 3_650;
const maxReminders = 5;
const maxPersonBookings = 1_000;
const maxOffers = 50;
const maxResources = 50;
const maxOrigins = 20;

const minimumNotice = integer({
  ...noticeRange,
  description: 'How long before its start a slot can be booked, in minutes.',
});
const horizonText = 'How far ahead a slot can be booked, in days of 24 hours; `null`: without limit.';
const changeNotice = integer({
  ...noticeRange,
  description:
    'Until how long before the start a person can cancel or move a booking by their link, in minutes. After that the page shows whom to call. ' +
    'Requests of the CRM are not affected.',
});
const confirmation = oneOf(enumNames(Confirmation), {
  description:
    'Whether what a person books on the page is `BOOKED` at once, or `REQUESTED` until the provider confirms. A booking of the CRM has the state that it sends.',
});
const selfServiceText = 'Whether mails about a booking have a link by which the person sees, moves and cancels it.';
const page = Type.Boolean({ description: 'Whether the provider has a public booking page, at `pageUrl`.' });
const reminders = Type.Array(
  integer({ minimum: 1, maximum: rasterRange.maximum, description: 'Minutes before the start.' }),
  {
    maxItems: maxReminders,
    description:
      'When the person is reminded of a `BOOKED` participation, in minutes before the start: each is a mail. A new one applies to what is due from now on.',
  },
);
const notifyProvider = Type.Boolean({
  description:
    'Whether the provider is told by e-mail of bookings, requests, moves and cancellations, and reminded of requests.',
});
const dailyListText =
  "The hour, in the provider's time zone, at which the provider gets an e-mail every day with the appointments of the day and those who have booked; `null`: never.";
const maxPerPerson = integer({
  minimum: 1,
  maximum: maxPersonBookings,
  description:
    'How many future bookings of an e-mail address the page makes. Whoever has as many gets a mail that says so.',
});
const askMobile = oneOf(enumNames(AskMobile), {
  description: 'Whether the form of the booking page asks for a mobile number.',
});
const verifyEmail = Type.Boolean({
  description:
    'Whether what is booked on the page is made only once the person confirms it by the link in an e-mail. The page does not tell whether an address is known.',
});
const access = oneOf(enumNames(Access), {
  description:
    'Who can book on the page: `PUBLIC`, everybody; `INVITED`, only customers with the URL of an invitation.',
});
const embedOnText =
  'The sites that may show the booking page in a frame: origins such as `https://studio.example`, with https, and the port if it is not 443.';
const resources = Type.Array(Type.Object({ resourceReference: line(), name: line() }, { title: 'OfferResource' }), {
  minItems: 1,
  maxItems: maxResources,
});
const offerFields = {
  productReference: line(),
  name: line(),
  duration: integer({ ...rasterRange, description: 'In minutes.' }),
  resources,
};

const rules = Type.Object(
  {
    minimumNotice,
    horizon: nullable<number>({ type: 'integer', description: horizonText }),
    changeNotice,
    confirmation,
    page,
    reminders,
    notifyProvider,
    maxPerPerson,
    offers: Type.Array(Type.Object({ ...offerFields, price }, { title: 'Offer' }), {
      description: 'What can be booked on the page.',
    }),
    selfService: Type.Boolean({ description: selfServiceText }),
    dailyList: nullable<number>({ type: 'integer', description: dailyListText }),
    askMobile,
    verifyEmail,
    access,
    embedOn: Type.Array(Type.String(), { description: embedOnText }),
    pageUrl: nullableString({
      description: 'The address of the booking page; `null` if there is none. It never changes.',
    }),
  },
  { title: 'BookingRules' },
);

const rulesChangeExample = {
  minimumNotice: 120,
  horizon: 60,
  changeNotice: 1_440,
  confirmation: 'BOOKED',
  page: true,
  reminders: [1_440],
  notifyProvider: false,
  maxPerPerson: 3,
  offers: [
    {
      productReference: 'haircut@acme',
      name: 'Haircut',
      duration: 30,
      resources: [{ resourceReference: 'room-1@acme', name: 'Room 1' }],
      price: { value: 49.9, currency: 'EUR' },
    },
  ],
  selfService: true,
  dailyList: 7,
  askMobile: 'OPTIONAL',
  verifyEmail: false,
  access: 'PUBLIC',
  embedOn: ['https://www.acme.example'],
};
const rulesExample = {
  ...rulesChangeExample,
  pageUrl: 'https://scheduling.example.com/book/01990000-0000-7000-8000-000000000001',
};

const getBookingRulesSchema = {
  operationId: 'getBookingRules',
  summary: 'Get the booking rules of a provider',
  description: 'Rules that were never set have their defaults.',
  tags: ['Slots and bookings'],
  params: providerParams,
  response: {
    200: wrapped('bookingRules', rules, 'The rules', rulesExample),
    ...problems(['provider.not_found']),
  },
} as const;

const offerInput = Type.Object({ ...offerFields, price: Type.Optional(priceInput) }, { title: 'NewOffer' });

const updateBookingRulesSchema = {
  operationId: 'updateBookingRules',
  summary: 'Set booking rules of a provider',
  description:
    'Sets only the given rules. With `page`, everybody who knows its address can book the `offers` there, at once, unless `access` is `INVITED`.',
  tags: ['Slots and bookings'],
  params: providerParams,
  body: Type.Object(
    {
      minimumNotice: Type.Optional(minimumNotice),
      horizon: Type.Optional(optionalInteger({ minimum: 1, maximum: maxHorizonDays, description: horizonText })),
      changeNotice: Type.Optional(changeNotice),
      confirmation: Type.Optional(confirmation),
      page: Type.Optional(page),
      reminders: Type.Optional(reminders),
      notifyProvider: Type.Optional(notifyProvider),
      maxPerPerson: Type.Optional(maxPerPerson),
      offers: Type.Optional(
        Type.Unsafe<Static<typeof offerInput>[]>({
          type: 'array',
          items: offerInput,
          maxItems: maxOffers,
          description: 'What can be booked on the page.',
        }),
      ),
      selfService: Type.Optional(optionalBoolean({ description: `${selfServiceText} \`null\`: as \`page\`.` })),
      dailyList: Type.Optional(optionalInteger({ minimum: 0, maximum: 23, description: dailyListText })),
      askMobile: Type.Optional(askMobile),
      verifyEmail: Type.Optional(verifyEmail),
      access: Type.Optional(access),
      embedOn: Type.Optional(Type.Array(line(), { maxItems: maxOrigins, description: embedOnText })),
    },
    { title: 'BookingRulesChange', examples: [rulesChangeExample] },
  ),
  response: {
    200: wrapped('bookingRules', rules, 'The rules', rulesExample),
    ...problems(['booking_rules.invalid', 'provider.not_found'], { body: true }),
  },
} as const;
