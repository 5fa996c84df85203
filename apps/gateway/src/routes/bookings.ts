import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { type BookSlotRequest, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { type Static, Type } from 'typebox';
import type { Clients } from '../clients.ts';
import { alternative, dateTime, given, givenFields, line, oneOf, optionalInteger, optionalLine, optionalText, rasterRange } from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { invalidRequest } from '../problem.ts';
import { apiInfoValue, problems, wrapped } from '../schemas.ts';
import { priceInput } from './appointment-schemas.ts';
import { customerExample, newCustomerFields } from './customers.ts';
import { participation, participationExample, presentParticipation, sendMails } from './participations.ts';
import { providerParams } from './path-parameters.ts';
import { ignoreNotice, slot, slotExample } from './slots.ts';

/** interface 10.2. */
export function bookingRoutes({ bookings }: Clients): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/provider/:providerRef/bookings', { schema: createBookingSchema }, async (request, reply) => {
      const { params, body, query } = request;
      const answer = await bookings.bookSlot({
        crmId: params.crmId,
        providerReference: params.providerRef,
        place: toPlace(body),
        reference: body.reference,
        state: ParticipationState[body.state],
        customer: toCustomer(body),
        message: given(body.message),
        ...query,
      });
      const booking = { participation: presentParticipation(answer.participation!), slot: JSON.parse(answer.slotJson.toString()) as Static<typeof slot> };
      return reply.code(answer.created ? 201 : 200).send({ 'api-info': apiInfoValue, booking });
    });
  };
}

function toPlace(body: InTimeslot | InAppointment): BookSlotRequest['place'] {
  if (isInAppointment(body)) return { $case: 'appointmentReference', value: body.appointmentReference };
  const { productName: description, ...timeslot } = givenFields({ properties: timeslotFields }, body);
  return { $case: 'timeslot', value: { ...timeslot, description } };
}

function isInAppointment(body: InTimeslot | InAppointment): body is InAppointment {
  return 'appointmentReference' in body && body.appointmentReference !== null;
}

function toCustomer({ customerReference, customer }: Static<typeof commonBody>): BookSlotRequest['customer'] {
  const reference = given(customerReference);
  if (reference !== undefined && given(customer) !== undefined) {
    const detail = 'only one of customerReference and customer can be given';
    throw invalidRequest([{ pointer: '/customerReference', detail }, { pointer: '/customer', detail }]);
  }
  if (reference !== undefined) return { $case: 'customerReference', value: reference };
  return customer ? { $case: 'newCustomer', value: givenFields(newCustomer, customer) } : undefined;
}

const newCustomer = Type.Object(newCustomerFields);

const commonFields = {
  reference: line({ description: 'Unique; of the participation.' }),
  customerReference: Type.Optional(optionalLine({ description: 'A customer of the provider.' })),
  customer: Type.Optional(
    Type.Unsafe<Static<typeof newCustomer> | null>({
      ...newCustomer,
      type: ['object', 'null'],
      description: 'Instead of `customerReference`: created with the booking, unless the reference exists; an existing customer stays unchanged.',
    }),
  ),
  state: oneOf(['RESERVED', 'REQUESTED', 'BOOKED'], { description: 'Only a `RESERVED` one may have no customer yet.' }),
  message: Type.Optional(optionalText({ description: 'Text for the e-mail to the customer.' })),
};
const commonBody = Type.Object(commonFields);

const timeslotFields = {
  timeslotReference: line({ description: 'The timeslot.' }),
  start: dateTime(),
  duration: Type.Optional(optionalInteger({ ...rasterRange, description: 'Length in minutes, a multiple of the raster; defaults to one raster.' })),
  productReference: line(),
  productName: Type.Optional(optionalLine({ description: 'Name of the product; used as the description.' })),
  price: Type.Optional(priceInput),
  contactReference: Type.Optional(optionalLine({ description: 'Reference of the responsible user.' })),
};
const inTimeslot = Type.Object({ ...timeslotFields, ...commonFields }, { title: 'TimeslotBooking', description: 'Books a step of a timeslot.' });
const inAppointment = Type.Object(
  { appointmentReference: line({ description: 'The open appointment.' }), ...commonFields },
  { title: 'AppointmentBooking', description: 'Books a seat in an open appointment.' },
);
type InTimeslot = Static<typeof inTimeslot>;
type InAppointment = Static<typeof inAppointment>;

const booking = Type.Object({ participation, slot }, { title: 'Booking' });
const bookingExample = {
  participation: participationExample,
  slot: { ...slotExample, appointmentReference: 'a-1@acme', productReference: 'haircut@acme', description: 'Haircut', seats: 0 },
};

const createBookingSchema = {
  operationId: 'createBooking',
  summary: 'Book a slot',
  description:
    'Takes a seat in the open appointment of the slot, or makes an appointment there. If the `reference` exists for the same place and customer, the booking is ' +
    'returned as it is. `slot.unavailable` has a `reason`: `taken`, `full`, `private`, `closed`, `too_soon` or `too_late`.',
  tags: ['Slots and bookings'],
  params: providerParams,
  headers: idempotencyHeaders,
  querystring: Type.Object({ sendMails, ignoreNotice }),
  body: alternative('appointmentReference', inAppointment, inTimeslot, {
    examples: [
      {
        reference: 'b-1@acme',
        timeslotReference: 't-1@acme',
        start: '2030-05-06T09:00',
        productReference: 'haircut@acme',
        productName: 'Haircut',
        customer: { customerReference: customerExample.customerReference, userName: customerExample.userName, email: customerExample.email, mobile: customerExample.mobile },
        state: 'BOOKED',
        message: 'See you then!',
      },
    ],
  }),
  response: {
    200: wrapped('booking', booking, 'The booking already exists', bookingExample),
    201: wrapped('booking', booking, 'Booked', bookingExample),
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
