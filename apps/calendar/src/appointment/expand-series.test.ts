import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { daysOf, expandSeries, type SeriesPlan } from './expand-series.ts';

const zones = [
  'Europe/Berlin',
  'Europe/Dublin',
  'America/New_York',
  'America/St_Johns',
  'America/Santiago',
  'America/Sao_Paulo',
  'Africa/Casablanca',
  'Africa/Cairo',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Asia/Beirut',
  'Asia/Tehran',
  'Australia/Lord_Howe',
  'Australia/Adelaide',
  'Pacific/Auckland',
  'Pacific/Chatham',
  'Pacific/Apia',
  'UTC',
];

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/**
 * Every minute of a span with its wall-clock time as if it were UTC, read from the platform's other time zone
 * implementation.
 */
function* readClock(zone: string, fromMs: number, toMs: number): Generator<[epochMs: number, wallMs: number]> {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' });
  const read = (epochMs: number): number => Date.parse(`${format.format(epochMs).replace(' ', 'T')}Z`);
  for (let startMs = fromMs; startMs <= toMs; startMs += hourMs) {
    const wallMs = read(startMs);
    // Formatting is slow: an hour without a clock change is read only once.
    const isRegular = read(startMs + hourMs) === wallMs + hourMs;
    for (let passed = 0; passed < hourMs && startMs + passed <= toMs; passed += minuteMs) {
      yield [startMs + passed, isRegular ? wallMs + passed : read(startMs + passed)];
    }
  }
}

/**
 * The second implementation, which knows nothing about offsets: it walks the span minute by minute and reads the wall
 * clock. For each day it finds the minutes at which the window opens and closes, then counts rasters between them.
 */
function walkSeries(plan: SeriesPlan): string[] {
  const [fromMs, toMs] = [plan.spanFrom.epochMilliseconds, plan.spanTo.epochMilliseconds];
  const firstMinuteOf = new Map<number, number>();
  const dates = new Set<number>();
  // A day before and two days after, for the part of the first and last day's window that is outside the span.
  for (const [ms, wall] of readClock(plan.timeZone, fromMs - 25 * hourMs, toMs + 49 * hourMs)) {
    if (!firstMinuteOf.has(wall)) firstMinuteOf.set(wall, ms);
    if (ms >= fromMs && ms < toMs) dates.add(wall - (wall % dayMs));
  }
  return [...dates]
    .filter((date) => plan.weekdays === undefined || plan.weekdays.has(new Date(date).getUTCDay() || 7))
    .flatMap((date) => {
      const isNight = plan.windowTo.toString() <= plan.windowFrom.toString();
      const [open, close] = [
        minuteAt(firstMinuteOf, date, plan.windowFrom),
        minuteAt(firstMinuteOf, date + (isNight ? dayMs : 0), plan.windowTo),
      ];
      const starts: number[] = [];
      for (let ms = open; ms + plan.raster * minuteMs <= close; ms += plan.raster * minuteMs) starts.push(ms);
      return starts;
    })
    .filter((ms) => ms >= fromMs && ms + plan.raster * minuteMs <= toMs)
    .map((ms) => new Date(ms).toISOString());
}

/** A time that the clock skips is as long after the last time before the gap as it would have been without the gap. */
function minuteAt(firstMinuteOf: Map<number, number>, date: number, time: Temporal.PlainTime): number {
  const wanted = date + time.hour * hourMs + time.minute * minuteMs;
  for (let backMs = 0; ; backMs += minuteMs) {
    const ms = firstMinuteOf.get(wanted - backMs);
    if (ms !== undefined) return ms + backMs;
  }
}

function startsOf(plan: SeriesPlan): string[] {
  return expandSeries(plan)
    .map((slot) => new Date(slot.startsAt.epochMilliseconds).toISOString())
    .toArray();
}

/**
 * The instants at which the offset changes in the given years: spans are made to begin near them more often than by
 * chance.
 */
function transitionsOf(zone: string): number[] {
  const transitions: number[] = [];
  let at: Temporal.ZonedDateTime | null = Temporal.ZonedDateTime.from(`2010-01-01T00:00[${zone}]`);
  while (transitions.length < 40) {
    at = at.getTimeZoneTransition('next');
    if (at === null || at.year > 2030) break;
    transitions.push(at.epochMilliseconds);
  }
  return transitions;
}

const minuteOfDay = fc
  .integer({ min: 0, max: 1_439 })
  .map((minute) => new Temporal.PlainTime(Math.floor(minute / 60), minute % 60));

const plans: fc.Arbitrary<SeriesPlan> = fc.constantFrom(...zones).chain((timeZone) => {
  const anyTime = fc.integer({ min: Date.UTC(2010, 0), max: Date.UTC(2030, 0) }).map((ms) => ms - (ms % minuteMs));
  const transitions = transitionsOf(timeZone);
  const nearTransition = fc
    .tuple(
      fc.constantFrom(...transitions, Date.UTC(2024, 1, 29), Date.UTC(2025, 11, 31)),
      fc.integer({ min: -3 * 1_440, max: 1_440 }),
    )
    .map(([ms, minutes]) => ms + minutes * minuteMs);
  return fc
    .record({
      timeZone: fc.constant(timeZone),
      from: fc.oneof({ weight: 1, arbitrary: anyTime }, { weight: 4, arbitrary: nearTransition }),
      minutes: fc.integer({ min: 1, max: 5 * 1_440 }),
      windowFrom: minuteOfDay,
      windowTo: minuteOfDay,
      raster: fc.integer({ min: 1, max: 300 }),
      weekdays: fc.option(
        fc.uniqueArray(fc.integer({ min: 1, max: 7 }), { minLength: 1 }).map((days) => new Set(days)),
        { nil: undefined },
      ),
    })
    .map(({ from, minutes, ...plan }) => ({
      ...plan,
      spanFrom: Temporal.Instant.fromEpochMilliseconds(from),
      spanTo: Temporal.Instant.fromEpochMilliseconds(from + minutes * minuteMs),
    }));
});

describe('the expansion of a series', () => {
  it('matches a minute-by-minute walk over the clock', { timeout: 120_000 }, () => {
    fc.assert(
      fc.property(plans, (plan) => {
        expect(startsOf(plan)).toEqual(walkSeries(plan));
      }),
      { numRuns: Number(process.env['PROPERTY_RUNS'] ?? 300) },
    );
  });

  it('keeps the wall-clock time across both DST changes', () => {
    for (const [from, to, before, after] of [
      ['2026-03-27T00:00', '2026-03-31T00:00', '2026-03-28T08:00:00.000Z', '2026-03-29T07:00:00.000Z'],
      ['2026-10-23T00:00', '2026-10-27T00:00', '2026-10-24T07:00:00.000Z', '2026-10-25T08:00:00.000Z'],
    ] as const) {
      const starts = startsOf(plan({ from, to, windowFrom: '09:00', windowTo: '10:00', raster: 60 }));
      expect(starts).toHaveLength(4);
      expect(starts).toContain(before);
      expect(starts).toContain(after);
    }
  });

  it('has as many appointments in a night as it has hours', () => {
    const overNight = { windowFrom: '22:00', windowTo: '05:00', raster: 60 };
    expect(startsOf(plan({ from: '2026-03-28T22:00', to: '2026-03-29T05:00', ...overNight }))).toHaveLength(6);
    expect(startsOf(plan({ from: '2026-10-24T22:00', to: '2026-10-25T05:00', ...overNight }))).toHaveLength(8);
    // The clock goes back from 24:00 to 23:00, so the first of the two nights ends at midnight after the repeated hour.
    const cairo = plan(
      { from: '2026-10-29T20:00', to: '2026-10-30T00:00', windowFrom: '20:00', windowTo: '00:00', raster: 60 },
      'Africa/Cairo',
    );
    expect(startsOf(cairo)).toHaveLength(5);
  });

  it('is an hour shorter in the night that skips one, and an hour longer in the night that repeats one', () => {
    const night = { windowFrom: '01:00', windowTo: '04:00', raster: 60 };
    expect(startsOf(plan({ from: '2026-03-29T00:00', to: '2026-03-29T12:00', ...night }))).toHaveLength(2);
    expect(startsOf(plan({ from: '2026-10-25T00:00', to: '2026-10-25T12:00', ...night }))).toHaveLength(4);
  });

  it('drops the remainder, and what begins before or ends after the span', () => {
    const starts = startsOf(
      plan({ from: '2026-06-01T09:10', to: '2026-06-01T11:30', windowFrom: '09:00', windowTo: '12:20', raster: 30 }),
    );
    expect(starts.map((start) => start.slice(11, 16))).toEqual(['07:30', '08:00', '08:30', '09:00']);
  });

  it('reaches midnight, and crosses it', () => {
    const evening = plan({
      from: '2027-06-14T20:00',
      to: '2027-06-15T00:00',
      windowFrom: '20:00',
      windowTo: '00:00',
      raster: 60,
    });
    expect(daysOf(evening)).toBe(1);
    expect(startsOf(evening).map((start) => start.slice(0, 16))).toEqual([
      '2027-06-14T18:00',
      '2027-06-14T19:00',
      '2027-06-14T20:00',
      '2027-06-14T21:00',
    ]);

    const nights = plan({
      from: '2027-06-14T22:00',
      to: '2027-06-16T02:00',
      windowFrom: '22:00',
      windowTo: '02:00',
      raster: 120,
    });
    expect(startsOf(nights).map((start) => start.slice(0, 16))).toEqual([
      '2027-06-14T20:00',
      '2027-06-14T22:00',
      '2027-06-15T20:00',
      '2027-06-15T22:00',
    ]);
    expect(startsOf({ ...nights, weekdays: new Set([2]) })).toHaveLength(2);

    const [firstNight, overNight] = [
      { from: '2027-06-14T22:00', to: '2027-06-15T02:00' },
      { windowFrom: '22:00', windowTo: '02:00', raster: 120 },
    ];
    expect(daysOf(plan({ ...firstNight, ...overNight }))).toBe(1);
    expect(startsOf(plan({ ...firstNight, ...overNight }))).toHaveLength(2);
    // The rest of the night that began before the span is none of it.
    expect(startsOf(plan({ from: '2027-06-15T00:00', to: '2027-06-16T12:00', ...overNight }))).toHaveLength(2);

    const aroundTheClock = plan({
      from: '2027-06-14T00:00',
      to: '2027-06-16T00:00',
      windowFrom: '00:00',
      windowTo: '00:00',
      raster: 720,
    });
    expect(daysOf(aroundTheClock)).toBe(2);
    expect(startsOf(aroundTheClock)).toHaveLength(4);
  });

  it('has no appointments on a day that the zone skipped', () => {
    const samoa = plan(
      { from: '2011-12-29T00:00', to: '2012-01-01T00:00', windowFrom: '09:00', windowTo: '10:00', raster: 60 },
      'Pacific/Apia',
    );
    expect(startsOf(samoa)).toEqual(['2011-12-29T19:00:00.000Z', '2011-12-30T19:00:00.000Z']);
  });
});

interface PlanTexts {
  from: string;
  to: string;
  windowFrom: string;
  windowTo: string;
  raster: number;
}

function plan(texts: PlanTexts, timeZone = 'Europe/Berlin'): SeriesPlan {
  return {
    timeZone,
    spanFrom: Temporal.PlainDateTime.from(texts.from).toZonedDateTime(timeZone).toInstant(),
    spanTo: Temporal.PlainDateTime.from(texts.to).toZonedDateTime(timeZone).toInstant(),
    windowFrom: Temporal.PlainTime.from(texts.windowFrom),
    windowTo: Temporal.PlainTime.from(texts.windowTo),
    raster: texts.raster,
    weekdays: undefined,
  };
}
