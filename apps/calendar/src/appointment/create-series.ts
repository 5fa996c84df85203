import { collectFieldErrors, DomainError } from '@scheduling/errors';
import { originJson } from '@scheduling/messaging';
import { randomUUIDv7 } from 'node:crypto';
import { contentDigest } from '../content-digest.ts';
import { parseDateTime, parseTimeOfDay, toDate, toInstant } from '../date-time.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { type BookingCall, settle } from '../participation/settle.ts';
import { type ProviderRow, requireProvider } from '../provider/provider-copy.ts';
import { type AppointmentDetails, detailColumns, readAppointments } from './appointment.ts';
import { daysOf, expandSeries, type SeriesPlan, type Slot } from './expand-series.ts';

export interface NewSeries extends AppointmentDetails {
  crmId: string;
  providerReference: string;
  /** Date-times as in the interface, in the provider's time zone. */
  spanFrom: string;
  spanTo: string;
  /** Minutes of real time. */
  raster: number;
  /** ISO weekdays; needed when the span has more than one day. */
  weekdays: number[];
  /** Date-times; only the time of day is used. */
  windowFrom?: string | undefined;
  windowTo?: string | undefined;
}

export interface CreatedSeries {
  seriesId: string;
  /** By start; objects of the REST interface (2.5), as JSON. */
  appointments: string[];
}

export const maxAppointments = 1_000;
/**
 * A series with one appointment a week reaches the other limit first; this one bounds the search through a span in
 * which no day has an appointment.
 */
const maxDays = 8_000;

/**
 * Creates all appointments of a series or none (interface 4.2, "Create series"); sends no mail. Rejects with
 * `appointment.invalid`, `series.too_long`, `series.empty` or `provider.not_found`.
 */
export async function createSeries(dependencies: CalendarDependencies, request: NewSeries): Promise<CreatedSeries> {
  const { crmId, providerReference } = request;
  const seriesId = randomUUIDv7();
  const { id, appointments } = await settle(dependencies, {
    provider: { crmId, providerReference },
    call: (provider) => creationCall(provider, request, seriesId, dependencies.archiveAfterDays),
    read: (id) => readSeries(dependencies, request, id),
    notFound: 'series.not_found',
    busy: 'appointment.busy',
  });
  return { seriesId: id, appointments };
}

function creationCall(
  { timeZone }: ProviderRow,
  request: NewSeries,
  seriesId: string,
  archiveAfterDays: number,
): BookingCall {
  const appointments = takeSlots(readPlan(request, timeZone)).map(({ startsAt, endsAt }) => ({
    id: randomUUIDv7(),
    reference: `${randomUUIDv7()}@scheduling`,
    startsAt: toDate(startsAt),
    endsAt: toDate(endsAt),
  }));
  // A generated reference is never retried.
  const digest = contentDigest([seriesId]).toString('hex');
  const { metadata } = request;
  const shared = { ...detailColumns(request), metadata, contentDigest: digest, archiveAfterDays, origin: originJson() };
  return { name: 'create_series', request: { ...shared, seriesId, appointments }, locks: seriesId };
}

/** Those that are left, as they are now. */
async function readSeries(
  dependencies: CalendarDependencies,
  { crmId, providerReference }: NewSeries,
  seriesId: string,
) {
  const { id: providerId } = await requireProvider(dependencies, { crmId, providerReference });
  const left = await dependencies.database.kysely
    .selectFrom('appointment')
    .select('id')
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .where('seriesId', '=', seriesId)
    .orderBy('startsAt')
    .execute();
  const ids = left.map(({ id }) => id);
  return ids.length === 0 ? undefined : { appointments: await readAppointments(dependencies, crmId, ids) };
}

function readPlan(request: NewSeries, timeZone: string): SeriesPlan {
  const errors = collectFieldErrors();
  const spanFrom = parseDateTime(request.spanFrom, timeZone);
  const spanTo = parseDateTime(request.spanTo, timeZone);
  if (spanTo <= spanFrom) errors.add('/series_data/to', 'must be after from');
  errors.throwIfAny('appointment.invalid');

  const plan: SeriesPlan = {
    timeZone,
    spanFrom: toInstant(spanFrom),
    spanTo: toInstant(spanTo),
    windowFrom: parseTimeOfDay(request.windowFrom ?? request.spanFrom, timeZone),
    windowTo: parseTimeOfDay(request.windowTo ?? request.spanTo, timeZone),
    raster: request.raster,
    weekdays: request.weekdays.length === 0 ? undefined : new Set(request.weekdays),
  };
  const days = daysOf(plan);
  if (days > 1 && plan.weekdays === undefined)
    errors.add('/series_data/weekdays', 'is required when the series spans more than one day');
  errors.throwIfAny('appointment.invalid');
  if (days > maxDays) throw seriesTooLong();
  return plan;
}

function takeSlots(plan: SeriesPlan): Slot[] {
  const slots = expandSeries(plan)
    .take(maxAppointments + 1)
    .toArray();
  if (slots.length > maxAppointments) throw seriesTooLong();
  if (slots.length === 0) {
    throw new DomainError('series.empty', {
      errors: [
        { pointer: '/series_data', detail: 'no slot of the raster fits into the daily window on a listed weekday' },
      ],
    });
  }
  return slots;
}

function seriesTooLong(): DomainError {
  return new DomainError('series.too_long', {
    errors: [
      {
        pointer: '/series_data',
        detail: `has more than ${maxAppointments} appointments, or more than ${maxDays} days`,
      },
    ],
  });
}
