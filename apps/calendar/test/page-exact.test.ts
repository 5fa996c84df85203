import type { PageTime } from '@scheduling/contracts/calendar/v1';
import fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CalendarUnderTest, createAppointment, refusal, startCalendar } from './calendar-under-test.ts';
import {
  createPage,
  listTimes,
  newOffer,
  newPageBooking,
  openTimeslot,
  type PageUnderTest,
} from './page-under-test.ts';

const seed = Number(process.env['PAGES_SEED'] ?? Math.floor(Math.random() * 1_000_000));
/** How many random pages are tried. */
const count = Number(process.env['PAGES_COUNT'] ?? 12);

let calendar: CalendarUnderTest;
beforeAll(async () => {
  calendar = await startCalendar();
});
afterAll(() => calendar[Symbol.asyncDispose]());

const midnight = Date.parse('2099-06-01T00:00+02:00');
const quarterMs = 15 * 60_000;
/** A moment of the first of June 2099 in Berlin, as an index of its quarters of an hour. */
const momentOf = (quarter: number): Date => new Date(midnight + quarter * quarterMs);
const localTimeOf = (quarter: number): string =>
  momentOf(quarter).toLocaleString('sv', { timeZone: 'Europe/Berlin' }).replace(' ', 'T').slice(0, 16);

const resource = fc.constantFrom('anna', 'ben', 'carl');
const timeslot = fc.record({
  resource,
  start: fc.integer({ min: 24, max: 60 }),
  quarters: fc.integer({ min: 2, max: 16 }),
  raster: fc.constantFrom(15, 30, 45, 60),
  capacity: fc.constantFrom(1, 1, 2),
  isOpen: fc.boolean(),
});
const appointment = fc.record({
  resource,
  start: fc.integer({ min: 24, max: 72 }),
  quarters: fc.integer({ min: 1, max: 6 }),
  capacity: fc.integer({ min: 1, max: 2 }),
  isOpen: fc.boolean(),
  product: fc.constantFrom('product', 'other'),
});
const plan = fc.record({
  timeslots: fc.array(timeslot, { minLength: 1, maxLength: 4 }),
  appointments: fc.array(appointment, { maxLength: 2 }),
  duration: fc.constantFrom(15, 30, 60),
  /** Which of the times is booked next, with a hold or without. */
  picks: fc.array(fc.record({ pick: fc.nat(), holds: fc.boolean() }), { minLength: 8, maxLength: 8 }),
});
type Plan = typeof plan extends fc.Arbitrary<infer Value> ? Value : never;

async function store({ timeslots, appointments, duration }: Plan): Promise<PageUnderTest> {
  const offer = newOffer({
    duration,
    price: undefined,
    resources: ['anna', 'ben'].map((resourceReference) => ({ resourceReference, name: resourceReference })),
  });
  const page = await createPage(calendar, { offers: [offer] });
  for (const each of timeslots)
    await openTimeslot(calendar, page, {
      resourceReference: each.resource,
      start: localTimeOf(each.start),
      end: localTimeOf(each.start + Math.max(each.quarters, each.raster / 15)),
      raster: each.raster,
      defaultCapacity: each.capacity,
      defaultAcceptBookings: each.isOpen,
    });
  for (const each of appointments)
    await createAppointment(calendar, {
      ...page.owner,
      resourceReference: each.resource,
      start: localTimeOf(each.start),
      end: localTimeOf(each.start + each.quarters),
      capacity: each.capacity,
      acceptBookings: each.isOpen,
      productReference: each.product,
    });
  return page;
}

/** Books a time as a person does, and refuses nothing that was listed. */
async function book(page: PageUnderTest, { start, resourceReference }: PageTime, holds: boolean): Promise<void> {
  const { providerId } = page;
  const chosen = holds
    ? await calendar.pages.choosePageTime({ providerId, offer: 'product', start })
    : { choice: randomUUID(), place: { resourceReference } };
  expect(chosen.place!.resourceReference).toBe(resourceReference);
  const { choice } = chosen;
  const email = `${choice}@example.com`;
  const request = newPageBooking(page, { choice }, { start, resourceReference, email });
  const { receipt } = await calendar.pages.bookPageTime(request);
  const { booking } = await calendar.pages.getPageBooking({ providerId, receipt });
  expect([booking!.start, booking!.state]).toEqual([start, 'PARTICIPATION_STATE_BOOKED']);
}

it.each(fc.sample(plan, { seed, numRuns: count }).map((each, index) => [index, each] as const))(
  `what a week shows can be booked, and nothing else: page %i of seed ${seed}`,
  { timeout: 60_000 },
  async (_index, each) => {
    const page = await store(each);
    const { providerId } = page;
    for (const { pick, holds } of each.picks) {
      const times = await listTimes(calendar, page);
      const listed = new Set(times.map(({ start }) => start!.getTime()));
      for (let quarter = pick % 7; quarter < 96; quarter += 7) {
        const start = momentOf(quarter);
        if (listed.has(start.getTime())) continue;
        const choosing = calendar.pages.choosePageTime({ providerId, offer: 'product', start });
        expect(await refusal(choosing)).toMatchObject({ code: 'slot.unavailable' });
      }
      if (times.length === 0) break;
      await book(page, times[pick % times.length]!, holds);
    }
  },
);
