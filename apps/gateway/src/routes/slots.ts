import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { Admission } from '../admission.ts';
import type { Clients } from '../clients.ts';
import { dateTime, flag, given, integer, queryLine, rasterRange } from '../fields.ts';
import { needsRead } from '../key-scopes.ts';
import { linkHeader, pageFields } from '../paging.ts';
import { instant, list, nullableString, problems } from '../schemas.ts';
import { price } from './appointment-presentation.ts';
import { listConfig, sendList } from './json-list.ts';
import { address } from './locations.ts';
import { providerParams } from './path-parameters.ts';

/** interface 10.1. */
export function slotRoutes({ bookings }: Clients, publicUrl: string, admission: Admission): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/provider/:providerRef/slots',
      { schema: listSlotsSchema, config: { ...needsRead, ...listConfig } },
      async (request, reply) => {
        const { params, query } = request;
        const filter = {
          from: given(query.from),
          to: given(query.to),
          resourceReference: given(query.resourceRef),
          productReference: given(query.productRef),
          duration: query.duration,
          ignoreNotice: query.ignoreNotice,
          limit: query.limit,
          cursor: query.cursor,
        };
        return sendList({ request, reply, admission }, publicUrl, (signal) =>
          bookings.listSlots(params, filter, signal),
        );
      },
    );
  };
}

export const slotExample = {
  start: '2030-05-06T07:00:00Z',
  end: '2030-05-06T07:30:00Z',
  resourceReference: 'room-1@acme',
  timeslotReference: 't-1@acme',
  appointmentReference: null,
  productReference: null,
  description: null,
  capacity: 1,
  seats: 1,
  address: null,
  price: null,
};

export const slot = Type.Object(
  {
    start: instant(),
    end: instant(),
    resourceReference: Type.String(),
    timeslotReference: nullableString({
      description:
        'The timeslot that it is a step of; null for an open appointment that is not a step, such as one of a series.',
    }),
    appointmentReference: nullableString({
      description: 'The open appointment; null for a free place, in which booking makes one.',
    }),
    productReference: nullableString({ description: 'Of the open appointment.' }),
    description: nullableString({ description: 'Of the open appointment.' }),
    capacity: Type.Integer({ description: 'Maximum number of participants.' }),
    seats: Type.Integer({ description: 'How many of them can still be booked.' }),
    address,
    price,
  },
  { title: 'Slot', examples: [slotExample] },
);

export const ignoreNotice = flag(false, 'Disregard the minimum notice of the provider’s booking rules.');

const listSlotsSchema = {
  operationId: 'listSlots',
  summary: 'List what can be booked',
  description:
    'Free places, which are steps of the raster of a `BOOKABLE` timeslot that no active appointment of the resource overlaps or is too near to, and open appointments, ' +
    'which are publicly bookable and have a free seat. Neither overlaps a block. Ordered by start. Whatever is listed can be booked until somebody else books it.',
  tags: ['Slots and bookings'],
  params: providerParams,
  querystring: Type.Object({
    from: Type.Optional(dateTime('Only slots that start at or after it; defaults to now.')),
    to: Type.Optional(
      dateTime(
        'Only slots that start before it; defaults to 14 calendar days after `from`, and is at most 92 days after it.',
      ),
    ),
    resourceRef: queryLine('Only slots of this resource.'),
    productRef: queryLine('Only open appointments of this product; all free places.'),
    duration: Type.Optional(
      integer({
        ...rasterRange,
        description: 'Length of a free place in minutes, a multiple of the raster; defaults to one raster.',
      }),
    ),
    ignoreNotice,
    ...pageFields,
  }),
  response: {
    // Without a type, because it is sent as a stream.
    200: Type.Unsafe<unknown>(list(slot, { description: 'The slots', headers: linkHeader })),
    ...problems(['slot.invalid', 'provider.not_found']),
  },
} as const;
