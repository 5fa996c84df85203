/**
 * What can be booked, and why something cannot, as a person finds out who has the rules (interface 10) and a calendar on
 * paper: place by place, appointment by appointment, and with nothing of what the service uses for it.
 */

export const minuteMs = 60_000;
export const dayMs = 24 * 60 * minuteMs;

export type Reason = 'closed' | 'off_raster' | 'too_soon' | 'too_late' | 'private' | 'blocked' | 'taken' | 'full';
/** Whether a booking makes an appointment, takes a seat in one, is there already, or is refused. */
export type Verdict = 'made' | 'joined' | 'present' | 'not_found' | Reason;

/** In epoch milliseconds. */
export interface Span {
  start: number;
  end: number;
}

/** In minutes. */
export interface Buffers {
  before: number;
  after: number;
}

export interface Timeslot extends Span, Buffers {
  reference: string;
  resource: string;
  raster: number;
  capacity: number;
  acceptBookings: boolean;
  isBookable: boolean;
}

export type PersonState = 'BOOKED' | 'REQUESTED' | 'RESERVED' | 'OVER' | 'CANCELED' | 'DELETED';

export interface Person {
  reference: string;
  /** OVER: a reservation that has expired. */
  state: PersonState;
}

export interface Appointment extends Span, Buffers {
  reference: string;
  resource: string;
  product: string;
  capacity: number;
  acceptBookings: boolean;
  isCancelled: boolean;
  /** What becomes of one that a booking made when nobody is in it any more; null: the CRM made it. */
  whenEmpty: 'REMOVED' | 'CANCELLED' | null;
  people: Person[];
  /** In which it was made, if that has other buffers by now. */
  timeslot?: Timeslot;
}

export interface Block extends Span {
  reference: string;
  resource: string;
  isDeleted: boolean;
}

export interface Paper {
  timeslots: Timeslot[];
  appointments: Appointment[];
  blocks: Block[];
  /** The first and the last moment at which a slot may begin. */
  earliest: number;
  latest: number;
}

export type Place =
  | { timeslot: Timeslot; start: number; minutes: number | undefined; product: string }
  | { appointment: Appointment };

/** Of a place where nothing is yet, or of an appointment in which a seat is free. */
type BlockedKind = 'nothing' | 'class' | 'booked';

/** The rules about blocks and buffers, so that each can be replaced by a wrong one. */
export interface Rules {
  /** Whether an appointment of the resource stands in the way of another one that a booking makes. */
  isObstacle(place: Span & Buffers, appointment: Appointment, timeslot: Timeslot): boolean;
  isJoined(appointment: Appointment, neighbours: Appointment[], timeslot: Timeslot): boolean;
  /** Whether a block of any resource closes a slot. */
  isBlocked(place: Span & Buffers & { resource: string }, block: Block, kind: BlockedKind, raster: number): boolean;
  /** Which of those that there are count. */
  blocks(blocks: Block[]): Block[];
  /** Why a place in a timeslot is refused, the first one of them. */
  order: Reason[];
  /** Whether the appointment that a move leaves stands in its way, although it ends with the move. */
  staysInTheWay: boolean;
}

export const overlap = (one: Span, other: Span): boolean => one.start < other.end && other.start < one.end;
const contains = (outer: Span, inner: Span): boolean => outer.start <= inner.start && outer.end >= inner.end;

const isActive = ({ state }: Person): boolean => state === 'BOOKED' || state === 'REQUESTED' || state === 'RESERVED';
export const takenSeats = ({ people }: Appointment): number =>
  people.filter(({ state }) => state === 'BOOKED' || state === 'RESERVED').length;
/** One that was made by a booking ends with its last participant. */
const isAbandoned = ({ whenEmpty, people }: Appointment): boolean => whenEmpty !== null && !people.some(isActive);
/** Whether it is active. */
export const isThere = (appointment: Appointment): boolean => !appointment.isCancelled && !isAbandoned(appointment);

const keepsApart =
  (distance: (after: number, before: number) => number) =>
  (place: Span & Buffers, appointment: Appointment): boolean =>
    place.start < appointment.end + distance(appointment.after, place.before) * minuteMs &&
    appointment.start < place.end + distance(place.after, appointment.before) * minuteMs;

const larger = keepsApart(Math.max);

export const theRules: Rules = {
  isObstacle: (place, appointment) => isThere(appointment) && larger(place, appointment),
  isJoined: () => true,
  isBlocked: (place, block) => !block.isDeleted && block.resource === place.resource && overlap(place, block),
  blocks: (blocks) => blocks,
  order: ['closed', 'off_raster', 'too_soon', 'too_late', 'blocked'],
  staysInTheWay: false,
};

export function verdictOf(paper: Paper, place: Place, rules = theRules): Verdict {
  return 'timeslot' in place ? verdictInTimeslot(paper, place, rules) : verdictInAppointment(paper, place, rules);
}

/** A move of somebody who is in an appointment that is there. */
export function verdictOfMove(
  paper: Paper,
  { person, source }: { person: Person; source: Appointment },
  place: Place,
  rules = theRules,
): Verdict {
  if ('appointment' in place ? place.appointment === source : isPlaceOf(source, place)) return 'present';
  const ends = source.whenEmpty !== null && !source.people.some((other) => other !== person && isActive(other));
  const appointments = paper.appointments.filter((each) => each !== source || !ends || rules.staysInTheWay);
  return verdictOf({ ...paper, appointments }, place, rules);
}

export function spanOf({ timeslot, start, minutes }: Extract<Place, { timeslot: Timeslot }>): Span {
  return { start, end: start + (minutes ?? timeslot.raster) * minuteMs };
}

function isPlaceOf(appointment: Appointment, place: Extract<Place, { timeslot: Timeslot }>): boolean {
  const { start, end } = spanOf(place);
  const { resource, product } = appointment;
  return (
    resource === place.timeslot.resource &&
    product === place.product &&
    appointment.start === start &&
    appointment.end === end
  );
}

function verdictInTimeslot(
  paper: Paper,
  place: Extract<Place, { timeslot: Timeslot }>,
  rules: Rules,
): Exclude<Verdict, 'present'> {
  const { timeslot } = place;
  const { resource, before, after, raster } = timeslot;
  const span = { ...spanOf(place), before, after, resource };
  const ofResource = paper.appointments.filter((each) => each.resource === resource);
  const same = ofResource.filter((each) => isThere(each) && each.acceptBookings && isPlaceOf(each, place));
  const obstacles = ofResource.filter((each) => rules.isObstacle(span, each, timeslot));
  const joined = same.find((each) => takenSeats(each) < each.capacity && rules.isJoined(each, ofResource, timeslot));
  const applies: Partial<Record<Reason, boolean>> = {
    closed: !isOffering(timeslot),
    off_raster: !isStep(timeslot, span),
    too_soon: span.start < paper.earliest,
    too_late: span.start > paper.latest,
    blocked: rules.blocks(paper.blocks).some((block) => rules.isBlocked(span, block, kindOf(joined), raster)),
    taken: joined === undefined && same.length === 0 && obstacles.length > 0,
    full: joined === undefined && same.length > 0,
  };
  return [...rules.order, 'taken' as const, 'full' as const].find((reason) => applies[reason]) ?? outcome(joined);
}

const outcome = (joined: Appointment | undefined) => (joined === undefined ? 'made' : 'joined');

function kindOf(appointment: Appointment | undefined): BlockedKind {
  if (appointment === undefined) return 'nothing';
  return appointment.whenEmpty === null ? 'class' : 'booked';
}

const isOffering = ({ isBookable, capacity }: Timeslot): boolean => isBookable && capacity >= 1;

/** On the raster of a timeslot, and within it. */
function isStep(timeslot: Timeslot, span: Span): boolean {
  const rasterMs = timeslot.raster * minuteMs;
  return (
    contains(timeslot, span) &&
    (span.start - timeslot.start) % rasterMs === 0 &&
    (span.end - span.start) % rasterMs === 0
  );
}

function verdictInAppointment(
  { timeslots, blocks, earliest, latest }: Paper,
  { appointment }: { appointment: Appointment },
  rules: Rules,
): Exclude<Verdict, 'present'> {
  const { whenEmpty, isCancelled, acceptBookings, capacity, start } = appointment;
  if (!isCancelled && isAbandoned(appointment) && whenEmpty === 'REMOVED') return 'not_found';
  if (start < earliest) return 'too_soon';
  if (start > latest) return 'too_late';
  const isOffered = whenEmpty === null || timeslots.some((timeslot) => offers(timeslot, appointment));
  if (!isThere(appointment) || !isOffered) return 'closed';
  if (!acceptBookings) return 'private';
  const kind = kindOf(appointment);
  if (rules.blocks(blocks).some((block) => rules.isBlocked(appointment, block, kind, 15))) return 'blocked';
  return takenSeats(appointment) < capacity ? 'joined' : 'full';
}

/** What a booking made is offered by the timeslots in which it lies. */
export function offers(timeslot: Timeslot, appointment: Appointment): boolean {
  const { resource, isBookable, capacity } = timeslot;
  return resource === appointment.resource && isBookable && capacity >= 1 && contains(timeslot, appointment);
}

const withoutBuffers = <T extends Buffers>(value: T): T => ({ ...value, before: 0, after: 0 });
const swapped = <T extends Buffers>(value: T): T => ({ ...value, before: value.after, after: value.before });
/** A rule about buffers between a place and an appointment that is there. */
const apart = (isObstacle: Rules['isObstacle']): Partial<Rules> => ({
  isObstacle: (place, appointment, timeslot) =>
    isThere(appointment) && (overlap(place, appointment) || isObstacle(place, appointment, timeslot)),
});
/** A rule about a slot and a block of its resource. */
const blocking = (isBlocked: (...args: Parameters<Rules['isBlocked']>) => boolean): Partial<Rules> => ({
  isBlocked: (place, block, kind, raster) =>
    !block.isDeleted && block.resource === place.resource && isBlocked(place, block, kind, raster),
});
const isLong = ({ start, end }: Span): boolean => end - start > dayMs;

/** Rules that are wrong: each must be noticed. */
export const faults: Record<string, Partial<Rules>> = {
  'the sum of the buffers counts': apart(keepsApart((after, before) => after + before)),
  'the smaller buffer counts': apart(keepsApart(Math.min)),
  'only the buffers of what is booked count': apart((place, other) => larger(place, withoutBuffers(other))),
  'only the buffers of what is there count': apart((place, other) => larger(withoutBuffers(place), other)),
  'no buffers count': apart(() => false),
  'only distances before the place count': apart((place, other) =>
    larger({ ...place, after: 0 }, { ...other, before: 0 }),
  ),
  'only distances after the place count': apart((place, other) =>
    larger({ ...place, before: 0 }, { ...other, after: 0 }),
  ),
  'the buffers are exchanged': apart((place, other) => larger(swapped(place), swapped(other))),
  'only buffers before count': apart((place, other) => larger({ ...place, after: 0 }, { ...other, after: 0 })),
  'exactly at the distance is too near': apart((place, other) =>
    keepsApart((after, before) => Math.max(after, before) + (after + before > 0 ? 1 / minuteMs : 0))(place, other),
  ),
  'what the CRM made needs no distance': apart((place, other) => other.whenEmpty !== null && larger(place, other)),
  'what has ended keeps its distance': {
    isObstacle: (place, other) => larger(place, other) && (isThere(other) || !overlap(place, other)),
  },
  'a hold that is over keeps its distance': {
    isObstacle: (place, other) => larger(place, other) && (isThere(other) || !other.isCancelled),
  },
  'appointments have the buffers that their timeslot has now': apart((place, other) =>
    larger(place, other.timeslot === undefined ? other : { ...other, ...buffersOf(other.timeslot) }),
  ),
  'what is longer than a day needs no distance': apart((place, other) => !isLong(other) && larger(place, other)),
  'what began a day ago needs no distance': apart(
    (place, other) => other.start > place.start - dayMs && larger(place, other),
  ),
  'buffers end with the timeslot': apart((place, other, timeslot) =>
    larger(
      {
        ...place,
        before: Math.min(place.before, (place.start - timeslot.start) / minuteMs),
        after: Math.min(place.after, (timeslot.end - place.end) / minuteMs),
      },
      other,
    ),
  ),
  'buffers count within the timeslot': apart(
    (place, other, timeslot) => contains(timeslot, other) && larger(place, other),
  ),
  'who joins has to keep the distance': {
    isJoined: (appointment, neighbours, timeslot) =>
      neighbours.every(
        (other) =>
          other === appointment || !isThere(other) || !larger({ ...appointment, ...buffersOf(timeslot) }, other),
      ),
  },
  'the appointment that a move leaves stands in the way': { staysInTheWay: true },

  'no blocks count': blocking(() => false),
  'a block ends a raster too early': blocking((place, { start, end }, _, raster) =>
    overlap(place, { start, end: Math.max(start, end - raster * minuteMs) }),
  ),
  'a block begins a raster too late': blocking((place, { start, end }, _, raster) =>
    overlap(place, { start: Math.min(end, start + raster * minuteMs), end }),
  ),
  'touching a block is overlapping': blocking((place, block) => place.start <= block.end && block.start <= place.end),
  'a slot has to lie in the block': blocking((place, block) => contains(block, place)),
  'a slot has to begin in the block': blocking((place, { start, end }) => start <= place.start && place.start < end),
  'blocks do not close free places': blocking((place, block, kind) => kind !== 'nothing' && overlap(place, block)),
  'blocks do not close appointments of the CRM': blocking(
    (place, block, kind) => kind !== 'class' && overlap(place, block),
  ),
  'blocks do not close appointments that bookings made': blocking(
    (place, block, kind) => kind !== 'booked' && overlap(place, block),
  ),
  'blocks count for all resources': { isBlocked: (place, block) => !block.isDeleted && overlap(place, block) },
  'deleted blocks count': { isBlocked: (place, block) => block.resource === place.resource && overlap(place, block) },
  'buffers may not reach into a block': blocking((place, block) =>
    overlap({ start: place.start - place.before * minuteMs, end: place.end + place.after * minuteMs }, block),
  ),
  'blocks longer than a day do not count': blocking((place, block) => !isLong(block) && overlap(place, block)),
  'blocks that began a day ago do not count': blocking(
    (place, block) => block.start > place.start - dayMs && overlap(place, block),
  ),
  'the last block counts': { blocks: (blocks) => blocks.filter(({ isDeleted }) => !isDeleted).slice(-1) },
  'taken comes before blocked': { order: ['closed', 'off_raster', 'too_soon', 'too_late', 'taken', 'full', 'blocked'] },
  'blocked comes before closed': { order: ['blocked', 'closed', 'off_raster', 'too_soon', 'too_late'] },
  'blocked comes before too soon and too late': { order: ['closed', 'off_raster', 'blocked', 'too_soon', 'too_late'] },
};

function buffersOf({ before, after }: Buffers): Buffers {
  return { before, after };
}
