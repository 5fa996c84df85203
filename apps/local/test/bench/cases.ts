import type { LimitPart } from './limits.ts';
import { type transactionsOf } from './limit-statements.ts';
import { type BenchRequest, random, type requestsOf } from './requests.ts';
import type { SeedSize } from './seed.ts';

type Requests = ReturnType<typeof requestsOf>;
type Transactions = ReturnType<typeof transactionsOf>;

interface Common {
  name: string;
  /** What the result needs to be understood. */
  note?: string;
  seed: SeedSize;
}

/** As many requests as possible, then an even load of a part of that. */
export interface LoadCase extends Common {
  kind: 'load';
  /** The request with a number, from 0. */
  request: (requests: Requests, number: number) => BenchRequest;
  limit: (transactions: Transactions) => LimitPart[];
  /** The case whose rate it is compared with. */
  comparedWith?: string;
}

/** One response after the other. */
export interface ListCase extends Common {
  kind: 'list';
  request: (requests: Requests) => BenchRequest;
  limit: (transactions: Transactions) => string;
  repetitions: number;
}

/** A load on a stack of its own, from its first moment on. */
export interface FreshCase extends Common {
  kind: 'fresh';
  request: (requests: Requests) => BenchRequest;
}

/** No requests. */
export interface RestCase {
  kind: 'rest';
  name: string;
}

export type Case = LoadCase | ListCase | FreshCase | RestCase;

const capacity = { participations: 0, resources: 10 };
const booked = 'book, 20,000 appointments';

export const cases: Case[] = [
  { kind: 'rest', name: 'at rest' },
  ...[100, 10_000, 100_000].map((count) => list(count)),
  booking(booked, 20_000),
  booking('book, 10 appointments', 10),
  booking('book, 1 appointment', 1),
  {
    kind: 'load',
    name: 'create an appointment with 2 participations',
    seed: {},
    request: (requests) => requests.createAppointment(),
    limit: (transactions) => whole(transactions.createAppointment()),
  },
  {
    kind: 'load',
    name: 'create a series of 100',
    seed: {},
    request: (requests) => requests.createSeries(100),
    limit: (transactions) => whole(transactions.createSeries(100)),
  },
  {
    kind: 'load',
    name: 'move a participation',
    note: 'REQUESTED to BOOKED to DELETED to CANCELED',
    seed: { appointments: 20_000, participations: 8, state: 'REQUESTED' },
    request: (requests, number) => requests.move(...moveOf(number)),
    limit: (transactions) => whole(transactions.move()),
  },
  {
    kind: 'load',
    name: 'timeslots of a week',
    note: '7 timeslots with 4 appointments each, among 1,000,000 timeslots',
    seed: { appointments: 28_000, resources: 1_000, appointmentsADay: 4, participations: 1, timeslots: 1_000_000 },
    request: (requests) => requests.timeslotsOfWeek(random(1_000), 0, 4),
    limit: (transactions) => whole(transactions.timeslotsOfWeek(1_000, 1)),
  },
  {
    kind: 'load',
    name: 'get a customer',
    seed: {},
    request: (requests) => requests.getCustomer(),
    limit: (transactions) => whole(transactions.getCustomer()),
  },
  {
    kind: 'load',
    name: 'create a customer',
    seed: {},
    request: (requests) => requests.createCustomer(),
    limit: (transactions) => whole(transactions.createCustomer()),
  },
  mix(),
  booking('book with mails, 20,000 appointments', 20_000, { mails: true }),
  { ...booking('book, 1,000,000 appointments', 1_000_000), note: '3,000,000 participations', seed: { ...capacity, appointments: 1_000_000, participations: 3 }, comparedWith: booked },
  { kind: 'fresh', name: 'first minutes', note: 'bookings in a new stack with 200 appointments', seed: { ...capacity, appointments: 200 }, request: (requests) => requests.book(200) },
];

function booking(name: string, appointments: number, options: { mails?: boolean } = {}): LoadCase {
  return {
    kind: 'load',
    name,
    seed: { ...capacity, appointments },
    request: (requests) => requests.book(appointments, options),
    limit: (transactions) => whole(transactions.book(appointments, options)),
  };
}

function list(count: number): ListCase {
  return {
    kind: 'list',
    name: `list of ${count.toLocaleString('en')} appointments`,
    note: '2 participations in each',
    seed: { appointments: count, participations: 2 },
    request: (requests) => requests.allAppointments(count, 2),
    limit: (transactions) => transactions.allAppointments(),
    repetitions: count > 10_000 ? 3 : 10,
  };
}

/** Five rooms with eight appointments a day for 200 days; a week begins on any of the first 193. */
function mix(): LoadCase {
  const [rooms, days, perDay] = [5, 200, 8];
  const weeks = days - 7;
  const parts: { share: number; request: (requests: Requests, number: number) => BenchRequest; limit: (transactions: Transactions) => LimitPart['transaction'] }[] = [
    { share: 0.5, request: (requests) => requests.timeslotsOfWeek(random(rooms), random(weeks), perDay), limit: (transactions) => transactions.timeslotsOfWeek(rooms, weeks) },
    { share: 0.2, request: (requests) => requests.appointmentsOfDay(random(days), rooms * perDay), limit: (transactions) => transactions.appointmentsOfDay(days) },
    { share: 0.15, request: (requests) => requests.book(rooms * days * perDay), limit: (transactions) => transactions.book(rooms * days * perDay) },
    { share: 0.05, request: (requests, number) => requests.move(Math.floor(number / 20), 'CANCELED', -1), limit: (transactions) => transactions.move() },
    { share: 0.05, request: (requests) => requests.createCustomer(), limit: (transactions) => transactions.createCustomer() },
    { share: 0.05, request: (requests) => requests.getCustomer(), limit: (transactions) => transactions.getCustomer() },
  ];
  // A fixed order of twenty requests, in which neighbours differ.
  const wheel = parts.flatMap((part) => Array.from({ length: 20 * part.share }, (_, index) => ({ part, place: index / part.share }))).toSorted((a, b) => a.place - b.place);
  return {
    kind: 'load',
    name: 'mix of a practice',
    note: '50 % timeslots of a week (56 appointments), 20 % appointments of a day (40), 15 % bookings, 5 % cancellations, 5 % customers created, 5 % customers read',
    seed: { appointments: rooms * days * perDay, resources: rooms, appointmentsADay: perDay, participations: 3, timeslots: rooms * days },
    request: (requests, number) => wheel[number % wheel.length]!.part.request(requests, number),
    limit: (transactions) => parts.map(({ share, limit }) => ({ share, transaction: limit(transactions) })),
  };
}

function whole(transaction: LimitPart['transaction']): LimitPart[] {
  return [{ share: 1, transaction }];
}

const blockSize = 1_000;
const moves = [
  ['BOOKED', 1],
  ['DELETED', -1],
  ['CANCELED', 0],
] as const;

/** Each thousand participations makes its three moves, before the next thousand does. The second move of one comes a thousand requests after the first. */
function moveOf(number: number): [participation: number, state: string, seats: number] {
  const block = Math.floor(number / (blockSize * moves.length));
  const [state, seats] = moves[Math.floor(number / blockSize) % moves.length]!;
  return [block * blockSize + (number % blockSize), state, seats];
}
