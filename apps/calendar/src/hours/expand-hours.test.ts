import { describe, expect, it } from 'vitest';
import { expandHours } from './expand-hours.ts';
import type { Hours, HoursException, HoursWindow, WeeklyWindow } from '../db/schema.ts';

const everyDay = ['1', '2', '3', '4', '5', '6', '7'];
const details = {
  raster: 15,
  defaultCapacity: 1,
  defaultAcceptBookings: true,
  address: null,
  bufferBefore: 0,
  bufferAfter: 0,
};

function windowOf(from: string, to: string, overrides: Partial<HoursWindow> = {}): HoursWindow {
  return { from, to, ...details, ...overrides };
}

function weekly(from: string, to: string, weekdays = everyDay): WeeklyWindow {
  return { weekdays, ...windowOf(from, to) };
}

function closed(from: string, to = from, windows: HoursWindow[] = []): HoursException {
  return { from, to, windows, note: null };
}

/** Each opening as two local times with their offsets. */
function expand(hours: Partial<Hours>, zone: string, first: string, last = first): string[] {
  const whole = { weekly: [], exceptions: [], validFrom: null, validUntil: null, aheadDays: 1, ...hours };
  const days = { first: Temporal.PlainDate.from(first), last: Temporal.PlainDate.from(last) };
  const show = (ms: number): string =>
    Temporal.Instant.fromEpochMilliseconds(ms).toString({ timeZone: zone, smallestUnit: 'minute' });
  return expandHours(whole, zone, days)
    .map(({ startsAt, endsAt }) => `${show(startsAt)} ${show(endsAt)}`)
    .toArray();
}

describe('weekly windows', () => {
  it('belong to the weekdays', () => {
    const hours = { weekly: [weekly('09:00', '12:30', ['1', '5'])] };
    expect(expand(hours, 'Europe/Berlin', '2026-06-01', '2026-06-07')).toEqual([
      '2026-06-01T09:00+02:00 2026-06-01T12:30+02:00',
      '2026-06-05T09:00+02:00 2026-06-05T12:30+02:00',
    ]);
  });

  it.each([
    ['22:00', '02:00', '2026-12-31T22:00+01:00 2027-01-01T02:00+01:00'],
    ['09:00', '24:00', '2026-12-31T09:00+01:00 2027-01-01T00:00+01:00'],
    ['09:00', '00:00', '2026-12-31T09:00+01:00 2027-01-01T00:00+01:00'],
    ['00:00', '24:00', '2026-12-31T00:00+01:00 2027-01-01T00:00+01:00'],
    ['09:00', '08:59', '2026-12-31T09:00+01:00 2027-01-01T08:59+01:00'],
  ])('from %s to %s end at midnight or on the next day', (from, to, expected) => {
    expect(expand({ weekly: [weekly(from, to)] }, 'Europe/Berlin', '2026-12-31')).toEqual([expected]);
  });

  it('are on 29 February if there is one', () => {
    const hours = { weekly: [weekly('09:00', '10:00', ['2'])] };
    expect(expand(hours, 'UTC', '2028-02-28', '2028-03-01')).toEqual(['2028-02-29T09:00+00:00 2028-02-29T10:00+00:00']);
  });

  it('are valid from and until a day, on which they begin', () => {
    const hours = { weekly: [weekly('22:00', '01:00')], validFrom: '2026-06-02', validUntil: '2026-06-03' };
    expect(expand(hours, 'UTC', '2026-06-01', '2026-06-05')).toEqual([
      '2026-06-02T22:00+00:00 2026-06-03T01:00+00:00',
      '2026-06-03T22:00+00:00 2026-06-04T01:00+00:00',
    ]);
  });
});

describe('exceptions', () => {
  const hours = { weekly: [weekly('22:00', '01:00')] };

  it('replace the windows that begin on their days', () => {
    const exceptions = [
      closed('2026-12-25', '2026-12-26'),
      closed('2026-12-27', '2026-12-27', [windowOf('10:00', '11:00')]),
    ];
    expect(expand({ ...hours, exceptions }, 'UTC', '2026-12-24', '2026-12-28')).toEqual([
      '2026-12-24T22:00+00:00 2026-12-25T01:00+00:00',
      '2026-12-27T10:00+00:00 2026-12-27T11:00+00:00',
      '2026-12-28T22:00+00:00 2026-12-29T01:00+00:00',
    ]);
  });

  it('count in the order of the list: the last one with a day', () => {
    const special = closed('2026-12-24', '2026-12-24', [windowOf('09:00', '12:00')]);
    const holidays = closed('2026-12-20', '2027-01-03');
    expect(expand({ ...hours, exceptions: [holidays, special] }, 'UTC', '2026-12-23', '2026-12-25')).toEqual([
      '2026-12-24T09:00+00:00 2026-12-24T12:00+00:00',
    ]);
    expect(expand({ ...hours, exceptions: [special, holidays] }, 'UTC', '2026-12-23', '2026-12-25')).toEqual([]);
  });

  it('do not open a day on which the hours are not valid', () => {
    const exceptions = [closed('2026-12-24', '2026-12-24', [windowOf('09:00', '12:00')])];
    expect(expand({ ...hours, exceptions, validUntil: '2026-12-23' }, 'UTC', '2026-12-24')).toEqual([]);
  });
});

describe('when the clock changes', () => {
  it.each([
    [
      'a window around the change is as long as the clock says',
      '08:00',
      '12:00',
      '2026-03-29T08:00+02:00 2026-03-29T12:00+02:00',
    ],
    ['one over it is an hour shorter', '01:00', '04:00', '2026-03-29T01:00+01:00 2026-03-29T04:00+02:00'],
    [
      'a start that is skipped takes the offset before',
      '02:30',
      '05:00',
      '2026-03-29T03:30+02:00 2026-03-29T05:00+02:00',
    ],
    ['so does an end', '01:00', '02:30', '2026-03-29T01:00+01:00 2026-03-29T03:30+02:00'],
  ])('forward, %s', (_, from, to, expected) => {
    expect(expand({ weekly: [weekly(from, to)] }, 'Europe/Berlin', '2026-03-29')).toEqual([expected]);
  });

  it.each([
    ['02:15', '02:45'],
    ['02:00', '03:00'],
    // The start becomes 03:30.
    ['02:30', '03:30'],
    ['02:30', '03:15'],
    // 10 minutes remain, and a place takes 15.
    ['02:30', '03:40'],
  ])('forward, nothing is made from %s to %s', (from, to) => {
    expect(expand({ weekly: [weekly(from, to)] }, 'Europe/Berlin', '2026-03-29')).toEqual([]);
  });

  it.each([
    ['one over it is an hour longer', '01:00', '04:00', '2026-10-25T01:00+02:00 2026-10-25T04:00+01:00'],
    ['what occurs twice is the first', '02:00', '02:30', '2026-10-25T02:00+02:00 2026-10-25T02:30+02:00'],
    ['also an end', '00:00', '02:30', '2026-10-25T00:00+02:00 2026-10-25T02:30+02:00'],
  ])('back, %s', (_, from, to, expected) => {
    expect(expand({ weekly: [weekly(from, to)] }, 'Europe/Berlin', '2026-10-25')).toEqual([expected]);
  });

  it('at midnight, a day begins later', () => {
    expect(expand({ weekly: [weekly('00:00', '08:00')] }, 'America/Santiago', '2026-09-06')).toEqual([
      '2026-09-06T01:00-03:00 2026-09-06T08:00-03:00',
    ]);
    expect(expand({ weekly: [weekly('20:00', '24:00')] }, 'Africa/Cairo', '2026-10-29')).toEqual([
      '2026-10-29T20:00+03:00 2026-10-30T00:00+02:00',
    ]);
  });

  it('by half an hour, a window is half an hour shorter', () => {
    expect(expand({ weekly: [weekly('01:00', '04:00')] }, 'Australia/Lord_Howe', '2026-10-04')).toEqual([
      '2026-10-04T01:00+10:30 2026-10-04T04:00+11:00',
    ]);
  });

  it('by a whole day, that day makes nothing', () => {
    expect(
      expand(
        { weekly: [weekly('00:00', '24:00'), weekly('10:00', '11:00'), weekly('22:00', '02:00')] },
        'Pacific/Apia',
        '2011-12-30',
      ),
    ).toEqual([]);
    expect(expand({ weekly: [weekly('10:00', '11:00')] }, 'Pacific/Apia', '2011-12-29', '2011-12-31')).toEqual([
      '2011-12-29T10:00-10:00 2011-12-29T11:00-10:00',
      '2011-12-31T10:00+14:00 2011-12-31T11:00+14:00',
    ]);
  });
});
