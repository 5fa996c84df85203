import type { LimitPart } from './limits.ts';
import type { Transaction, transactionsOf } from './limit-statements.ts';
import { type BenchRequest, random, type requestsOf } from './requests.ts';
import type { SeedSize } from './seed.ts';

type Requests = ReturnType<typeof requestsOf>;
type Transactions = ReturnType<typeof transactionsOf>;

interface Common {
  name: string;
  /** What the result needs to be understood. */
  note?: string;
  /** How many CRMs take turns: a single one gets only a part of what the gateway and calendar can do at a time. */
  tenants: number;
  /** What each of them has. */
  seed: SeedSize;
}

/** As many requests as possible, then an even load of a part of that. */
export interface LoadCase extends Common {
  kind: 'load';
  /** The request of a tenant with a number, from 0. */
  request: (requests: Requests, number: number) => BenchRequest;
  limit: (transactions: Transactions) => LimitPart[];
  /** Fewer than usual for requests that are so much work that some would wait too long for their turn. */
  connections?: number;
  /** What the only tenant of the limit has, unless it has the same. */
  limitSeed?: SeedSize;
  /** The case whose rate it is compared with. */
  comparedWith?: string;
}

/** One response after the other. */
export interface ListCase extends Common {
  kind: 'list';
  request: (requests: Requests) => BenchRequest;
  limit: (transactions: Transactions) => string;
  limitSeed?: SeedSize;
  repetitions: number;
}

/** A load on a stack of its own, from its first moment on. */
export interface FreshCase extends Common {
  kind: 'fresh';
  request: LoadCase['request'];
}

/** An even load, in turn with and without the background work of a service. */
export interface BackgroundCase extends Common {
  kind: 'background';
  request: LoadCase['request'];
  /** The service that stands still in every second part. */
  service: 'webhook';
}

/** No requests. */
export interface RestCase {
  kind: 'rest';
  name: string;
}

export type Case = LoadCase | ListCase | FreshCase | BackgroundCase | RestCase;

const tenants = 4;
const slotResources = 10;
const booked = 'book, 20,000 appointments';

export const cases: Case[] = [
  { kind: 'rest', name: 'at rest' },
  // Before the other stack has data to tidy up.
  {
    kind: 'fresh',
    name: 'first minutes',
    note: 'bookings in a new stack with 200 appointments',
    tenants,
    seed: { appointments: 200 / tenants },
    request: (requests) => requests.book(200 / tenants),
  },
  ...[100, 10_000, 100_000].map((count) => list(count)),
  slots('slots of a week of a resource', 7, 1),
  slots('slots of 30 days of 10 resources', 30, slotResources),
  bookingOfSlots(),
  {
    kind: 'background',
    name: 'book with and without the event feed',
    note: '20,000 appointments',
    tenants,
    seed: { appointments: 20_000 / tenants },
    request: (requests) => requests.book(20_000 / tenants),
    service: 'webhook',
  },
  booking({ name: 'book, 10 appointments', tenants: 2, appointments: 10 }),
  booking({ name: 'book, 1 appointment', tenants: 1, appointments: 1 }),
  writing(
    'create an appointment with 2 participations',
    (requests) => requests.createAppointment(),
    (transactions) => transactions.createAppointment(),
  ),
  {
    ...writing(
      'create a series of 100',
      (requests) => requests.createSeries(100),
      (transactions) => transactions.createSeries(100),
    ),
    connections: 16,
  },
  moving(),
  // Postgres tidies up after the mails for a while.
  booking({ name: 'book with mails, 20,000 appointments', tenants, appointments: 20_000, mails: true }),
  timeslots(),
  writing(
    'get a customer',
    (requests) => requests.getCustomer(),
    (transactions) => transactions.getCustomer(),
  ),
  writing(
    'create a customer',
    (requests) => requests.createCustomer(),
    (transactions) => transactions.createCustomer(),
  ),
  mix(),
  booking({ name: 'book with keys, 20,000 appointments', tenants, appointments: 20_000, withKey: true }),
  // These two are compared, so nothing comes between them.
  booking({ name: booked, tenants, appointments: 20_000 }),
  {
    ...booking({ name: 'book, 1,000,000 appointments', tenants, appointments: 1_000_000, participations: 3 }),
    comparedWith: booked,
  },
];

function list(count: number): ListCase {
  return {
    kind: 'list',
    name: `list of ${count.toLocaleString('en')} appointments`,
    note: '2 participations in each',
    tenants: 1,
    seed: { appointments: count, participations: 2 },
    request: (requests) => requests.allAppointments(count, 2),
    limit: (transactions) => transactions.allAppointments(),
    repetitions: count > 10_000 ? 3 : 10,
  };
}

/** 12 free places a day for each resource, and 8 open appointments. */
function slots(name: string, days: number, resources: number): ListCase {
  const [appointments, appointmentsADay, participations] = [1_000_000, 8, 3];
  const ofOne = resources === 1;
  return {
    kind: 'list',
    name,
    note: 'among 1,000,000 appointments with 3 participations each',
    tenants: 1,
    seed: {
      appointments,
      resources: slotResources,
      appointmentsADay,
      participations,
      timeslots: appointments / appointmentsADay,
    },
    request: (requests) => requests.slots(days, resources, ofOne ? '&resourceRef=room-1' : ''),
    limit: (transactions) => transactions.slots(days, ofOne ? { resourceReference: 'room-1' } : {}),
    repetitions: ofOne ? 200 : 20,
  };
}

function bookingOfSlots(): LoadCase {
  const seed = { timeslots: 25_000, resources: 50 };
  const limitSeed = { timeslots: seed.timeslots * tenants, resources: seed.resources * tenants };
  return {
    kind: 'load',
    name: 'book a new slot',
    note: 'each makes an appointment',
    tenants,
    seed,
    request: (requests, number) => requests.bookSlot(number, seed),
    limit: (transactions) => whole(transactions.bookSlot(limitSeed)),
    limitSeed,
  };
}

interface Booking {
  name: string;
  tenants: number;
  /** Of all tenants. */
  appointments: number;
  participations?: number;
  mails?: boolean;
  /** An `Idempotency-Key` in each request. */
  withKey?: boolean;
}

function booking({ name, tenants, appointments, participations = 0, mails, withKey }: Booking): LoadCase {
  return {
    kind: 'load',
    name,
    note: participations > 0 ? `${participations} participations in each` : undefined,
    tenants,
    seed: { appointments: appointments / tenants, participations },
    request: (requests) => requests.book(appointments / tenants, { mails, withKey }),
    limit: (transactions) => whole(transactions.book(appointments, { mails })),
    limitSeed: { appointments, participations },
  };
}

/** Requests that need nothing but the customers that every tenant has. */
function writing(
  name: string,
  request: LoadCase['request'],
  limit: (transactions: Transactions) => Transaction,
): LoadCase {
  return { kind: 'load', name, tenants, seed: {}, request, limit: (transactions) => whole(limit(transactions)) };
}

function moving(): LoadCase {
  const [appointments, participations] = [20_000, 8];
  return {
    kind: 'load',
    name: 'move a participation',
    note: 'REQUESTED to BOOKED to DELETED to CANCELED',
    tenants,
    seed: { appointments: appointments / tenants, participations, state: 'REQUESTED' },
    request: (requests, number) => requests.move(...moveOf(number)),
    limit: (transactions) => whole(transactions.move(appointments * participations)),
    limitSeed: { appointments, participations, state: 'REQUESTED' },
  };
}

/** Only the first week has appointments. */
function timeslots(): LoadCase {
  const [rooms, appointmentsADay] = [1_000, 4];
  const seedOf = (resources: number): SeedSize => ({
    appointments: resources * appointmentsADay * 7,
    resources,
    appointmentsADay,
    participations: 1,
    timeslots: resources * 1_000,
  });
  return {
    kind: 'load',
    name: 'timeslots of a week',
    connections: 16,
    note: '7 timeslots with 4 appointments each, among 1,000,000 timeslots',
    tenants,
    seed: seedOf(rooms / tenants),
    request: (requests) => requests.timeslotsOfWeek(random(rooms / tenants), 0, appointmentsADay),
    limit: (transactions) => whole(transactions.timeslotsOfWeek(rooms, 1)),
    limitSeed: seedOf(rooms),
  };
}

interface MixPart {
  share: number;
  request: LoadCase['request'];
  limit: (transactions: Transactions) => Transaction;
}

/** Five rooms with eight appointments a day for 200 days; a week begins on any of the first 193. */
function mix(): LoadCase {
  const [rooms, days, perDay, participations] = [5, 200, 8, 3];
  const [weeks, appointments] = [days - 7, rooms * days * perDay];
  const seed = { appointments, resources: rooms, appointmentsADay: perDay, participations, timeslots: rooms * days };
  const parts: MixPart[] = [
    {
      share: 0.5,
      request: (requests) => requests.timeslotsOfWeek(random(rooms), random(weeks), perDay),
      limit: (transactions) => transactions.timeslotsOfWeek(rooms, weeks),
    },
    {
      share: 0.2,
      request: (requests) => requests.appointmentsOfDay(random(days), rooms * perDay),
      limit: (transactions) => transactions.appointmentsOfDay(days),
    },
    {
      share: 0.15,
      request: (requests) => requests.book(appointments),
      limit: (transactions) => transactions.book(appointments),
    },
    {
      share: 0.05,
      request: (requests, number) => requests.move(Math.floor(number / 20), 'CANCELED', -1),
      limit: (transactions) => transactions.move(appointments * participations),
    },
    {
      share: 0.05,
      request: (requests) => requests.createCustomer(),
      limit: (transactions) => transactions.createCustomer(),
    },
    { share: 0.05, request: (requests) => requests.getCustomer(), limit: (transactions) => transactions.getCustomer() },
  ];
  // A fixed order of twenty requests, in which neighbours differ.
  const wheel = parts
    .flatMap((part) =>
      Array.from({ length: Math.round(20 * part.share) }, (_, index) => ({ part, place: index / part.share })),
    )
    .toSorted((a, b) => a.place - b.place);
  return {
    kind: 'load',
    name: 'mix of a practice',
    connections: 16,
    note: '50 % timeslots of a week (56 appointments), 20 % appointments of a day (40), 15 % bookings, 5 % cancellations, 5 % customers created, 5 % customers read',
    tenants,
    seed,
    // The limit of a cancellation makes all three moves of a participation.
    limitSeed: { ...seed, state: 'REQUESTED' },
    request: (requests, number) => wheel[number % wheel.length]!.part.request(requests, number),
    limit: (transactions) => parts.map(({ share, limit }) => ({ share, transaction: limit(transactions) })),
  };
}

function whole(transaction: Transaction): LimitPart[] {
  return [{ share: 1, transaction }];
}

const blockSize = 1_000;
const moves = [
  ['BOOKED', 1],
  ['DELETED', -1],
  ['CANCELED', 0],
] as const;

/**
 * Each thousand participations makes its three moves, before the next thousand does. The second move of one comes a
 * thousand requests after the first.
 */
function moveOf(number: number): [participation: number, state: string, seats: number] {
  const block = Math.floor(number / (blockSize * moves.length));
  const [state, seats] = moves[Math.floor(number / blockSize) % moves.length]!;
  return [block * blockSize + (number % blockSize), state, seats];
}
