import { type BookSlotRequest, type Hours, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { DomainError } from '@scheduling/errors';
import { eventually, isTooSlow } from '@scheduling/testing';
import { type Kysely, sql } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CalendarSchema } from '../src/db/schema.ts';
import { bookingCall } from '../src/slot/book-slot.ts';
import { placeOf } from '../src/slot/place.ts';
import {
  allEnded,
  type Calendar,
  type CalendarUnderTest,
  countWaiting,
  createAppointment,
  createCustomer,
  freshReference,
  newAppointment,
  owned,
  startCalendar,
} from './calendar-under-test.ts';
import { dateOf } from './hours-reader.ts';
import { listTimeslots, newHours, newWindow, putHours, type TimeslotJson } from './hours-under-test.ts';
import { createTimeslot, customerOf, newBooking, newTimeslot, placeIn } from './slots-under-test.ts';

const clients = 16;
const seconds = Number(process.env['BLOCKS_SECONDS'] ?? 3);
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

let calendar: CalendarUnderTest;
let replicas: Calendar[];
let customerReference: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  calendar = stack.use(await startCalendar());
  // For the late one, reservations of the others have expired.
  const late = stack.use(await calendar.startReplicaAt('181 seconds'));
  replicas = [calendar, stack.use(await calendar.startReplica()), late];
  customerReference = await createCustomer(calendar);
}, 180_000);
afterAll(() => stack.disposeAsync());

/** Of the first of June 2099 in Berlin. */
const blockAt = (resourceReference: string, from: string, to: string) => ({
  ...owned,
  resourceReference,
  start: `2099-06-01T${from}`,
  end: `2099-06-01T${to}`,
});
const movementTo = (participationReference: string, place: BookSlotRequest['place']) => ({
  ...owned,
  participationReference,
  place,
  ignoreNotice: false,
  sendMails: false,
});
const book = (place: BookSlotRequest['place'], replica: Calendar = calendar) =>
  replica.bookings.bookSlot(newBooking(place, customerOf(customerReference)));

/** What is done in a transaction of its own: answers which appointment it is. */
type Work = (tx: Kysely<CalendarSchema>) => Promise<string>;
type SlotPlace = Parameters<typeof placeOf>[0];

const placeAt = (timeslot: { reference: string }, time: string): SlotPlace => ({
  timeslotReference: timeslot.reference,
  start: `2099-06-01T${time}`,
  productReference: 'product@test',
});

const bookingOf =
  (place: SlotPlace): Work =>
  async (tx) => {
    const booking = { ...owned, place, reference: freshReference('booking'), ignoreNotice: false, sendMails: false };
    const call = bookingCall({ timeZone: 'Europe/Berlin' }, randomUUIDv7(), { ...booking, state: 'RESERVED' });
    return appointmentOf(tx, 'book_slot', call.request);
  };

const moveOf =
  (participationReference: string, place: SlotPlace): Work =>
  async (tx) =>
    appointmentOf(tx, 'move_booking', {
      ...placeOf(place, 'Europe/Berlin'),
      participationReference,
      ignoreNotice: false,
      sendMails: false,
      origin: {},
    });

async function appointmentOf(tx: Kysely<CalendarSchema>, name: string, request: object): Promise<string> {
  const { id: providerId, version: providerVersion } = await tx
    .selectFrom('provider')
    .select(['id', 'version'])
    .where('crmId', '=', owned.crmId)
    .where('reference', '=', owned.providerReference)
    .executeTakeFirstOrThrow();
  const whole = { ...request, crmId: owned.crmId, providerId, providerVersion };
  const { rows } = await sql<{ answer: { id: string; error?: unknown } }>`
    SELECT ${sql.ref(name)}(${JSON.stringify(whole)}::jsonb) AS answer`.execute(tx);
  expect(rows[0]!.answer.error).toBeUndefined();
  const { reference } = await tx
    .selectFrom('participation')
    .innerJoin('appointment', 'appointment.id', 'participation.appointmentId')
    .select('appointment.reference')
    .where('participation.id', '=', rows[0]!.answer.id)
    .executeTakeFirstOrThrow();
  return reference;
}

class TakenBack extends Error {}

/** Sends the request after the work and before its end, which it waits for. */
async function sendDuring<Answer>(
  work: Work,
  end: 'committed' | 'taken back',
  send: () => Promise<Answer>,
): Promise<{ appointment: string; answer: Answer }> {
  let appointment = '';
  let answer: Promise<Answer> | undefined;
  let isAnswered = false;
  const transaction = calendar.database.kysely.transaction().execute(async (tx) => {
    appointment = await work(tx);
    answer = send();
    answer.then(
      () => (isAnswered = true),
      () => (isAnswered = true),
    );
    await eventually(async () => expect(isAnswered || (await countWaiting(calendar)) > 0).toBe(true));
    expect(isAnswered, 'it has not waited').toBe(false);
    if (end === 'taken back') throw new TakenBack();
  });
  await transaction.catch((error: unknown) => {
    if (!(error instanceof TakenBack)) throw error;
  });
  return { appointment, answer: await answer! };
}

describe('a block that is created', () => {
  it('while a place in it is being booked, waits and names the appointment', async () => {
    const timeslot = await createTimeslot(calendar);
    const block = blockAt(timeslot.resourceReference, '10:45', '11:30');
    const { appointment, answer } = await sendDuring(bookingOf(placeAt(timeslot, '10:30')), 'committed', () =>
      replicas[1]!.blocks.createBlock(block),
    );
    expect(answer.conflicts).toEqual({ appointmentReferences: [appointment], total: 1 });
  });

  it('while a place in it is being booked in vain, waits and names nothing', async () => {
    const timeslot = await createTimeslot(calendar);
    const block = blockAt(timeslot.resourceReference, '10:45', '11:30');
    const { answer } = await sendDuring(bookingOf(placeAt(timeslot, '10:30')), 'taken back', () =>
      replicas[1]!.blocks.createBlock(block),
    );
    expect(answer.conflicts).toEqual({ appointmentReferences: [], total: 0 });
    expect(await outcomeOf(book(placeIn(timeslot, '10:30')))).toBe('slot.unavailable blocked');
  });

  it('while a booking is being moved into it, waits and names the appointment', async () => {
    const timeslot = await createTimeslot(calendar);
    const { participation } = await book(placeIn(timeslot, '10:00'));
    const block = blockAt(timeslot.resourceReference, '11:00', '12:00');
    const { appointment, answer } = await sendDuring(
      moveOf(participation.reference, placeAt(timeslot, '11:00')),
      'committed',
      () => replicas[1]!.blocks.createBlock(block),
    );
    expect(answer.conflicts).toEqual({ appointmentReferences: [appointment], total: 1 });
  });

  it('while a booking is being moved out of it, waits and does not name what that has left', async () => {
    const timeslot = await createTimeslot(calendar);
    const { participation } = await book(placeIn(timeslot, '10:00'));
    const block = blockAt(timeslot.resourceReference, '10:00', '11:00');
    const { answer } = await sendDuring(moveOf(participation.reference, placeAt(timeslot, '11:00')), 'committed', () =>
      replicas[1]!.blocks.createBlock(block),
    );
    expect(answer.conflicts).toEqual({ appointmentReferences: [], total: 0 });
  });

  it.each(['of the CRM', 'that a booking made'])(
    'while somebody joins an appointment %s, waits for that and names it, and nobody joins it afterwards',
    async (whose) => {
      const { reference: timeslotReference, resourceReference } = await createTimeslot(calendar, {
        defaultCapacity: 3,
      });
      const [start, end] = ['2099-06-01T10:30', '2099-06-01T11:00'];
      const appointmentReference =
        whose === 'of the CRM'
          ? await createAppointment(calendar, { resourceReference, start, end, capacity: 3, acceptBookings: true })
          : (await book(placeIn({ reference: timeslotReference }, '10:30'))).participation.appointmentReference;
      const { answer } = await sendDuring(bookingOf({ appointmentReference }), 'committed', () =>
        replicas[1]!.blocks.createBlock(blockAt(resourceReference, '10:00', '10:35')),
      );
      expect(answer.conflicts).toEqual({ appointmentReferences: [appointmentReference], total: 1 });
      const joining = book({ $case: 'appointmentReference', value: appointmentReference });
      expect(await outcomeOf(joining)).toBe('slot.unavailable blocked');
    },
  );

  it.each(['before', 'after'])(
    'is there for a booking of a place, and for one of a class, that waits for its locks and was sent %s it',
    async (when) => {
      const timeslot = await createTimeslot(calendar);
      const { resourceReference } = timeslot;
      const [start, end] = ['2099-06-01T11:00', '2099-06-01T11:30'];
      const others = { resourceReference, start, end, capacity: 3, acceptBookings: true };
      const appointmentReference = await createAppointment(calendar, others);
      const bookings: Promise<string>[] = [];
      let creating: Promise<unknown> | undefined;
      await calendar.database.kysely.transaction().execute(async (tx) => {
        await sql`SELECT FROM timeslot WHERE reference = ${timeslot.reference} FOR UPDATE`.execute(tx);
        await sql`SELECT FROM appointment WHERE reference = ${appointmentReference} FOR UPDATE`.execute(tx);
        let waiting = 0;
        const send = async (request: () => unknown): Promise<void> => {
          void request();
          waiting += 1;
          await eventually(async () => expect(await countWaiting(calendar)).toBe(waiting));
        };
        const sendBookings = async (): Promise<void> => {
          await send(() => bookings.push(outcomeOf(book(placeIn(timeslot, '10:30')))));
          const value = appointmentReference;
          await send(() => bookings.push(outcomeOf(book({ $case: 'appointmentReference', value }, replicas[1]))));
        };
        const sendBlock = (): Promise<void> =>
          send(() => (creating = replicas[1]!.blocks.createBlock(blockAt(resourceReference, '10:00', '12:00'))));
        if (when === 'before') await sendBookings();
        await sendBlock();
        if (when === 'after') await sendBookings();
      });
      expect(await allEnded(bookings)).toEqual(['slot.unavailable blocked', 'slot.unavailable blocked']);
      expect(await creating).toMatchObject({
        conflicts: { appointmentReferences: [appointmentReference], total: 1 },
      });
    },
  );
});

describe('of two bookings at once that are too near to each other, in different timeslots,', () => {
  const near = { time: '11:00', outcome: 'slot.unavailable taken' };
  const cases = [
    { distance: 'after the first', first: { bufferAfter: 45 }, second: {} },
    { distance: 'before the second', first: {}, second: { bufferBefore: 45 } },
    { distance: 'of both', first: { bufferAfter: 15 }, second: { bufferBefore: 45 } },
  ];

  describe.each(cases)('with a buffer $distance,', ({ first, second }) => {
    it.each([
      { what: 'the later one waits for the earlier one', made: 'before', sent: 'earlier', end: 'committed', ...near },
      {
        what: 'the later one waits for one that fails',
        made: 'before',
        sent: 'earlier',
        end: 'taken back',
        ...near,
        outcome: 'booked',
      },
      { what: 'the earlier one waits for the later one', made: 'before', sent: 'later', end: 'committed', ...near },
      { what: 'one waits whose timeslot did not exist', made: 'meanwhile', sent: 'earlier', end: 'committed', ...near },
      {
        what: 'the earlier one waits, whose timeslot did not exist',
        made: 'meanwhile',
        sent: 'later',
        end: 'committed',
        ...near,
      },
    ] as const)('$what ($end)', async ({ made, sent, end, outcome }) => {
      const resourceReference = freshReference('resource');
      const create = (which: 'earlier' | 'later') =>
        createTimeslot(calendar, {
          resourceReference,
          raster: 30,
          ...(which === 'earlier'
            ? { start: '2099-06-01T10:00', end: '2099-06-01T11:00', ...first }
            : { start: '2099-06-01T11:00', end: '2099-06-01T12:00', ...second }),
        });
      const times = { earlier: '10:30', later: '11:00' };
      const other = sent === 'earlier' ? 'later' : 'earlier';
      const timeslot = await create(sent);
      const existing = made === 'before' ? await create(other) : undefined;
      const { answer } = await sendDuring(bookingOf(placeAt(timeslot, times[sent])), end, async () => {
        const second = existing ?? (await create(other));
        return outcomeOf(book(placeIn(second, times[other]), replicas[1]));
      });
      expect(answer).toBe(outcome);
    });

    it('one that moves waits for the other one', async () => {
      const resourceReference = freshReference('resource');
      const earlier = { resourceReference, start: '2099-06-01T10:00', end: '2099-06-01T11:00', ...first };
      const later = { resourceReference, start: '2099-06-01T11:00', end: '2099-06-01T14:00', ...second };
      const [one, other] = [await createTimeslot(calendar, earlier), await createTimeslot(calendar, later)];
      const { participation } = await book(placeIn(other, '13:00'));
      const moveTo = (time: string) =>
        outcomeOf(replicas[1]!.bookings.changeBooking(movementTo(participation.reference, placeIn(other, time))));
      const { answer } = await sendDuring(bookingOf(placeAt(one, '10:30')), 'committed', () => moveTo('11:00'));
      expect(answer).toBe('slot.unavailable taken');
      // A move that came first is in the way of a booking.
      const again = await createTimeslot(calendar, { ...earlier, resourceReference: freshReference('resource') });
      const beside = await createTimeslot(calendar, { ...later, resourceReference: again.resourceReference });
      const moving = (await book(placeIn(beside, '13:00'))).participation.reference;
      const { answer: outcome } = await sendDuring(moveOf(moving, placeAt(beside, '11:00')), 'committed', () =>
        outcomeOf(book(placeIn(again, '10:30'), replicas[1])),
      );
      expect(outcome).toBe('slot.unavailable taken');
    });
  });

  it('exactly one wins', async () => {
    for (let round = 0; round < 12; round += 1) {
      const resourceReference = freshReference('resource');
      const { first, second } = cases[round % cases.length]!;
      const earlier = await createTimeslot(calendar, { resourceReference, end: '2099-06-01T11:00', ...first });
      const later = await createTimeslot(calendar, { resourceReference, start: '2099-06-01T11:00', ...second });
      const bookings = [() => book(placeIn(earlier, '10:30')), () => book(placeIn(later, '11:00'), replicas[1])];
      if (round % 2 === 1) bookings.reverse();
      const outcomes = await allEnded(bookings.map((send) => outcomeOf(send())));
      expect(outcomes.toSorted()).toEqual(['booked', 'slot.unavailable taken']);
    }
  });
});

describe('a booking that has waited for a change of the buffers of its timeslot', () => {
  it('makes an appointment with the buffers that it has by then', async () => {
    const timeslot = await createTimeslot(calendar);
    expect(await sendWhileChanging(timeslot.reference, { bufferAfter: 45 }, '10:00')).toBe('booked');
    expect(await outcomeOf(book(placeIn(timeslot, '10:30')))).toBe('slot.unavailable taken');
    // It keeps them.
    await calendar.timeslots.updateTimeslot({ ...owned, timeslotReference: timeslot.reference, bufferAfter: 0 });
    expect(await outcomeOf(book(placeIn(timeslot, '11:00')))).toBe('slot.unavailable taken');
    expect(await outcomeOf(book(placeIn(timeslot, '11:30')))).toBe('booked');
  });

  it('is refused if it is too near to another one by then, and is made if it is not any more', async () => {
    const [nearer, farther] = [await createTimeslot(calendar), await createTimeslot(calendar, { bufferBefore: 45 })];
    for (const { resourceReference } of [nearer, farther]) {
      const times = { start: '2099-06-01T10:00', end: '2099-06-01T10:30' };
      await createAppointment(calendar, { resourceReference, ...times });
    }
    expect(await sendWhileChanging(nearer.reference, { bufferBefore: 45 }, '11:00')).toBe('slot.unavailable taken');
    expect(await sendWhileChanging(farther.reference, { bufferBefore: 30 }, '11:00')).toBe('booked');
  });

  async function sendWhileChanging(
    reference: string,
    change: { bufferBefore?: number; bufferAfter?: number },
    time: string,
  ): Promise<string> {
    let outcome: Promise<string> | undefined;
    await calendar.database.kysely.transaction().execute(async (tx) => {
      await tx.updateTable('timeslot').set(change).where('reference', '=', reference).execute();
      outcome = outcomeOf(book(placeIn({ reference }, time)));
      await eventually(async () => expect(await countWaiting(calendar)).toBe(1));
    });
    return outcome!;
  }
});

describe(`${clients} clients for ${seconds} s`, { timeout: (seconds + 60) * 1_000 }, () => {
  it('book, move, join and cancel while others block periods, set hours and change buffers: nothing is booked in a block, what was is named, and all keep their distance', async () => {
    await createAppointment(calendar, {
      ...room,
      reference: classReference,
      start: textOf(classSpan.start),
      end: textOf(classSpan.end),
      capacity: classCapacity,
      acceptBookings: true,
    });
    const outcomes = new Map<string, number>();
    const seen = (what: string): number => outcomes.get(what) ?? 0;
    const count: Count = async (what, call) => {
      const outcome = await raceOutcomeOf(call);
      const name = outcome === 'booked' ? `${what} done` : outcome;
      outcomes.set(name, seen(name) + 1);
      return outcome === 'booked';
    };
    let checks = 0;
    const endsAt = performance.now() + seconds * 1_000;
    // A busy machine takes longer to get into every situation often enough.
    const hasSeenEnough = (): boolean =>
      ['book', 'move', 'join', 'cancel', 'block', 'put', 'offer', 'create'].every(
        (what) => seen(`${what} done`) > seconds,
      ) &&
      seen('slot.unavailable blocked') > 3 * seconds &&
      seen('slot.unavailable taken') > 3 * seconds &&
      named > seconds &&
      checks > 5;
    const isRunning = (): boolean => performance.now() < endsAt || !hasSeenEnough();
    for (const handMade of handMadeTimeslots) await createTimeslot(calendar, handMade);
    await count('put', putHours(calendar, room, variants[0]!));
    await allEnded([
      ...Array.from({ length: clients }, (_, index) => playClient(replicas[index % 3]!, isRunning, count)),
      ...replicas.slice(0, 2).map((replica) => blockPeriods(replica, isRunning, count)),
      changeHours(replicas[1]!, isRunning, count),
      changeOffers(replicas[0]!, isRunning, count),
      recreateTimeslots(replicas[1]!, isRunning, count),
      appointAtRandom(replicas[0]!, isRunning, count),
      (async () => {
        for (; isRunning(); checks += 1) expect(await findViolations()).toEqual([]);
      })(),
    ]);
    expect(await findViolations()).toEqual([]);
    expect(unnamed).toEqual([]);
    expect(bookedInBlocks()).toEqual([]);
    const unexpected = [...outcomes.keys()].filter(
      (outcome) => !outcome.endsWith(' done') && !expectedOutcomes.has(outcome),
    );
    expect(unexpected).toEqual([]);
    expect(hasSeenEnough()).toBe(true);
  });

  it('cause no deadlock', async () => {
    await stack.disposeAsync();
    expect(await calendar.countDeadlocks()).toBe(0);
  });
});

const expectedOutcomes = new Set([
  'slot.unavailable taken',
  'slot.unavailable full',
  'slot.unavailable closed',
  'slot.unavailable blocked',
  'slot.unavailable private',
  'slot.busy',
  'timeslot.not_found',
  'timeslot.has_appointments',
  'timeslot.reference_taken',
  'appointment.not_found',
  'participation.not_found',
  'participation.move_not_allowed',
]);

/** Of the race: a single day, so that all meet each other. */
const room = { ...owned, resourceReference: freshReference('resource') };
const day = Math.floor(Date.now() / dayMs) + 3;
const at = (minutes: number): number => day * dayMs + minutes * minuteMs;
const textOf = (time: number): string => new Date(time).toISOString();
const period = { from: new Date((day - 1) * dayMs), to: new Date((day + 2) * dayMs) };

interface Span {
  start: number;
  end: number;
}
const overlap = (one: Span, other: Span): boolean => one.start < other.end && other.start < one.end;

/** Appointments show which of these their timeslot had when they were made. */
const offers = [
  { defaultCapacity: 1, bufferBefore: 0, bufferAfter: 0 },
  { defaultCapacity: 2, bufferBefore: 0, bufferAfter: 35 },
  { defaultCapacity: 3, bufferBefore: 20, bufferAfter: 10 },
  { defaultCapacity: 4, bufferBefore: 50, bufferAfter: 0 },
];
/** Of the class, which keeps no distance. It is there all the time, so all others keep theirs from it. */
const classCapacity = 10_000;
const classReference = freshReference('class');
const classSpan = { start: at(9 * 60), end: at(9 * 60 + 30) };

const handMadeTimeslots = [0, 1, 2, 3].map((index) => ({
  ...room,
  ...offers[index]!,
  reference: freshReference('timeslot'),
  start: textOf(at([360, 420, 570, 600][index]!)),
  end: textOf(at([540, 480, 780, 900][index]!)),
  raster: [30, 20, 15, 30][index]!,
}));

const hoursOf = (...windows: Parameters<typeof newWindow>[0][]): Hours => {
  const date = dateOf(day);
  return newHours({
    exceptions: [{ from: date, to: date, windows: windows.map((each) => newWindow({ weekdays: [], ...each })) }],
    aheadDays: 14,
  });
};
const variants = [
  hoursOf({ from: '09:00', to: '12:00', ...offers[1] }, { from: '13:00', to: '15:00', ...offers[2] }),
  hoursOf({ from: '09:00', to: '12:00', ...offers[2] }, { from: '12:00', to: '14:00', raster: 20, ...offers[0] }),
  hoursOf({ from: '10:00', to: '13:00', raster: 20, ...offers[3] }, { from: '13:00', to: '15:00', ...offers[2] }),
];

/** What was booked or joined, and when the request was on its way. */
interface Success {
  span: Span;
  sentAt: number;
  answeredAt: number;
}
const successes: Success[] = [];

/** When it was certainly there. */
interface KnownBlock {
  span: Span;
  createdAt: number;
  deletedAt: number;
}
const knownBlocks: KnownBlock[] = [];
/** How many appointments were named by blocks. */
let named = 0;
/** Appointments with participants, made by bookings, that were in a block and not among its conflicts. */
const unnamed: unknown[] = [];

function bookedInBlocks(): unknown[] {
  return knownBlocks.flatMap((block) =>
    successes
      .filter(
        ({ span, sentAt, answeredAt }) =>
          overlap(span, block.span) && sentAt >= block.createdAt && answeredAt <= block.deletedAt,
      )
      .map((success) => ({ block, success })),
  );
}

type Count = (what: string, call: Promise<unknown>) => Promise<boolean>;

/** `booked` for every success. */
async function raceOutcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    return await outcomeOf(call);
  } catch (error) {
    if (isTooSlow(error)) return 'slot.busy';
    throw error;
  }
}

interface Booked {
  reference: string;
  span: Span;
  canMove: boolean;
}

/** Books in a timeslot that was there a moment ago, moves what it has booked, joins, and cancels. */
async function playClient(replica: Calendar, isRunning: () => boolean, count: Count): Promise<void> {
  const booked: Booked[] = [];
  let last: { appointmentReference: string; span: Span } | undefined;
  const attempt = async <Answer>(
    what: string,
    span: Span,
    send: () => Promise<Answer>,
    accept: (answer: Answer) => void,
  ): Promise<void> => {
    const sentAt = performance.now();
    const call = send().then((answer) => {
      successes.push({ span, sentAt, answeredAt: performance.now() });
      accept(answer);
    });
    await count(what, call);
  };
  const bookAt = async (what: string, place: BookSlotRequest['place'], span: Span): Promise<void> => {
    const isHold = Math.random() < 0.2;
    const request = newBooking(place, isHold ? {} : customerOf(customerReference));
    await attempt(
      what,
      span,
      () => replica.bookings.bookSlot(request),
      ({ participation }) => {
        const { reference, appointmentReference } = participation;
        booked.push({ reference, span, canMove: !isHold });
        if (appointmentReference !== classReference) last = { appointmentReference, span };
      },
    );
  };
  while (isRunning()) {
    const timeslots = await listTimeslots(replica, room, period.from, period.to);
    if (timeslots.length === 0) continue;
    for (let attempts = 0; attempts < 3; attempts += 1) {
      const { place, span } = anyPlace(timeslots);
      await bookAt('book', place, span);
      const movable = booked.filter(({ canMove }) => canMove);
      const target = anyPlace(timeslots);
      const mover = movable.length > 0 ? pick(movable) : undefined;
      // Where it is already, it may stay.
      if (mover !== undefined && mover.span.start !== target.span.start)
        await attempt(
          'move',
          target.span,
          () => replica.bookings.changeBooking(movementTo(mover.reference, target.place)),
          () => (mover.span = target.span),
        );
      const joined =
        last !== undefined && Math.random() < 0.7 ? last : { appointmentReference: classReference, span: classSpan };
      await bookAt('join', { $case: 'appointmentReference', value: joined.appointmentReference }, joined.span);
      while (booked.length > 2) {
        const participationReference = booked.shift()!.reference;
        const change = { state: ParticipationState.CANCELED, ignoreCapacity: false, sendMails: false };
        await count(
          'cancel',
          replica.participations.updateParticipation({ ...owned, participationReference, ...change }),
        );
      }
    }
  }
}

/** At a random step. */
function anyPlace(timeslots: TimeslotJson[]): { place: BookSlotRequest['place']; span: Span } {
  const { reference, start, end, raster } = pick(timeslots);
  const steps = Math.floor((Date.parse(end) - Date.parse(start)) / raster / minuteMs);
  const from = Date.parse(start) + Math.floor(Math.random() * steps) * raster * minuteMs;
  const value = { timeslotReference: reference, start: textOf(from), productReference: 'product@test' };
  return { place: { $case: 'timeslot', value }, span: { start: from, end: from + raster * minuteMs } };
}

/** Blocks a period for a moment. What is in it has been named, as long as it is there. */
async function blockPeriods(replica: Calendar, isRunning: () => boolean, count: Count): Promise<void> {
  while (isRunning()) {
    const from = at(360 + 5 * Math.floor(Math.random() * 108));
    const span = { start: from, end: from + 5 * minuteMs * (1 + Math.floor(Math.random() * 10)) };
    const reference = freshReference('block');
    const request = { ...room, reference, start: textOf(span.start), end: textOf(span.end) };
    let conflicts: string[] = [];
    const isCreated = await count(
      'block',
      replica.blocks.createBlock(request).then((answer) => {
        conflicts = answer.conflicts!.appointmentReferences;
        expect(conflicts).toHaveLength(answer.conflicts!.total);
      }),
    );
    const block = { span, createdAt: performance.now(), deletedAt: Number.POSITIVE_INFINITY };
    if (isCreated) {
      knownBlocks.push(block);
      named += conflicts.length;
      for (let times = 0; times < 3; times += 1) unnamed.push(...(await findUnnamed(span, conflicts)));
    }
    block.deletedAt = performance.now();
    // Also if it was too slow: it may exist.
    await count('unblock', replica.blocks.deleteBlock({ ...room, blockReference: reference }).catch(ignoreMissing));
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof DomainError && error.code === 'block.not_found')) throw error;
}

/** What bookings have made in a period, and somebody is in, that is not among these. */
async function findUnnamed({ start, end }: Span, conflicts: string[]): Promise<unknown[]> {
  const { rows } = await sql`
    SELECT reference, starts_at, ends_at FROM appointment
     WHERE crm_id = ${room.crmId} AND resource_reference = ${room.resourceReference} AND state = 'ACTIVE' AND when_empty IS NOT NULL
       AND starts_at < ${new Date(end)} AND ends_at > ${new Date(start)} AND reference <> ALL (${conflicts})
       AND EXISTS (
         SELECT FROM participation
          WHERE participation.crm_id = appointment.crm_id AND appointment_id = appointment.id
            AND participation.state IN ('BOOKED', 'REQUESTED', 'RESERVED') AND (reserved_until IS NULL OR reserved_until > scheduling_now()))`.execute(
    calendar.database.kysely,
  );
  return rows;
}

/** Sets one after the other, and sometimes none. */
async function changeHours(replica: Calendar, isRunning: () => boolean, count: Count): Promise<void> {
  while (isRunning()) {
    if (Math.random() < 0.2) await count('remove', replica.hours.deleteHours(room));
    else await count('put', replica.hours.putHours({ ...room, hours: pick(variants) }));
  }
}

/** Changes what the timeslots offer, and which distance it keeps. */
async function changeOffers({ timeslots }: Calendar, isRunning: () => boolean, count: Count): Promise<void> {
  while (isRunning()) {
    const key = { ...owned, timeslotReference: pick(handMadeTimeslots).reference };
    await count('offer', timeslots.updateTimeslot({ ...key, ...pick(offers) }));
  }
}

/** Creates others beside them, and deletes them when they are empty. */
async function recreateTimeslots(replica: Calendar, isRunning: () => boolean, count: Count): Promise<void> {
  const created: string[] = [];
  while (isRunning()) {
    if (created.length < 4) {
      const start = at(360 + 15 * Math.floor(Math.random() * 32));
      const span = { start: textOf(start), end: textOf(start + 60 * minuteMs) };
      const timeslot = newTimeslot({ ...room, ...pick(offers), ...span });
      if (await count('create', replica.timeslots.createTimeslots({ ...owned, timeslots: [timeslot] })))
        created.push(timeslot.reference);
    }
    const timeslotReference = created.shift();
    if (timeslotReference === undefined) continue;
    if (!(await count('delete', replica.timeslots.deleteTimeslot({ ...owned, timeslotReference }))))
      created.push(timeslotReference);
  }
}

/** The CRM makes appointments in spite of blocks, and cancels them. They lie where no booking is compared with them. */
async function appointAtRandom({ appointments }: Calendar, isRunning: () => boolean, count: Count): Promise<void> {
  while (isRunning()) {
    const start = at(360 + 5 * Math.floor(Math.random() * 108));
    const reference = freshReference('appointment');
    const request = newAppointment({ ...room, reference, start: textOf(start), end: textOf(start + 10 * minuteMs) });
    await count('appoint', appointments.createAppointment(request));
    await count('dismiss', appointments.cancelAppointment({ ...owned, appointmentReference: reference }));
  }
}

/**
 * Pairs of appointments that bookings have made, or of one and the class, that overlap or are too near to each other,
 * and appointments whose counter is not the number of those who have a seat, as of one moment.
 */
async function findViolations(): Promise<unknown[]> {
  const { rows } = await sql`
    WITH offer AS (
      SELECT * FROM jsonb_to_recordset(${JSON.stringify([...offers, { defaultCapacity: classCapacity, bufferBefore: 0, bufferAfter: 0 }])}::jsonb)
        AS offer ("defaultCapacity" integer, "bufferBefore" integer, "bufferAfter" integer)),
    place AS (
      SELECT appointment.*, "bufferBefore" AS before, "bufferAfter" AS after,
             (SELECT count(*) FROM participation WHERE participation.crm_id = appointment.crm_id AND appointment_id = appointment.id AND participation.state IN ('BOOKED', 'RESERVED')) AS seats
        FROM appointment JOIN offer ON "defaultCapacity" = capacity
       WHERE crm_id = ${room.crmId} AND resource_reference = ${room.resourceReference} AND state = 'ACTIVE' AND (when_empty IS NOT NULL OR reference = ${classReference}))
    SELECT 'distance' AS violation, format('%s to %s, %s to %s', one.starts_at, one.ends_at, other.starts_at, other.ends_at) AS places
      FROM place AS one JOIN place AS other ON one.id <> other.id AND one.starts_at <= other.starts_at
     WHERE other.starts_at < one.ends_at + make_interval(mins => greatest(one.after, other.before))
     UNION ALL
    SELECT 'seats', format('%s: %s taken, %s seats, capacity %s', id, taken, seats, capacity) FROM place WHERE taken <> seats OR taken > capacity`.execute(
    calendar.database.kysely,
  );
  return rows;
}

function pick<T>(values: T[]): T {
  return values[Math.floor(Math.random() * values.length)]!;
}

/** `booked` for every success. */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'booked';
  } catch (error) {
    if (!(error instanceof DomainError) || isTooSlow(error)) throw error;
    return [error.code, error.reason].filter((part) => part !== undefined).join(' ');
  }
}
