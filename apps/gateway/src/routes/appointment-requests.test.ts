import { expect, it } from 'vitest';
import { countSlots } from './appointment-requests.ts';

const common = { resourceReference: 'r', productReference: 'p' };

it.each([
  { name: 'one day', from: '2031-05-05T09:00', to: '2031-05-05T10:30', raster: 30, most: 3 },
  { name: 'a thousand on one day', from: '2031-05-05T00:00', to: '2031-05-05T16:40', raster: 1, most: 1_000 },
  { name: 'an hour on each of ten days', from: '2031-05-05T09:00', to: '2031-05-14T10:00', raster: 30, most: 20 },
  { name: 'whole days', from: '2031-05-05T00:00', to: '2031-05-06T00:00', raster: 60, most: 48 },
  { name: 'nights', from: '2031-05-05T22:00', to: '2031-05-06T02:00', raster: 60, most: 8 },
  { name: 'an end before the start', from: '2031-05-05T09:00', to: '2031-05-04T08:00', raster: 30, most: 0 },
  {
    name: 'seconds and an offset',
    from: '2031-05-05T09:00:00+02:00',
    to: '2031-05-05T10:00:00+02:00',
    raster: 30,
    most: 2,
  },
])('a series can have so many appointments at most: $name', ({ from, to, raster, most }) => {
  expect(countSlots({ ...common, series_data: { from, to, raster } })).toBe(most);
});

it('a series with a daily window counts that window only', () => {
  const span = { from: '2031-05-05T00:00', to: '2031-05-09T23:59', raster: 30 };
  expect(countSlots({ ...common, from: '2031-01-01T09:00', to: '2031-01-01T10:00', series_data: span })).toBe(10);
  expect(countSlots({ ...common, from: '2031-01-01T22:00', to: '2031-01-01T02:00', series_data: span })).toBe(40);
});
