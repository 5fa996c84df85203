import { collectFieldErrors, DomainError } from '@scheduling/errors';
import { transactOnce, withRows } from '@scheduling/postgres';
import { randomUUIDv7 } from 'node:crypto';
import { contentDigest } from '../content-digest.ts';
import { parseDateTime, parseTimeOfDay, toDate, toInstant } from '../date-time.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { appendCreations, countOfCreation } from '../events/append-events.ts';
import { requireProvider } from '../provider/provider-copy.ts';
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
  const { crmId } = request;
  const provider = await requireProvider(dependencies, request);
  const slots = takeSlots(readPlan(request, provider.timeZone));
  const seriesId = randomUUIDv7();
  const rows = toRows(request, provider.id, seriesId, slots);
  return transactOnce(dependencies.database, crmId, {
    work: async (tx): Promise<CreatedSeries> => {
      await withRows(tx.insertInto('appointment'), rows, { json: ['address'] }).execute();
      await appendCreations(tx, rows);
      const ids = rows.map(({ id }) => id);
      return { seriesId, appointments: await readAppointments(dependencies, tx, crmId, ids) };
    },
    keep: () => ({ resourceIds: [seriesId], created: true }),
    replay: async (tx, { resourceIds }) => {
      const left = await tx
        .selectFrom('appointment')
        .select('id')
        .where('crmId', '=', crmId)
        .where('providerId', '=', provider.id)
        .where('seriesId', '=', resourceIds[0]!)
        .orderBy('startsAt')
        .execute();
      if (left.length === 0) throw new DomainError('series.not_found');
      const ids = left.map(({ id }) => id);
      return { seriesId: resourceIds[0]!, appointments: await readAppointments(dependencies, tx, crmId, ids) };
    },
  });
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

function toRows(request: NewSeries, providerId: string, seriesId: string, slots: Slot[]) {
  const shared = {
    crmId: request.crmId,
    providerId,
    seriesId,
    taken: 0,
    eventCount: countOfCreation,
    // A generated reference is never retried.
    contentDigest: contentDigest([seriesId]),
    ...detailColumns(request),
  };
  return slots.map(({ startsAt, endsAt }) => ({
    ...shared,
    id: randomUUIDv7(),
    reference: `${randomUUIDv7()}@scheduling`,
    startsAt: toDate(startsAt),
    endsAt: toDate(endsAt),
  }));
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
