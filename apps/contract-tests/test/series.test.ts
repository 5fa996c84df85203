import { beforeAll, describe, expect, it } from 'vitest';
import type { Appointment } from './answers.ts';
import type { Problem } from '@scheduling/test-stack/client';
import { createCrm, createPractice, newAppointment, type Practice, type TestCrm } from '@scheduling/test-stack/crm';

let crm: TestCrm;
let practice: Practice;
beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

const appointments = (): string => `${practice.at}/appointments`;

describe('series and sequences (interface 4.2)', () => {
  const newSeries = (fields: Record<string, unknown> = {}) => {
    const { reference: _reference, start: _start, end: _end, ...rest } = newAppointment(practice);
    return { ...rest, ...fields };
  };

  it('create an appointment for each slot of each listed weekday, under one seriesId', async () => {
    const created = await crm.post<Appointment[]>(
      appointments(),
      newSeries({
        reference: 'ignored@test',
        from: '2031-01-01T09:00',
        to: '2031-01-01T10:10',
        series_data: { from: '2031-03-24T00:00', to: '2031-04-07T23:59', raster: 30, weekdays: ['1', '7'] },
      }),
    );
    expect(created.status).toBe(201);
    expect(created.body.map(({ start }) => start)).toEqual(
      [
        ['2031-03-24', '08:00', '08:30'],
        ['2031-03-30', '07:00', '07:30'],
        ['2031-03-31', '07:00', '07:30'],
        ['2031-04-06', '07:00', '07:30'],
        ['2031-04-07', '07:00', '07:30'],
      ].flatMap(([date, ...times]) => times.map((time) => `${date}T${time}:00Z`)),
    );
    expect(new Set(created.body.map(({ seriesId }) => seriesId)).size).toBe(1);
    expect(created.body[0]!.seriesId).toEqual(expect.any(String));
    expect(new Set(created.body.map(({ reference }) => reference)).size).toBe(10);
    expect(created.body.some(({ reference }) => reference === 'ignored@test')).toBe(false);
    const { seriesId } = created.body[0]!;
    const inSeries = async () =>
      (await crm.get<Appointment[]>(appointments())).body.filter((appointment) => appointment.seriesId === seriesId);
    expect(await inSeries()).toStrictEqual(created.body);
    expect(await crm.delete(`${appointments()}/withoutNotification`, { seriesId })).toMatchObject({ status: 204 });
    expect(await inSeries()).toEqual([]);
    expect(await crm.delete(`${appointments()}/withoutNotification`, { seriesId })).toMatchObject({
      status: 404,
      body: { code: 'series.not_found' },
    });
  });

  it('of one day require no weekdays, and are listed as they were answered', async () => {
    const own = await createPractice(crm);
    const details = {
      capacity: 3,
      acceptBookings: true,
      productName: 'Wash "and" cut',
      contactReference: 'anyone@test',
      notes: 'Two\nlines',
      address: { city: 'Basel', country: 'CH' },
      price: { value: 49.5, currency: 'CHF' },
    };
    const seriesData = { from: '2031-03-03T09:00', to: '2031-03-03T10:00', raster: 20 };
    const created = await crm.post<Appointment[]>(
      `${own.at}/appointments`,
      newSeries({ ...details, series_data: seriesData }),
    );
    expect(created.status).toBe(201);
    expect(created.body.map(({ start, end }) => [start.slice(11, 16), end.slice(11, 16)])).toEqual([
      ['08:00', '08:20'],
      ['08:20', '08:40'],
      ['08:40', '09:00'],
    ]);
    expect((await crm.get(`${own.at}/appointments`)).text).toBe(created.text);
  });

  it.each([
    [
      'several days without weekdays',
      { from: '2031-03-03T09:00', to: '2031-03-04T10:00', raster: 20 },
      'appointment.invalid',
      '/series_data/weekdays',
    ],
    ['no slot at all', { from: '2031-03-03T09:00', to: '2031-03-03T09:10', raster: 20 }, 'series.empty', undefined],
    [
      'no listed weekday',
      { from: '2031-03-03T09:00', to: '2031-03-04T10:00', raster: 20, weekdays: ['7'] },
      'series.empty',
      undefined,
    ],
    ['more than 1,000', { from: '2031-03-03T00:00', to: '2031-03-03T23:59', raster: 1 }, 'series.too_long', undefined],
    [
      'an end before the start',
      { from: '2031-03-03T09:00', to: '2031-03-02T09:00', raster: 20 },
      'appointment.invalid',
      '/series_data/to',
    ],
    [
      'an unknown weekday',
      { from: '2031-03-03T09:00', to: '2031-03-04T09:00', raster: 20, weekdays: ['8'] },
      'request.invalid',
      '/series_data/weekdays/0',
    ],
  ])('are rejected: %s', async (_, seriesData, code, pointer) => {
    const own = await createPractice(crm);
    const refused = await crm.post<Problem>(`${own.at}/appointments`, newSeries({ series_data: seriesData }));
    expect(refused).toMatchObject({ status: 400, body: { code } });
    if (pointer !== undefined) expect(refused.body.errors?.map((fault) => fault.pointer)).toContain(pointer);
    expect((await crm.get(`${own.at}/appointments`)).body).toEqual([]);
  });

  it('may have 1,000 appointments', async () => {
    const own = await createPractice(crm);
    const seriesData = { from: '2031-03-03T00:00', to: '2031-03-03T16:40', raster: 1 };
    const created = await crm.post<Appointment[]>(`${own.at}/appointments`, newSeries({ series_data: seriesData }));
    expect(created.status).toBe(201);
    expect(created.body).toHaveLength(1_000);
  });
});
