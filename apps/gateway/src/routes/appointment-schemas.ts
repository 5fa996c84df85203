import { type Static, Type } from 'typebox';
import {
  alternative,
  capacityRange,
  dateTime,
  email,
  flag,
  integer,
  line,
  maxMessageLength,
  oneOf,
  optionalBody,
  optionalBoolean,
  optionalDateTime,
  optionalInteger,
  optionalLine,
  optionalText,
  pathReference,
  queryLine,
  rasterRange,
  reference,
} from '../fields.ts';
import { idempotencyHeaders } from '../idempotency-key.ts';
import { metadataFilter, metadataInput } from '../metadata.ts';
import { linkHeader, pageFields } from '../paging.ts';
import { apiInfoValue, list, problems, wrapped } from '../schemas.ts';
import { maxListLength } from '../validation.ts';
import { appointment, appointmentExample, appointmentStates } from './appointment-presentation.ts';
import { addressInput } from './locations.ts';
import {
  canceledParticipationExample,
  participationMetadata,
  participationStates,
  sendMails,
} from './participations.ts';
import { providerParams } from './path-parameters.ts';

interface PriceInput {
  value: number;
  currency: 'EUR' | 'CHF';
}

const maxPrice = 1_000_000_000;

export const priceInput = Type.Unsafe<PriceInput | null>({
  title: 'NewPrice',
  type: ['object', 'null'],
  required: ['value', 'currency'],
  properties: {
    value: { type: 'number', minimum: -maxPrice, maximum: maxPrice },
    currency: { type: 'string', enum: ['EUR', 'CHF'] },
  },
});

export const commonFields = {
  // Defaults are stated in the description: generated clients treat a field with `default` as required.
  capacity: Type.Optional(
    optionalInteger({ ...capacityRange, description: 'Maximum number of participants; defaults to 0.' }),
  ),
  acceptBookings: Type.Optional(
    optionalBoolean({ description: 'Whether it is publicly bookable; defaults to false.' }),
  ),
  resourceReference: reference(),
  productReference: line(),
  productName: Type.Optional(optionalLine({ description: 'Name of the product; used as the description.' })),
  description: Type.Optional(optionalText({ description: 'Takes precedence over `productName`.' })),
  contactReference: Type.Optional(optionalLine({ description: 'Reference of the responsible user.' })),
  notes: Type.Optional(optionalText()),
  address: Type.Optional(addressInput),
  price: Type.Optional(priceInput),
  metadata: metadataInput('What the CRM notes of the appointment, or of each one of a series.'),
};

/** interface 2.6. */
export const embeddedParticipation = Type.Object(
  {
    reference: reference(),
    name: line(),
    email: email(),
    mobile: Type.Optional(optionalLine()),
    note: Type.Optional(optionalText()),
    state: oneOf(participationStates),
    metadata: participationMetadata,
  },
  { title: 'NewAppointmentParticipation' },
);

export const newAppointment = Type.Object(
  {
    reference: reference({ description: 'Unique.' }),
    start: dateTime(),
    end: dateTime(),
    ...commonFields,
    participations: Type.Optional(
      Type.Unsafe<Static<typeof embeddedParticipation>[] | null>({
        type: ['array', 'null'],
        items: embeddedParticipation,
        maxItems: maxListLength,
        description: 'Participants without a customer record. They are never rejected for lack of capacity.',
      }),
    ),
  },
  { title: 'NewAppointment' },
);

export const newSeries = Type.Object(
  {
    reference: Type.Optional(Type.Unknown({ description: 'Ignored: references of the appointments are generated.' })),
    from: Type.Optional(optionalDateTime()),
    to: Type.Optional(optionalDateTime()),
    series_data: Type.Object(
      {
        from: dateTime(),
        to: dateTime(),
        raster: integer({ ...rasterRange, description: 'Length of one appointment in minutes.' }),
        weekdays: Type.Optional(
          Type.Unsafe<string[] | null>({
            type: ['array', 'null'],
            items: { type: 'string', enum: ['1', '2', '3', '4', '5', '6', '7'] },
            maxItems: 7,
            description: '`1` is Monday. Required if the series spans more than one day.',
          }),
        ),
      },
      { title: 'SeriesData', description: 'First and last day, slot length and weekdays of the series.' },
    ),
    ...commonFields,
  },
  {
    title: 'NewSeries',
    description: 'The times of day of `from` and `to` define the daily window; they default to those of `series_data`.',
  },
);

export const listAppointmentsSchema = {
  operationId: 'listAppointments',
  summary: 'List the appointments of a provider',
  description:
    'Active and cancelled appointments unless `state` is given, ordered by start. Returns all of them unless `limit` is given.',
  tags: ['Appointments'],
  params: providerParams,
  querystring: Type.Object({
    productRef: queryLine('Only appointments of this product.'),
    resourceRef: queryLine('Only appointments of this resource.'),
    state: Type.Optional(oneOf(appointmentStates, { description: 'Only appointments in this state.' })),
    includeArchived: flag(false, 'Include archived appointments.'),
    from: Type.Optional(dateTime('Only appointments that end after it.')),
    to: Type.Optional(dateTime('Only appointments that start before it.')),
    metadata: metadataFilter('appointments'),
    ...pageFields,
  }),
  response: {
    // Without a type, because it is sent as a stream.
    200: Type.Unsafe<unknown>(list(appointment, { description: 'The appointments', headers: linkHeader })),
    ...problems(['appointment.invalid', 'provider.not_found']),
  },
} as const;

const appointmentParams = Type.Object({
  ...providerParams.properties,
  appointmentRef: pathReference('Reference of the appointment.'),
});

export const getAppointmentSchema = {
  operationId: 'getAppointment',
  summary: 'Get an appointment',
  description: 'An appointment with all its participations.',
  tags: ['Appointments'],
  params: appointmentParams,
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(wrapped('appointment', appointment, 'The appointment')),
    ...problems(['provider.not_found', 'appointment.not_found']),
  },
} as const;

const singleExample = {
  'api-info': apiInfoValue,
  appointment: { ...appointmentExample, capacity: 1, participations: [] },
};

const seriesExample = [
  {
    ...appointmentExample,
    reference: '6c9b7b57-6f0c-4f5c-8f25-0d6c3f1f8b1e@scheduling',
    acceptBookings: false,
    address: null,
    capacity: 1,
    description: null,
    start: '2030-06-03T07:00:00Z',
    end: '2030-06-03T07:30:00Z',
    participations: [],
    metadata: null,
    price: null,
    seriesId: '0b9e6f6e-51c8-4b43-8d53-8f7f9e2d5c10',
  },
];

/**
 * The same for every success, because a generated client parses all of them as the first one. Without a type, because
 * the JSON of calendar is sent as it is.
 */
function appointmentOrSeries(description: string, examples: unknown[]) {
  return Type.Unsafe<unknown>({
    if: { type: 'array' },
    // eslint-disable-next-line unicorn/no-thenable -- the keyword of JSON Schema
    then: Type.Array(appointment, { description: 'The appointments of a series, ordered by start' }),
    else: { ...wrapped('appointment', appointment, 'A single appointment'), title: 'CreateAppointmentResponse' },
    description,
    examples,
  });
}

export const createAppointmentSchema = {
  operationId: 'createAppointment',
  summary: 'Create an appointment or a series',
  description:
    'A body with `series_data` creates a series and returns an array. If the `reference` exists with the same content, the existing ' +
    'appointment is returned. No e-mail is sent.',
  tags: ['Appointments'],
  params: providerParams,
  headers: idempotencyHeaders,
  body: alternative('series_data', newSeries, newAppointment, {
    examples: [
      {
        reference: 'a-1@acme',
        start: '2030-05-06T09:00',
        end: '2030-05-06T09:30',
        capacity: 1,
        acceptBookings: true,
        resourceReference: 'room-1@acme',
        productReference: 'haircut@acme',
        productName: 'Haircut',
        address: { city: 'Berlin', zip: '10115', country: 'DE', street: 'Beispielstraße', number: '1' },
        price: { value: 49.9, currency: 'EUR' },
        metadata: { room: '2' },
      },
      {
        from: '2030-06-03T09:00',
        to: '2030-06-03T10:00',
        capacity: 1,
        resourceReference: 'room-1@acme',
        productReference: 'haircut@acme',
        series_data: { from: '2030-06-03T00:00', to: '2030-06-14T23:59', raster: 30, weekdays: ['1', '3'] },
      },
    ],
  }),
  response: {
    200: appointmentOrSeries('The appointment already exists; never a series', [singleExample]),
    201: appointmentOrSeries('Created', [singleExample, seriesExample]),
    ...problems(
      [
        'appointment.invalid',
        'series.empty',
        'series.too_long',
        'provider.not_found',
        'appointment.not_found',
        'series.not_found',
        'appointment.reference_taken',
        'participation.reference_taken',
      ],
      { body: true, idempotencyKey: true },
    ),
  },
} as const;

export const appointmentChange = Type.Object(
  {
    start: Type.Optional(dateTime()),
    end: Type.Optional(dateTime()),
    capacity: Type.Optional(
      integer({ ...capacityRange, description: 'Maximum number of participants. Nobody loses a seat.' }),
    ),
    acceptBookings: Type.Optional(Type.Boolean({ description: 'Whether it is publicly bookable.' })),
    description: Type.Optional(optionalText()),
    contactReference: Type.Optional(optionalLine({ description: 'Reference of the responsible user.' })),
    notes: Type.Optional(optionalText()),
    address: Type.Optional(addressInput),
    metadata: metadataInput('Replaces all pairs; `null` clears them.'),
  },
  { title: 'AppointmentChange', examples: [{ capacity: 2, notes: null }] },
);

export const updateAppointmentSchema = {
  operationId: 'updateAppointment',
  summary: 'Update an appointment',
  description:
    'Absent fields keep their value; `null` clears a text or the address. If the time, the description or the address changes, participants who are `BOOKED` or ' +
    '`REQUESTED` get an e-mail, which calendar programs show as the same event.',
  tags: ['Appointments'],
  params: appointmentParams,
  querystring: Type.Object({ sendMails }),
  body: appointmentChange,
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(
      wrapped('appointment', appointment, 'The updated appointment', { ...appointmentExample, participations: [] }),
    ),
    ...problems(['appointment.invalid', 'provider.not_found', 'appointment.not_found', 'appointment.cancelled'], {
      body: true,
    }),
  },
} as const;

const appointmentReference = Type.Optional(optionalLine());
const message = Type.Optional(optionalText({ description: 'Text for the cancellation e-mail.' }));
const argumentsDescription = 'Arguments are accepted in the body or in the query.';

export const cancelAppointmentSchema = {
  operationId: 'cancelAppointment',
  summary: 'Cancel an appointment',
  description: `Also cancels all its participations and notifies the participants. Repeating it has no effect and sends no e-mail. ${argumentsDescription}`,
  tags: ['Appointments'],
  params: providerParams,
  querystring: Type.Object({
    appointmentReference: queryLine('Reference of the appointment.'),
    message: Type.Optional(
      Type.String({ maxLength: maxMessageLength, format: 'text', description: 'Text for the cancellation e-mail.' }),
    ),
  }),
  body: optionalBody(
    { appointmentReference, message },
    { title: 'Cancellation', examples: [{ appointmentReference: 'a-1@acme' }] },
  ),
  response: {
    // Without a type, because the JSON of calendar is sent as it is.
    200: Type.Unsafe<unknown>(
      wrapped('appointment', appointment, 'The cancelled appointment', {
        ...appointmentExample,
        participations: [canceledParticipationExample],
        state: 'CANCELLED',
      }),
    ),
    ...problems(['provider.not_found', 'appointment.not_found'], { body: true }),
  },
} as const;

export const deleteAppointmentsSchema = {
  operationId: 'deleteAppointmentsWithoutNotification',
  summary: 'Delete an appointment or a series without notification',
  description: `For administrative corrections: nobody is notified. ${argumentsDescription}`,
  tags: ['Appointments'],
  params: providerParams,
  querystring: Type.Object({
    appointmentReference: queryLine('Reference of the appointment.'),
    seriesId: queryLine('ID of the series; all its appointments are deleted.'),
  }),
  body: optionalBody(
    { appointmentReference, seriesId: Type.Optional(optionalLine()) },
    { title: 'Deletion', examples: [{ appointmentReference: 'a-1@acme' }] },
  ),
  response: {
    204: Type.Null({ description: 'Deleted' }),
    ...problems(['provider.not_found', 'appointment.not_found', 'series.not_found'], { body: true }),
  },
} as const;
