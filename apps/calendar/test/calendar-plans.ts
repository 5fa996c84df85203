import fc from 'fast-check';

/** Minutes from the begin of the day; everything begins at a quarter of an hour, but blocks. */
const quarters = (min: number, max: number) => fc.integer({ min, max }).map((number) => number * 15);
const often = <T>(value: T, other: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: other });
const resources = ['room', 'chair'];
const products = ['cut', 'colour'];
const resource = often('room', fc.constant('chair'));
const bookedState = fc.constantFrom('BOOKED' as const, 'BOOKED' as const, 'REQUESTED' as const, 'RESERVED' as const);

const buffer = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(0) },
  { weight: 12, arbitrary: fc.constantFrom(5, 10, 15, 20, 30, 45, 75) },
  { weight: 1, arbitrary: fc.constantFrom(7, 120, 1_440) },
);
const buffers = fc.oneof(
  { weight: 1, arbitrary: fc.constant({ before: 0, after: 0 }) },
  { weight: 2, arbitrary: fc.record({ before: buffer, after: buffer }) },
);

const timeslotPlan = fc.record({
  resource,
  start: quarters(0, 48),
  // A few are longer than a day, so that they are found by another index.
  minutes: often(0, fc.constant(26 * 60)).chain((long) => quarters(2, 12).map((minutes) => minutes + long)),
  raster: fc.constantFrom(15, 20, 30, 45, 60),
  capacity: fc.constantFrom(0, 1, 1, 2, 2, 3),
  acceptBookings: often(true, fc.constant(false)),
  state: often('BOOKABLE' as const, fc.constant('CREATED' as const)),
  buffers,
});

/** Opening hours of the day. */
const windowPlan = fc.record({
  from: quarters(0, 48),
  minutes: quarters(4, 24),
  raster: fc.constantFrom(15, 20, 30, 45, 60),
  capacity: fc.constantFrom(0, 1, 1, 2, 2, 3),
  acceptBookings: often(true, fc.constant(false)),
  buffers,
});

const hoursPlan = fc.record({
  before: fc.array(windowPlan, { minLength: 1, maxLength: 3 }),
  /** What they are changed to after the appointments have been stored, none: they are removed. */
  after: fc.option(fc.array(windowPlan, { maxLength: 3 })),
});

const participationPlan = fc.constantFrom('BOOKED', 'REQUESTED', 'RESERVED', 'OVER', 'CANCELED', 'DELETED');

const appointmentPlan = fc.record({
  resource,
  start: quarters(-4, 56),
  minutes: quarters(1, 6),
  /** So much earlier it begins: a little less or more than a day, so that it is found by another index. */
  minutesBefore: fc.oneof(
    { weight: 8, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.constantFrom(23 * 60 + 15, 25 * 60) },
  ),
  capacity: fc.constantFrom(0, 1, 2, 3),
  acceptBookings: often(true, fc.constant(false)),
  product: fc.constantFrom(...products),
  state: often('ACTIVE' as const, fc.constant('CANCELLED' as const)),
  whenEmpty: fc.constantFrom(null, 'REMOVED' as const, 'CANCELLED' as const),
  buffers,
  participations: fc.array(participationPlan, { maxLength: 3 }),
});

const blockPlan = fc.record({
  resource,
  start: fc.integer({ min: -6, max: 84 }).map((number) => number * 10),
  minutes: fc.integer({ min: 1, max: 24 }).map((number) => number * 5),
  /** One that is long begins a day or months earlier, and one that is past ends then as well. */
  begins: fc.oneof(
    { weight: 12, arbitrary: fc.constant('as planned' as const) },
    { weight: 2, arbitrary: fc.constantFrom('a day before' as const, 'in the past' as const) },
    { weight: 1, arbitrary: fc.constant('and ends in the past' as const) },
  ),
});

/** What is done to a calendar, one after the other. Numbers are indexes, modulo how many there are. */
const actionPlan = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.record({
      kind: fc.constant('book' as const),
      timeslot: fc.nat(1_000),
      step: fc.nat(1_000),
      length: fc.oneof(
        { weight: 8, arbitrary: fc.constant(1) },
        { weight: 2, arbitrary: fc.constant(2) },
        { weight: 1, arbitrary: fc.constant('longer than a day' as const) },
      ),
      product: fc.constantFrom(...products),
      state: bookedState,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('join' as const), appointment: fc.nat(1_000), state: bookedState }),
  },
  {
    weight: 15,
    arbitrary: fc.record({
      kind: fc.constant('move' as const),
      person: fc.nat(1_000),
      timeslot: fc.nat(1_000),
      step: fc.nat(1_000),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constantFrom('cancel' as const, 'expire' as const), person: fc.nat(1_000) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('changeBuffers' as const), timeslot: fc.nat(1_000), buffers }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('appoint' as const),
      where: fc.oneof(
        fc.record({ resource, start: quarters(-4, 56), minutes: quarters(1, 4) }),
        fc.record({ timeslot: fc.nat(1_000), step: fc.nat(1_000) }),
      ),
      product: fc.constantFrom(...products),
      capacity: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('shift' as const), appointment: fc.nat(1_000), minutes: quarters(-4, 4) }),
  },
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('block' as const), block: blockPlan }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('unblock' as const), block: fc.nat(1_000) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('blockOften' as const), start: quarters(0, 48), resource }),
  },
);
export type Action = typeof actionPlan extends fc.Arbitrary<infer Value> ? Value : never;
export type ActionOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>;

export const calendarPlan = fc.record({
  zone: fc.constantFrom('Europe/Berlin', 'America/New_York', 'Asia/Kolkata'),
  // Both days of a change of the clock in Berlin, both in New York, and one without.
  day: fc.constantFrom('2040-03-25', '2040-10-28', '2040-03-11', '2040-11-04', '2040-06-05'),
  /** The list begins so many days earlier: more than 6 take several parts. */
  leadDays: fc.constantFrom(2, 7, 40),
  timeslots: fc.array(timeslotPlan, { minLength: 1, maxLength: 5 }),
  appointments: fc.array(appointmentPlan, { maxLength: 4 }),
  /** Of the room. */
  hours: fc.option(hoursPlan),
  actions: fc.array(actionPlan, { maxLength: 10 }),
  /** Minutes from the begin of the day to the first and to the last bookable moment. */
  noticeEnds: fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 2, arbitrary: quarters(0, 32) }),
  horizonDays: often(null, fc.integer({ min: 1, max: 2 })),
  ignoreNotice: often(false, fc.constant(true)),
  duration: often(undefined, fc.constantFrom(30, 40, 60, 90)),
  product: often(undefined, fc.constantFrom(...products)),
  resource: often(undefined, fc.constantFrom(...resources)),
  limit: often(undefined, fc.integer({ min: 1, max: 5 })),
});
export type Plan = typeof calendarPlan extends fc.Arbitrary<infer Value> ? Value : never;

const plainTimeslot: Plan['timeslots'][number] = {
  resource: 'room',
  start: 600,
  minutes: 120,
  raster: 30,
  capacity: 3,
  acceptBookings: true,
  state: 'BOOKABLE',
  buffers: { before: 0, after: 0 },
};
const plainAppointment: Plan['appointments'][number] = {
  resource: 'room',
  start: 525,
  minutes: 15,
  minutesBefore: 0,
  capacity: 1,
  acceptBookings: false,
  product: 'cut',
  state: 'ACTIVE',
  whenEmpty: 'CANCELLED',
  buffers: { before: 0, after: 75 },
  participations: ['BOOKED'],
};
const plainPlan: Plan = {
  zone: 'Europe/Berlin',
  day: '2040-06-05',
  leadDays: 2,
  timeslots: [plainTimeslot, { ...plainTimeslot, resource: 'chair' }],
  appointments: [],
  hours: null,
  actions: [],
  noticeEnds: null,
  horizonDays: null,
  ignoreNotice: false,
  duration: undefined,
  product: undefined,
  resource: undefined,
  limit: undefined,
};
const bookStep = { kind: 'book' as const, length: 1 as const, product: 'cut', state: 'BOOKED' as const };
const appointStep = { kind: 'appoint' as const, product: 'cut', capacity: 3 };
const blockOf = (start: number, minutes: number, begins: ActionOf<'block'>['block']['begins'] = 'as planned') => ({
  kind: 'block' as const,
  block: { resource: 'room' as const, start, minutes, begins },
});
/** As an index: see `#pickOpen`. */
const [inChair, inRoom] = [1, 2];

/** What chance rarely brings about. Each shows the faults of some rules. */
export const rareCalendars: Plan[] = [
  // The buffers of something long reach the begin of a timeslot.
  {
    ...plainPlan,
    appointments: [
      { ...plainAppointment, minutesBefore: 25 * 60 },
      { ...plainAppointment, minutesBefore: 23 * 60 + 15, resource: 'chair' },
    ],
  },
  {
    ...plainPlan,
    timeslots: [
      { ...plainTimeslot, buffers: { before: 10, after: 10 } },
      { ...plainTimeslot, resource: 'chair', raster: 15, buffers: { before: 15, after: 15 } },
    ],
    actions: [
      { ...bookStep, timeslot: inRoom, step: 1 },
      { ...bookStep, timeslot: inChair, step: 2 },
      { kind: 'changeBuffers', timeslot: 0, buffers: { before: 0, after: 0 } },
      // Too near to what is booked.
      { ...appointStep, where: { timeslot: inRoom, step: 2 } },
    ],
  },
  // A booking and an appointment of the CRM in blocks, of which one has been deleted, and one begins too soon.
  {
    ...plainPlan,
    noticeEnds: 615,
    actions: [
      { ...bookStep, timeslot: inRoom, step: 1 },
      { ...appointStep, where: { timeslot: inRoom, step: 3 } },
      blockOf(660, 30),
      { kind: 'unblock', block: 0 },
      blockOf(600, 60),
      blockOf(690, 15),
    ],
  },
  // A block that is long, and one that begins after a slot has begun.
  {
    ...plainPlan,
    timeslots: [{ ...plainTimeslot, buffers: { before: 20, after: 45 } }],
    actions: [blockOf(600, 30, 'a day before'), blockOf(670, 50)],
  },
  // Before the timeslot, an appointment that the CRM has made, and one that has ended.
  {
    ...plainPlan,
    timeslots: [
      { ...plainTimeslot, buffers: { before: 30, after: 30 } },
      { ...plainTimeslot, resource: 'chair', buffers: { before: 30, after: 30 } },
    ],
    appointments: [
      { ...plainAppointment, start: 570, whenEmpty: null },
      { ...plainAppointment, start: 570, resource: 'chair', whenEmpty: 'REMOVED', participations: ['OVER'] },
    ],
  },
];
