import { waitUntil } from '@scheduling/embedded';
import pLimit from 'p-limit';
import { setInterval as every } from 'node:timers/promises';
import { timeOf } from './appointments.ts';
import type { CrmClient } from './client.ts';
import { firstSlotDayMs } from './slots.ts';

/** A client that does nothing but book, to find out how long nobody can. */
export interface Probe {
  /**
   * Books all the time while something happens, until a booking has been accepted after the moment at which it was said
   * that they have to be. One at a time.
   */
  during<Result>(action: (accepting: () => void) => Promise<Result>): Promise<{ result: Result; recovery?: Recovery }>;
  provider: ProbedProvider;
  bookings: readonly ProbeBooking[];
}

/** A provider that nobody else uses. */
export interface ProbedProvider {
  client: CrmClient;
  at: string;
}

export interface ProbeBooking {
  reference: string;
  /** Of the slot. Every booking has another one. */
  startMs: number;
  sentMs: number;
  /** Infinity while there is no answer, and if there is none. */
  answeredMs: number;
  /** That of the answer. */
  status: number | undefined;
}

/** How long it took until bookings were accepted again. */
export interface Recovery {
  /** When they had to be, on the clock of `performance`. */
  atMs: number;
  /** From then on until the first success; Infinity if there was none. */
  tookMs: number;
  /** From then on until the last booking without success was sent; 0 if there was none. */
  refusedMs: number;
}

const intervalMs = 100;
/** How long it goes on after that moment at least. */
export const watchMs = 6_000;
/** Then it gives up. */
const longestMs = 60_000;
const dayMs = 24 * 3_600_000;
/** Consecutive bookings are in different timeslots, so that they do not wait for each other. */
const timeslotCount = 100;
const rasterMs = 5 * 60_000;
const customerReference = 'customer@load';

export async function createProbe(provider: ProbedProvider): Promise<Probe> {
  await prepare(provider);
  const bookings: ProbeBooking[] = [];
  const book = async (): Promise<void> => {
    const number = bookings.length;
    const booking: ProbeBooking = {
      reference: `probe-${number}@load`,
      startMs: startOf(number),
      sentMs: performance.now(),
      answeredMs: Number.POSITIVE_INFINITY,
      status: undefined,
    };
    bookings.push(booking);
    const answer = await provider.client.send({
      method: 'POST',
      path: `${provider.at}/bookings`,
      query: { sendMails: false },
      body: {
        reference: booking.reference,
        timeslotReference: timeslotOf(number),
        start: timeOf(booking.startMs),
        productReference: 'product@load',
        customerReference,
        state: 'BOOKED',
      },
    });
    if (answer !== undefined) Object.assign(booking, { answeredMs: performance.now(), status: answer.status });
  };
  /** Until the signal aborts, and everything is answered. */
  const bookEvery = async (until: AbortSignal): Promise<void> => {
    const open: Promise<void>[] = [];
    try {
      // Nobody waits for earlier ones.
      for await (const _ of every(intervalMs, undefined, { signal: until })) open.push(book());
    } catch (error) {
      if (!until.aborted) throw error;
    }
    await Promise.all(open);
  };
  const oneByOne = pLimit(1);
  return {
    provider,
    bookings,
    during: (action) =>
      oneByOne(async () => {
        const ended = new AbortController();
        const booking = bookEvery(ended.signal);
        let atMs: number | undefined;
        try {
          const result = await action(() => (atMs = performance.now()));
          if (atMs === undefined) return { result };
          const firstMs = await waitForSuccess(bookings, atMs);
          ended.abort();
          await booking;
          return { result, recovery: { atMs, tookMs: firstMs - atMs, refusedMs: lastRefusal(bookings, atMs) - atMs } };
        } finally {
          ended.abort();
          await booking;
        }
      }),
  };
}

/** Everything that the bookings need. */
async function prepare({ client, at }: ProbedProvider): Promise<void> {
  const customer = {
    customerReference,
    providerReference: 'provider-0@load',
    userName: 'Citrin probe',
    email: 'probe@citrin.example',
  };
  const timeslots = Array.from({ length: timeslotCount }, (_, number) => ({
    reference: timeslotOf(number),
    resourceReference: 'probe@load',
    start: timeOf(dayOf(number)),
    end: timeOf(dayOf(number) + dayMs),
    raster: rasterMs / 60_000,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    state: 'BOOKABLE',
  }));
  for (const [path, body] of [
    ['customers', customer],
    ['timeslots', { timeslots }],
  ] as const) {
    const answer = await client.send({ method: 'POST', path: `${at}/${path}`, body });
    if (answer?.status !== 201) throw new Error(`the probe was answered with ${answer?.status} ${answer?.text}`);
  }
}

function timeslotOf(number: number): string {
  return `timeslot-${number % timeslotCount}@load`;
}

function dayOf(number: number): number {
  return firstSlotDayMs + (number % timeslotCount) * dayMs;
}

/** Timeslots touch each other, but no two bookings have the same slot, for as long as a run can last. */
function startOf(number: number): number {
  return dayOf(number) + Math.floor(number / timeslotCount) * rasterMs;
}

/** When the first booking was accepted from then on. */
async function waitForSuccess(bookings: readonly ProbeBooking[], atMs: number): Promise<number> {
  const firstMs = (): number =>
    Math.min(
      ...bookings.filter((each) => isAccepted(each) && each.answeredMs >= atMs).map(({ answeredMs }) => answeredMs),
    );
  await waitUntil(
    () => performance.now() > atMs + longestMs || (performance.now() > atMs + watchMs && firstMs() < Infinity),
    { what: 'a booking', timeoutMs: 2 * longestMs },
  );
  return firstMs();
}

function lastRefusal(bookings: readonly ProbeBooking[], atMs: number): number {
  const refused = bookings.filter((each) => !isAccepted(each) && each.sentMs >= atMs);
  return Math.max(atMs, ...refused.map(({ sentMs }) => sentMs));
}

export function isAccepted({ status }: ProbeBooking): boolean {
  return status === 200 || status === 201;
}
