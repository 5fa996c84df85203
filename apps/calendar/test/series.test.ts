import type { CreateSeriesRequest } from '@scheduling/contracts/calendar/v1';
import { patiently } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  freshReference,
  listAppointments,
  owned,
  readAppointments,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';

let calendar: CalendarUnderTest;

beforeAll(async () => {
  calendar = await startCalendar();
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

function newSeries(overrides: Partial<CreateSeriesRequest> = {}): CreateSeriesRequest {
  return {
    ...owned,
    spanFrom: '2026-03-27T09:00',
    spanTo: '2026-03-31T11:00',
    raster: 60,
    weekdays: [1, 2, 3, 4, 5, 6, 7],
    capacity: 3,
    acceptBookings: true,
    resourceReference: 'resource@test',
    productReference: freshReference('product'),
    ...overrides,
  };
}

async function startsOf(overrides: Partial<CreateSeriesRequest>): Promise<string[]> {
  const request = newSeries(overrides);
  // A repeated request creates another series and returns only that one.
  const { json } = await patiently(() => calendar.appointments.createSeries(request));
  return readAppointments(json).map(({ start }) => start.slice(0, 16));
}

function listed(productReference: string) {
  return listAppointments(calendar, { ...owned, includeArchived: true, productReference });
}

describe('a series', () => {
  it('keeps the wall-clock time across a DST change', async () => {
    const request = newSeries({ description: 'Course', price: { value: 5, currency: 'EUR' }, weekdays: [6, 7] });
    const { seriesId, json } = await calendar.appointments.createSeries(request);
    const appointments = readAppointments(json);
    expect(appointments.map(({ start }) => start.slice(0, 16))).toEqual([
      '2026-03-28T08:00',
      '2026-03-28T09:00',
      '2026-03-29T07:00',
      '2026-03-29T08:00',
    ]);
    const [first] = appointments;
    expect(first).toMatchObject({
      seriesId,
      capacity: 3,
      acceptBookings: true,
      description: 'Course',
      participations: [],
    });
    expect(new Set(appointments.map((appointment) => appointment.reference)).size).toBe(4);
    expect(await listed(request.productReference)).toEqual(appointments);
  });

  it('of a single day needs no weekdays', async () => {
    expect(
      await startsOf({ spanFrom: '2026-06-01T09:00', spanTo: '2026-06-01T10:59', raster: 30, weekdays: [] }),
    ).toEqual(['2026-06-01T07:00', '2026-06-01T07:30', '2026-06-01T08:00']);
  });

  it('of a single day may reach midnight', async () => {
    expect(await startsOf({ spanFrom: '2027-06-14T20:00', spanTo: '2027-06-15T00:00', weekdays: [] })).toEqual([
      '2027-06-14T18:00',
      '2027-06-14T19:00',
      '2027-06-14T20:00',
      '2027-06-14T21:00',
    ]);
  });

  it('may consist of nights, of which each belongs to its evening', async () => {
    expect(
      await startsOf({ spanFrom: '2027-06-14T22:00', spanTo: '2027-06-15T02:00', raster: 120, weekdays: [] }),
    ).toEqual(['2027-06-14T20:00', '2027-06-14T22:00']);
    const window = { windowFrom: '2020-01-01T22:00', windowTo: '2020-01-01T02:00' };
    // From Monday to Friday: the nights of Tuesday and Thursday.
    expect(
      await startsOf({
        ...window,
        spanFrom: '2027-06-14T00:00',
        spanTo: '2027-06-19T00:00',
        raster: 240,
        weekdays: [2, 4],
      }),
    ).toEqual(['2027-06-15T20:00', '2027-06-17T20:00']);
  });

  it('takes the daily window from the top level, whatever its day', async () => {
    const window = { windowFrom: '2020-01-01T18:00', windowTo: '2020-01-01T19:00' };
    expect(await startsOf({ ...window, weekdays: [1, 2], spanTo: '2026-03-31T20:00' })).toEqual([
      '2026-03-30T16:00',
      '2026-03-31T16:00',
    ]);
    const inGap = { windowFrom: '2026-03-29T02:30', windowTo: '2026-03-29T03:30' };
    expect(await startsOf({ ...inGap, weekdays: [1], spanTo: '2026-03-31T20:00' })).toEqual(['2026-03-30T00:30']);
  });

  it.each([
    ['Asia/Kolkata', '2026-06-01T03:30'],
    ['Australia/Lord_Howe', '2026-05-31T22:30'],
    ['America/Santiago', '2026-06-01T13:00'],
    ['Pacific/Apia', '2026-05-31T20:00'],
  ])('is in the zone of its provider: %s', async (providerReference, start) => {
    expect(
      await startsOf({ providerReference, spanFrom: '2026-06-01T09:00', spanTo: '2026-06-01T10:00', weekdays: [] }),
    ).toEqual([start]);
  });

  it('spans a leap day and the end of a year', async () => {
    const leap = await startsOf({ spanFrom: '2028-02-28T09:00', spanTo: '2028-03-01T10:00' });
    expect(leap.map((start) => start.slice(5, 10))).toEqual(['02-28', '02-29', '03-01']);
    const year = await startsOf({ spanFrom: '2026-12-31T09:00', spanTo: '2027-01-01T10:00' });
    expect(year.map((start) => start.slice(0, 10))).toEqual(['2026-12-31', '2027-01-01']);
  });

  it('reports every invalid field', async () => {
    const ask = (overrides: Partial<CreateSeriesRequest>) =>
      refusal(calendar.appointments.createSeries(newSeries(overrides)));
    const pointers = async (overrides: Partial<CreateSeriesRequest>) =>
      (await ask(overrides)).errors.map((error) => error.pointer);
    expect(await pointers({ weekdays: [] })).toEqual(['/series_data/weekdays']);
    expect(await pointers({ spanTo: '2026-03-27T09:00' })).toEqual(['/series_data/to']);
    expect(await ask({ raster: 121 })).toMatchObject({
      category: 'invalid',
      code: 'series.empty',
      errors: [{ pointer: '/series_data' }],
    });
  });

  it('has at most 1000 appointments; a longer one creates none', async () => {
    const week = { spanFrom: '2026-06-01T00:00', raster: 1, weekdays: [] };
    expect(await startsOf({ ...week, spanTo: '2026-06-01T16:40' })).toHaveLength(1_000);
    const request = newSeries({ ...week, spanTo: '2026-06-01T16:41' });
    const tooLong = { category: 'invalid', code: 'series.too_long', errors: [{ pointer: '/series_data' }] };
    expect(await refusal(calendar.appointments.createSeries(request))).toMatchObject(tooLong);
    expect(await listed(request.productReference)).toEqual([]);
    const centuries = newSeries({ spanFrom: '1900-01-02T09:00', spanTo: '9999-01-01T10:00', raster: 120 });
    expect(await refusal(calendar.appointments.createSeries(centuries))).toMatchObject(tooLong);
  });

  it('is deleted as a whole, by its own provider only', async () => {
    const request = newSeries();
    const { seriesId, json } = await calendar.appointments.createSeries(request);
    expect(readAppointments(json)).toHaveLength(10);
    const remove = { ...owned, target: { $case: 'seriesId' as const, value: seriesId } };
    expect((await refusal(calendar.appointments.deleteAppointments({ ...remove, providerReference: 'p2' }))).code).toBe(
      'series.not_found',
    );
    await calendar.appointments.deleteAppointments(remove);
    expect(await listed(request.productReference)).toEqual([]);
    expect((await refusal(calendar.appointments.deleteAppointments(remove))).code).toBe('series.not_found');
  });
});
