import {
  type CreateAppointmentRequest,
  type CreateSeriesRequest,
  type DeleteAppointmentsRequest,
  type EmbeddedParticipation,
  ParticipationState,
  type UpdateAppointmentRequest,
} from '@scheduling/contracts/calendar/v1';
import type { Static } from 'typebox';
import { clearing, given, givenFields } from '../fields.ts';
import { toMetadata, toMetadataChange } from '../metadata.ts';
import { invalidRequest } from '../problem.ts';
import {
  type appointmentChange,
  commonFields,
  embeddedParticipation,
  type newAppointment,
  type newSeries,
} from './appointment-schemas.ts';
import { singleArgument } from './delete-arguments.ts';
import { toLocation } from './locations.ts';

type NewAppointment = Static<typeof newAppointment>;
type NewSeries = Static<typeof newSeries>;
type ProviderKey = 'crmId' | 'providerReference';

/** interface 4.2: a body with `series_data` creates a series. */
export function isSeries(body: NewAppointment | NewSeries): body is NewSeries {
  return 'series_data' in body && given(body.series_data) !== undefined;
}

/** How many appointments a series can have at most, without regard to the weekdays and to changes of the clock. */
export function countSlots({ series_data: span, from, to }: NewSeries): number {
  const [first, last] = [minutesOf(span.from), minutesOf(span.to)];
  const difference = (minutesOf(given(to) ?? span.to) - minutesOf(given(from) ?? span.from)) % minutesPerDay;
  // A window whose end is not after its start ends on the following day.
  const windowMinutes = difference > 0 ? difference : difference + minutesPerDay;
  const days = Math.floor(last / minutesPerDay) - Math.floor(first / minutesPerDay) + 1;
  return Math.max(0, Math.ceil((days * windowMinutes) / span.raster));
}

const minutesPerDay = 1_440;

/** Of the date and time as they are written, from the epoch. */
function minutesOf(dateTime: string): number {
  return Date.parse(`${dateTime.slice(0, 16)}Z`) / 60_000;
}

export function toCreateAppointment(body: NewAppointment): Omit<CreateAppointmentRequest, ProviderKey> {
  return {
    ...commonValues(body),
    reference: body.reference,
    start: body.start,
    end: body.end,
    participations: (body.participations ?? []).map(toEmbeddedParticipation),
  };
}

export function toAppointmentChange(
  body: Static<typeof appointmentChange>,
): Omit<UpdateAppointmentRequest, ProviderKey | 'appointmentReference' | 'sendMails'> {
  return {
    start: body.start,
    end: body.end,
    capacity: body.capacity,
    acceptBookings: body.acceptBookings,
    description: clearing(body.description),
    contactReference: clearing(body.contactReference),
    notes: clearing(body.notes),
    address: toLocation(body.address),
    noAddress: body.address === null || body.address === '',
    metadata: toMetadataChange(body.metadata),
  };
}

export function toCreateSeries(body: NewSeries): Omit<CreateSeriesRequest, ProviderKey> {
  return {
    ...commonValues(body),
    spanFrom: body.series_data.from,
    spanTo: body.series_data.to,
    raster: body.series_data.raster,
    weekdays: (body.series_data.weekdays ?? []).map(Number),
    windowFrom: given(body.from),
    windowTo: given(body.to),
  };
}

/** What to delete: one appointment or a series, named once, in the body or in the query. */
export function deletionTarget(
  body: Record<string, unknown> | null,
  query: Record<string, unknown>,
): NonNullable<DeleteAppointmentsRequest['target']> {
  const appointmentReference = singleArgument('appointmentReference', body, query);
  const seriesId = singleArgument('seriesId', body, query);
  if (appointmentReference !== undefined && seriesId === undefined)
    return { $case: 'appointmentReference', value: appointmentReference };
  if (appointmentReference === undefined && seriesId !== undefined) return { $case: 'seriesId', value: seriesId };
  const detail = 'exactly one of appointmentReference and seriesId is required';
  throw invalidRequest([
    { pointer: '/appointmentReference', detail },
    { pointer: '/seriesId', detail },
  ]);
}

function commonValues(body: NewAppointment | NewSeries) {
  // The defaults of interface 2.5: the message cannot express that they are absent, and the description defaults to the
  // product's name.
  const {
    productName,
    description = productName,
    capacity = 0,
    acceptBookings = false,
    ...fields
  } = givenFields({ properties: commonFields }, body);
  const address = toLocation(body.address);
  return { ...fields, description, capacity, acceptBookings, address, metadata: toMetadata(body.metadata) };
}

function toEmbeddedParticipation(body: Static<typeof embeddedParticipation>): EmbeddedParticipation {
  const metadata = toMetadata(body.metadata);
  return { ...givenFields(embeddedParticipation, body), state: ParticipationState[body.state], metadata };
}
