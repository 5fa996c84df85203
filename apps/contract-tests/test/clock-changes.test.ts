import { waitUntil } from '@scheduling/embedded';
import { beforeAll, describe, expect, it } from 'vitest';
import { ClockReader, dayMs, hourMs, readPeriod } from './clock-reader.ts';
import { someOf } from '@scheduling/testing';
import {
  createAppointment,
  createParticipation,
  createPractice,
  createCrm,
  createTimeslot,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';

/**
 * Zones, and years in which their clocks were changed so many times: of the past, because the rules of coming years may
 * still change.
 */
const zones: [zone: string, year: number, changes: number, note: string][] = [
  ['Europe/Berlin', 2024, 2, 'at 02:00 and 03:00'],
  ['Europe/Dublin', 2024, 2, 'at 01:00 and 02:00; the winter has the exception'],
  ['America/New_York', 2024, 2, 'AM and PM'],
  ['America/St_Johns', 2024, 2, 'half hours'],
  ['America/Asuncion', 2024, 2, 'at midnight; the last year'],
  ['America/Havana', 2024, 2, 'at 00:00, and at 01:00 back to 00:00'],
  ['America/Santiago', 2024, 2, 'at 24:00'],
  ['Atlantic/Azores', 2024, 2, 'at 00:00, and at 01:00 back to 00:00'],
  ['Antarctica/Troll', 2024, 2, 'by two hours'],
  ['Africa/Cairo', 2024, 2, 'at 00:00, and at 24:00 back to 23:00'],
  ['Africa/Casablanca', 2024, 2, 'back for Ramadan'],
  ['Asia/Beirut', 2024, 2, 'at midnight'],
  ['Asia/Kolkata', 2024, 0, 'never'],
  ['Australia/Lord_Howe', 2024, 2, 'by half an hour'],
  ['Pacific/Chatham', 2024, 2, 'at 02:45 and 03:45'],
  ['Pacific/Apia', 2011, 3, 'with a day that was skipped'],
];
/** Where clocks are never changed. */
const otherTimes = [Date.UTC(2024, 2, 31, 1), Date.UTC(2024, 9, 27, 1)];
/** What starts before it is no slot. At most ten years from the real time. */
const sandboxNow = Date.UTC(2023, 11, 31);

const minuteMs = 60_000;
/**
 * Start and end of appointments, in minutes from a change: across it, just before, just after, much longer, and far
 * from it. An odd number, so each is written in both languages.
 */
const around = [
  [-15, 15],
  [-20, -10],
  [10, 20],
  [-20, 90],
  [-720, -690],
] as const;

const local = (wallMs: number): string => new Date(wallMs).toISOString().slice(0, 16);
const instant = (atMs: number): string => `${new Date(atMs).toISOString().slice(0, 19)}Z`;

describe.concurrent.each(someOf(zones))('the clock changes of %s in %i', (zone, year, count) => {
  const reader = new ClockReader(zone);
  const changes = reader.changesIn(year);
  const times = changes.length > 0 ? changes.map(({ atMs }) => atMs) : otherTimes;
  let crm: TestCrm;
  let practice: Practice;

  // Each has a CRM of its own, because the requests of one wait for each other.
  beforeAll(async () => {
    crm = await createCrm({ sandbox: true });
    await crm.put('/sandbox/clock', { now: instant(sandboxNow) });
    practice = await createPractice(crm, { timeZone: zone });
  });

  it('are known to the reader', () => {
    expect(changes).toHaveLength(count);
  });

  it.each([
    { name: 'whole days', from: 0, to: 0, raster: 240 },
    { name: 'nights', from: 22 * hourMs, to: 5 * hourMs, raster: 30 },
    { name: 'evenings until midnight', from: 20 * hourMs, to: 0, raster: 45 },
    { name: 'mornings', from: 1.5 * hourMs, to: 9 * hourMs, raster: 90 },
  ])('leave a daily series where it is on the clock: $name', async ({ from, to, raster }) => {
    for (const atMs of times) {
      const date = dateBefore(atMs);
      const span = { from: date - dayMs, to: date + 3 * dayMs };
      await expectSeries({ from, to, raster, span, weekdays: [1, 2, 3, 4, 5, 6, 7] });
    }
  });

  it('leave a weekly series where it is on the clock', async () => {
    for (const atMs of times) {
      const date = dateBefore(atMs);
      const weekdays = [date, date + dayMs].map((each) => new Date(each).getUTCDay() || 7);
      await expectSeries({
        from: 0.5 * hourMs,
        to: 3.5 * hourMs,
        raster: 60,
        span: { from: date - 14 * dayMs, to: date + 15 * dayMs },
        weekdays,
      });
    }
  });

  it.runIf(Date.UTC(year, 0) > sandboxNow)('add and drop slots, and shift none', async () => {
    for (const atMs of times) {
      const date = dateBefore(atMs);
      const [open, close] = [date - 0.5 * dayMs, date + 2.5 * dayMs];
      const resource = unique('room');
      await createTimeslot(practice, {
        resourceReference: resource,
        start: local(open),
        end: local(close),
        raster: 30,
      });
      const steps = stepsBetween(reader.instantOf(open), reader.instantOf(close), 30);
      const listed = async (query: Record<string, string>) =>
        (
          await crm.get<{ start: string }[]>(`${practice.at}/slots`, { query: { ...query, resourceRef: resource } })
        ).body.map(({ start }) => start);
      const during = (from: number, to: number) =>
        steps
          .filter(([start]) => start >= reader.instantOf(from) && start < reader.instantOf(to))
          .map(([start]) => instant(start));
      for (const day of [date, date + dayMs])
        expect(await listed({ from: local(day), to: local(day + dayMs) })).toEqual(during(day, day + dayMs));
      // The same time of day, 14 days later.
      const noon = date - 12.5 * dayMs;
      expect(await listed({ from: local(noon) })).toEqual(during(noon, noon + 14 * dayMs));
      expect(await listed({ from: local(date - 46 * dayMs), to: local(date + 46 * dayMs) })).toEqual(
        steps.map(([start]) => instant(start)),
      );
    }
  });

  it('leave no doubt when the appointment of a mail is', async () => {
    const periods = times.flatMap((atMs) =>
      around.map((minutes) => minutes.map((each) => atMs + each * minuteMs) as [number, number]),
    );
    const mails = await Promise.all(
      periods.map(async ([start, end], index) => {
        const { customerReference, email } = await createCustomer(practice, ['en', 'de'][index % 2]!);
        const appointment = await createAppointment(practice, { start: instant(start), end: instant(end) });
        await createParticipation(practice, appointment, { customerReference });
        return waitForText(crm, email);
      }),
    );
    for (const [index, text] of mails.entries()) {
      const lines = / {2}Haircut\n(.+\n.+)\n {2}\(/.exec(text)![1]!;
      expect(readPeriod(lines).map(possibleInstants), lines).toEqual(periods[index]!.map((at) => [instant(at)]));
    }
  });

  /** The date on the clock when it is about to be changed. */
  function dateBefore(atMs: number): number {
    const wallMs = reader.wallAt(atMs - minuteMs);
    return wallMs - (wallMs % dayMs);
  }

  interface Series {
    /** The daily window and the dates, on the clock. */
    from: number;
    to: number;
    span: { from: number; to: number };
    raster: number;
    weekdays: number[];
  }

  async function expectSeries({ from, to, raster, span, weekdays }: Series): Promise<void> {
    const { status, body } = await crm.post<{ start: string; end: string }[]>(`${practice.at}/appointments`, {
      from: local(span.from + from),
      to: local(span.from + to),
      series_data: { from: local(span.from), to: local(span.to), raster, weekdays: weekdays.map(String) },
      resourceReference: practice.resource,
      productReference: practice.product,
    });
    expect(status).toBe(201);
    const dates = Array.from({ length: (span.to - span.from) / dayMs }, (_, index) => span.from + index * dayMs);
    const [first, last] = [reader.instantOf(span.from), reader.instantOf(span.to)];
    const expected = dates
      .filter((date) => reader.hasDate(date) && weekdays.includes(new Date(date).getUTCDay() || 7))
      .flatMap((date) =>
        stepsBetween(reader.instantOf(date + from), reader.instantOf(date + to + (to > from ? 0 : dayMs)), raster),
      )
      .filter(([start, end]) => start >= first && end <= last);
    expect(body.map(({ start, end }) => [start, end])).toEqual(expected.map((step) => step.map(instant)));
  }

  function possibleInstants({ wallMs, offsetMs }: { wallMs: number; offsetMs: number | undefined }): string[] {
    return (offsetMs === undefined ? reader.instantsOf(wallMs) : [wallMs - offsetMs]).map(instant);
  }
});

/** Start and end of each step of elapsed time that fits. */
function stepsBetween(openMs: number, closeMs: number, minutes: number): [number, number][] {
  const count = Math.max(0, Math.floor((closeMs - openMs) / (minutes * minuteMs)));
  return Array.from({ length: count }, (_, index) => [
    openMs + index * minutes * minuteMs,
    openMs + (index + 1) * minutes * minuteMs,
  ]);
}

async function createCustomer(
  { crm, at, provider }: Practice,
  language: string,
): Promise<{ customerReference: string; email: string }> {
  const customer = { customerReference: `${unique('customer')}@test`, email: `${unique('reader')}@customers.example` };
  expect(
    await crm.post(`${at}/customers`, { ...customer, providerReference: provider, userName: 'Ada', language }),
  ).toMatchObject({ status: 201 });
  return customer;
}

function waitForText(crm: TestCrm, email: string): Promise<string> {
  return waitUntil(
    async () => (await crm.get<{ text: string }[]>('/sandbox/mails', { query: { to: email } })).body[0]?.text,
    {
      what: `a mail to ${email}`,
      timeoutMs: 60_000,
      intervalMs: 200,
    },
  );
}
