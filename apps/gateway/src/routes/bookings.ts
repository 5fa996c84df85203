import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import {
  type BookSlotRequest,
  type ChangeBookingRequest,
  type ChangeBookingResponse,
  ParticipationState,
} from '@scheduling/contracts/calendar/v1';
import type { FastifyRequest, FastifySchemaValidationError } from 'fastify';
import { type Static, type TObject, Type } from 'typebox';
import type { Clients } from '../clients.ts';
import {
  alternative,
  dateTime,
  given,
  givenFields,
  line,
  oneOf,
  optionalDateTime,
  optionalInteger,
  optionalLine,
  optionalText,
  pathReference,
  rasterRange,
  reference,
} from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { needsBook } from '../key-scopes.ts';
import { toMetadata } from '../metadata.ts';
import { type Fault, invalidRequest, type RequestError } from '../problem.ts';
import { problems, wrapped } from '../schemas.ts';
import { toRequestError } from '../validation.ts';
import { priceInput } from './appointment-schemas.ts';
import { customerExample, newCustomerFields } from './customers.ts';
import { jsonType } from './json-stream.ts';
import { participation, participationExample, participationMetadata, sendMails } from './participations.ts';
import { providerParams } from './path-parameters.ts';
import { ignoreNotice, slot, slotExample } from './slots.ts';
import { wrapJson } from './wrap-json.ts';

/** interface 10.2 and 10.3. */
export function bookingRoutes({ bookings }: Clients): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/provider/:providerRef/bookings',
      {
        schema: createBookingSchema,
        preValidation: refuseTwoPlaces,
        schemaErrorFormatter: nameBothPlaces,
        config: needsBook,
      },
      async (request, reply) => {
        const { params, body, query } = request;
        const answer = await bookings.bookSlot(params, {
          ...givenFields(createBookingSchema.querystring, query),
          place: toPlace(body),
          reference: body.reference,
          state: ParticipationState[body.state],
          customer: toCustomer(body),
          message: given(body.message),
          metadata: toMetadata(body.metadata),
        });
        return reply
          .code(answer.created ? 201 : 200)
          .type(jsonType)
          .send(wrapJson('booking', bookingJson(answer)));
      },
    );

    app.post(
      '/provider/:providerRef/bookings/:participationRef',
      { schema: changeBookingSchema, config: needsBook },
      async ({ params, body, query }, reply) => {
        const answer = await bookings.changeBooking(params, {
          ...givenFields(changeBookingSchema.querystring, query),
          place: toNewPlace(body),
          customer: toCustomer(body),
          message: given(body.message),
        });
        return reply.type(jsonType).send(wrapJson('booking', bookingJson(answer)));
      },
    );
  };
}

function bookingJson({ participationJson, slotJson }: ChangeBookingResponse): string {
  return `{"participation":${participationJson.toString()},"slot":${slotJson.toString()}}`;
}

function toPlace(body: InTimeslot | InAppointment): BookSlotRequest['place'] {
  if (isInAppointment(body)) return { $case: 'appointmentReference', value: body.appointmentReference };
  const { productName: description, ...timeslot } = givenFields({ properties: timeslotFields }, body);
  return { $case: 'timeslot', value: { ...timeslot, description } };
}

function isInAppointment(body: InTimeslot | InAppointment): body is InAppointment {
  return 'appointmentReference' in body && given(body.appointmentReference) !== undefined;
}

/** Before the fields of the other kind of body are removed, in which they would have a meaning. */
async function refuseTwoPlaces({ body }: FastifyRequest): Promise<void> {
  const fields = Object(body) as Record<string, unknown>;
  if (given(fields['appointmentReference']) !== undefined)
    refuse(withFields(fields, Object.keys(timeslotFields), notWith('appointmentReference')));
}

/** Who names no place learns of both ways to name one. */
function nameBothPlaces(errors: FastifySchemaValidationError[], part: string): RequestError {
  const message = 'is required, with start and productReference, unless appointmentReference is given';
  const [name, instancePath] = ['timeslotReference', '/timeslotReference'];
  const isMissing = ({ keyword, params }: FastifySchemaValidationError): boolean =>
    keyword === 'required' && params['missingProperty'] === name;
  return toRequestError(
    errors.map((error) => (isMissing(error) ? { ...error, keyword: 'place', instancePath, message } : error)),
    part,
  );
}

/**
 * Another slot, or none if a hold is confirmed. A field that has no meaning for what the others say is an error,
 * because the caller expects something of it.
 */
function toNewPlace(body: Static<typeof changeBody>): ChangeBookingRequest['place'] {
  const {
    appointmentReference,
    timeslotReference,
    start,
    productName: description,
    duration,
    productReference,
    price,
    contactReference,
  } = givenFields(changeBody, body);
  const confirmation = ['state', ...Object.keys(customerFields)];
  if (appointmentReference !== undefined) {
    refuse(withFields(body, [...Object.keys(timeslotFields), ...confirmation], notWith('appointmentReference')));
    return { $case: 'appointmentReference', value: appointmentReference };
  }
  if (timeslotReference !== undefined) {
    const missing = start === undefined ? [{ pointer: '/start', detail: 'is required with timeslotReference' }] : [];
    refuse([...missing, ...withFields(body, confirmation, notWith('timeslotReference'))]);
    return {
      $case: 'timeslot',
      value: { timeslotReference, start: start!, description, duration, productReference, price, contactReference },
    };
  }
  if (body.state !== 'BOOKED') {
    refuse([
      {
        pointer: '/timeslotReference',
        detail:
          'exactly one of timeslotReference with start, appointmentReference, and the state BOOKED for a hold is required',
      },
    ]);
  }
  refuse(withFields(body, Object.keys(timeslotFields), 'can be given only together with timeslotReference'));
  return undefined;
}

const notWith = (field: string): string => `cannot be given together with ${field}`;

/** A fault for each of the fields that is given. */
function withFields(body: object, names: string[], detail: string): Fault[] {
  return names
    .filter((name) => given((body as Record<string, unknown>)[name]) !== undefined)
    .map((name) => ({ pointer: `/${name}`, detail }));
}

function refuse(faults: Fault[]): void {
  if (faults.length > 0) throw invalidRequest(faults);
}

function toCustomer({ customerReference, customer }: CustomerFields): BookSlotRequest['customer'] {
  const reference = given(customerReference);
  if (reference !== undefined && given(customer) !== undefined) {
    const detail = 'only one of customerReference and customer can be given';
    refuse([
      { pointer: '/customerReference', detail },
      { pointer: '/customer', detail },
    ]);
  }
  if (reference !== undefined) return { $case: 'customerReference', value: reference };
  if (!customer) return undefined;
  const value = { ...givenFields(newCustomer, customer), metadata: toMetadata(customer.metadata) };
  return { $case: 'newCustomer', value };
}

const newCustomer = Type.Object(newCustomerFields);

const customerFields = {
  customerReference: Type.Optional(optionalLine({ description: 'A customer of the provider.' })),
  customer: Type.Optional(
    Type.Unsafe<Static<typeof newCustomer> | null>({
      ...newCustomer,
      type: ['object', 'null'],
      description:
        'Instead of `customerReference`: created with the booking, unless the reference exists; an existing customer stays unchanged.',
    }),
  ),
};
type CustomerFields = Static<TObject<typeof customerFields>>;

const message = Type.Optional(optionalText({ description: 'Text for the e-mail to the customer.' }));

const commonFields = {
  reference: reference({ description: 'Unique; of the participation.' }),
  ...customerFields,
  state: oneOf(['RESERVED', 'REQUESTED', 'BOOKED'], { description: 'Only a `RESERVED` one may have no customer yet.' }),
  message,
  metadata: participationMetadata,
};

const detailFields = {
  duration: Type.Optional(
    optionalInteger({
      ...rasterRange,
      description: 'Length in minutes, a multiple of the raster; defaults to one raster.',
    }),
  ),
  productName: Type.Optional(optionalLine({ description: 'Name of the product; used as the description.' })),
  price: Type.Optional(priceInput),
  contactReference: Type.Optional(optionalLine({ description: 'Reference of the responsible user.' })),
};

const timeslotFields = {
  timeslotReference: line({ description: 'The timeslot.' }),
  start: dateTime(),
  productReference: line(),
  ...detailFields,
};
const inTimeslot = Type.Object(
  { ...timeslotFields, ...commonFields },
  { title: 'TimeslotBooking', description: 'Books a step of a timeslot.' },
);
const inAppointment = Type.Object(
  { appointmentReference: line({ description: 'The open appointment.' }), ...commonFields },
  { title: 'AppointmentBooking', description: 'Books a seat in an open appointment.' },
);
type InTimeslot = Static<typeof inTimeslot>;
type InAppointment = Static<typeof inAppointment>;

const changeBody = Type.Object(
  {
    timeslotReference: Type.Optional(
      optionalLine({ description: 'The timeslot in which the new slot is; together with `start`.' }),
    ),
    start: Type.Optional(optionalDateTime()),
    productReference: Type.Optional(
      optionalLine({
        description: 'Defaults to that of the current appointment, as do its name, price and contact.',
      }),
    ),
    ...detailFields,
    appointmentReference: Type.Optional(
      optionalLine({ description: 'Instead of `timeslotReference`: the open appointment to which the booking moves.' }),
    ),
    state: Type.Optional(
      Type.Unsafe<'BOOKED' | null>({
        type: ['string', 'null'],
        enum: ['BOOKED', null],
        description: 'Confirms a hold.',
      }),
    ),
    ...customerFields,
    message,
  },
  { title: 'BookingChange', examples: [{ timeslotReference: 't-1@acme', start: '2030-05-06T10:30' }] },
);

const booking = Type.Object({ participation, slot }, { title: 'Booking' });
const generatedReference = '0197c4ce-5a3e-7a41-9a37-0d6c3f1f8b1e@scheduling';
const bookingExample = {
  participation: {
    ...participationExample,
    reference: 'b-2@acme',
    appointmentReference: generatedReference,
    customerReference: 'c-2@acme',
  },
  slot: {
    ...slotExample,
    appointmentReference: generatedReference,
    productReference: 'haircut@acme',
    description: 'Haircut',
    seats: 0,
  },
};

const createBookingSchema = {
  operationId: 'createBooking',
  summary: 'Book a slot',
  description:
    'Takes a seat in the open appointment of the slot, or makes an appointment there. If the `reference` exists for the same place and customer, the booking is ' +
    'returned as it is. `slot.unavailable` has a `reason`: `taken`, `full`, `private`, `closed`, `off_raster`, `blocked`, `too_soon` or `too_late`.',
  tags: ['Slots and bookings'],
  params: providerParams,
  headers: idempotencyHeaders,
  querystring: Type.Object({ sendMails, ignoreNotice }),
  body: alternative('appointmentReference', inAppointment, inTimeslot, {
    examples: [
      {
        reference: 'b-2@acme',
        timeslotReference: 't-1@acme',
        start: '2030-05-06T09:00',
        productReference: 'haircut@acme',
        productName: 'Haircut',
        customer: {
          customerReference: 'c-2@acme',
          userName: customerExample.userName,
          email: customerExample.email,
          mobile: customerExample.mobile,
        },
        state: 'BOOKED',
        message: 'See you then!',
        metadata: { channel: 'phone' },
      },
    ],
  }),
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(wrapped('booking', booking, 'The booking already exists', bookingExample)),
    201: Type.Unsafe<unknown>(wrapped('booking', booking, 'Booked', bookingExample)),
    ...problems(
      [
        'booking.invalid',
        'provider.not_found',
        'timeslot.not_found',
        'appointment.not_found',
        'customer.not_found',
        'participation.not_found',
        'slot.unavailable',
        'participation.reference_taken',
      ],
      { body: true, idempotencyKey: true },
    ),
  },
} as const;

const changeBookingSchema = {
  operationId: 'changeBooking',
  summary: 'Move a booking to another slot, or confirm a hold',
  description:
    'With a slot, a `BOOKED` or `REQUESTED` participation moves there, and its customer gets one e-mail, which calendar programs show as the same event. With the state `BOOKED`, a ' +
    '`RESERVED` one is confirmed, for the customer in the request if it has none yet. The fields of the two cannot be combined. A rejected change has no effect.',
  tags: ['Slots and bookings'],
  params: Type.Object({
    ...providerParams.properties,
    participationRef: pathReference('Reference of the participation.'),
  }),
  headers: idempotencyHeaders,
  querystring: Type.Object({ sendMails, ignoreNotice }),
  body: changeBody,
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(
      wrapped('booking', booking, 'The booking', {
        ...bookingExample,
        slot: { ...bookingExample.slot, start: '2030-05-06T08:30:00Z', end: '2030-05-06T09:00:00Z' },
      }),
    ),
    ...problems(
      [
        'booking.invalid',
        'provider.not_found',
        'participation.not_found',
        'timeslot.not_found',
        'appointment.not_found',
        'customer.not_found',
        'slot.unavailable',
        'participation.move_not_allowed',
        'participation.capacity_exhausted',
        'appointment.cancelled',
        'booking.customer_missing',
      ],
      { body: true, idempotencyKey: true },
    ),
  },
} as const;
