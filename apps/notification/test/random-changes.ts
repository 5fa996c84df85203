import { type ChangeBookingRequest, ParticipationState, type TimeslotPlace } from '@scheduling/contracts/calendar/v1';
import { patiently } from '@scheduling/testing';
import type { Random } from '@scheduling/testing/random';
import type { CalendarMethod } from '@scheduling/calendar-file';
import type { MailTemplate as AnyTemplate, ProviderMailTemplate } from '@scheduling/runtime';
import { crmId, providerReference, type Surroundings } from './notification-under-test.ts';

/** The mails to persons. */
type MailTemplate = Exclude<AnyTemplate, ProviderMailTemplate>;

const { RESERVED, REQUESTED, BOOKED, CANCELED, DELETED } = ParticipationState;
const owned = { crmId, providerReference };

/** What an appointment is, from some moment on. */
export interface Facts {
  title: string;
  start: Date;
  end: Date;
  sinceMs: number;
}

export interface Customer {
  reference: string;
  /** The last one is the present one. */
  addresses: { email: string; sinceMs: number }[];
  isDeleted: boolean;
}

interface Appointment {
  reference: string;
  facts: Facts;
}

export interface Participation {
  reference: string;
  /** Undefined: a hold of somebody who is not known yet. */
  customer: Customer | undefined;
  /** Undefined: a slot that nobody else can book. */
  appointment: Appointment | undefined;
  state: ParticipationState;
  /** What the person has booked, the last one is the present one. */
  facts: Facts[];
  /** Those that were due, in the order of the changes. */
  mails: DueMail[];
  isInvited: boolean;
}

/** A mail that the interface demands. */
export interface DueMail {
  participation: Participation;
  customer: Customer;
  template: MailTemplate;
  /** Given with the change. */
  message: string | undefined;
  calendar: CalendarMethod | undefined;
  /**
   * The first ones of the customer and the participation that it may have: it is written after the change, from what is
   * true then.
   */
  firstAddress: number;
  firstFacts: number;
}

/** Somebody who changes one thing after the other. What it has made, nobody else changes. */
export interface Group {
  surroundings: Surroundings;
  random: Random;
  name: string;
  customers: Customer[];
  /** Those that are not cancelled. */
  appointments: Appointment[];
  participations: Participation[];
  /** Of titles, times, messages and addresses. */
  count: number;
  /** That were booked. */
  slots: number;
}

const customersPerGroup = 24;
const appointmentsPerGroup = 8;
/** If more about one participation wait, some are dropped (interface 6.3); the urgent ones do not count. */
const maxWaiting = 5;
const recent = 3;
const urgent = new Set<MailTemplate>([
  'request-declined',
  'booking-cancelled',
  'appointment-cancelled',
  'removed-by-deletion',
]);
const firstStartMs = Date.parse('2030-01-01T08:00Z');
const firstSlotMs = Date.parse('2031-01-01T00:00Z');
const hourMs = 3_600_000;

export async function startGroup(surroundings: Surroundings, random: Random, name: string): Promise<Group> {
  const group: Group = {
    surroundings,
    random,
    name,
    customers: [],
    appointments: [],
    participations: [],
    count: 0,
    slots: 0,
  };
  const slots = {
    raster: 60,
    defaultCapacity: 1,
    defaultAcceptBookings: true,
    state: 'TIMESLOT_STATE_BOOKABLE',
  } as const;
  const timeslot = {
    reference: `slots-${name}`,
    resourceReference: `room-${name}`,
    start: textOf(firstSlotMs),
    end: textOf(firstSlotMs + 1_000 * hourMs),
    ...slots,
  };
  await surroundings.timeslots.createTimeslots({ ...owned, timeslots: [timeslot] });
  for (let index = 0; index < customersPerGroup; index += 1) {
    const customer: Customer = { reference: next(group, 'customer'), addresses: [newAddress(group)], isDeleted: false };
    await surroundings.customers.createCustomer({
      ...owned,
      customerReference: customer.reference,
      userName: 'Ann',
      email: customer.addresses[0]!.email,
      language: 'en',
    });
    group.customers.push(customer);
  }
  for (let index = 0; index < appointmentsPerGroup; index += 1) await createAppointment(group);
  return group;
}

/**
 * What a group does, and how often in relation to the others. Each resolves with false if there is nothing that it
 * could be done with.
 */
const actions: { weight: number; act: (group: Group) => Promise<boolean>; needsIdentity?: boolean }[] = [
  { weight: 38, act: book },
  { weight: 30, act: moveToState },
  { weight: 14, act: moveToPlace },
  { weight: 8, act: changeAppointment },
  { weight: 3, act: cancelAppointment },
  { weight: 6, act: changeAddress, needsIdentity: true },
  { weight: 3, act: deleteCustomer, needsIdentity: true },
  { weight: 6, act: repeat },
];
const lottery = actions.flatMap((action) => Array.from({ length: action.weight }, () => action));

/** Resolves once it has been done. */
export async function changeSomething(group: Group, { identityAnswers }: { identityAnswers: boolean }): Promise<void> {
  for (let isDone = false; !isDone;) {
    const { act, needsIdentity = false } = group.random.pick(lottery);
    isDone = (identityAnswers || !needsIdentity) && (await act(group));
  }
}

async function createAppointment(group: Group): Promise<Appointment> {
  const facts = { title: newTitle(group), ...newPeriod(group), sinceMs: performance.now() };
  const appointment = { reference: next(group, 'appointment'), facts };
  const { title: description, start, end } = facts;
  const fixed = {
    capacity: 100,
    acceptBookings: true,
    resourceReference: `hall-${group.name}`,
    productReference: 'yoga',
    participations: [],
  };
  const request = {
    ...owned,
    reference: appointment.reference,
    description,
    start: textOf(start.getTime()),
    end: textOf(end.getTime()),
    ...fixed,
  };
  await patiently(() => group.surroundings.appointments.createAppointment(request));
  group.appointments.push(appointment);
  return appointment;
}

async function book(group: Group): Promise<boolean> {
  const { random, surroundings } = group;
  const customer = random.pick(group.customers);
  const state = random.pick([BOOKED, BOOKED, BOOKED, REQUESTED, REQUESTED, RESERVED]);
  const [reference, sendMails, message] = [next(group, 'booking'), random.chance(0.75), newMessage(group)];
  const appointment = random.chance(0.7) ? await appointmentWithout(group, customer) : undefined;
  const participation: Participation = {
    reference,
    customer,
    appointment,
    state,
    facts: [],
    mails: [],
    isInvited: false,
  };
  if (appointment !== undefined && random.chance(0.7)) {
    participation.facts.push(appointment.facts);
    participation.state = random.chance(0.05) ? random.pick([CANCELED, DELETED]) : state;
    const flags = { ignoreCapacity: false, onDuplicateRaise: false, sendMails };
    const request = {
      ...owned,
      ...flags,
      reference,
      appointmentReference: appointment.reference,
      customerReference: customer.reference,
      state: participation.state,
      message,
    };
    await patiently(() => surroundings.participations.createParticipation(request));
  } else {
    const isHold = state === RESERVED && random.chance(0.5);
    if (isHold) participation.customer = undefined;
    const { place, facts } = placeOf(group, appointment);
    participation.facts.push(facts);
    const whose = isHold ? undefined : ({ $case: 'customerReference', value: customer.reference } as const);
    await patiently(() =>
      surroundings.bookings.bookSlot({
        ...owned,
        place,
        reference,
        state,
        customer: whose,
        message,
        ignoreNotice: false,
        sendMails,
      }),
    );
  }
  group.participations.push(participation);
  if (participation.state === BOOKED) tell(participation, { template: 'booking-confirmed', sendMails, message });
  if (participation.state === REQUESTED) tell(participation, { template: 'request-received', sendMails, message });
  return true;
}

/** Interface 3.1. */
const moves: { from: ParticipationState; to: ParticipationState; template?: MailTemplate }[] = [
  { from: RESERVED, to: BOOKED, template: 'booking-confirmed' },
  { from: REQUESTED, to: BOOKED, template: 'request-confirmed' },
  { from: REQUESTED, to: CANCELED, template: 'request-declined' },
  { from: BOOKED, to: CANCELED, template: 'booking-cancelled' },
  { from: RESERVED, to: CANCELED },
  { from: DELETED, to: CANCELED },
  { from: BOOKED, to: DELETED },
];

async function moveToState(group: Group): Promise<boolean> {
  const { random, surroundings } = group;
  const move = random.pick(moves);
  const participation = pickOf(group, ({ state }) => state === move.from);
  if (participation === undefined) return false;
  const { reference, appointment, customer } = participation;
  const { to: state, template } = move;
  const [sendMails, message] = [
    template === undefined || mayBeMailed(participation, template) ? random.chance(0.75) : false,
    newMessage(group),
  ];
  if (move.from === RESERVED && state === BOOKED && (customer === undefined || random.chance(0.5))) {
    const owner =
      customer ??
      random.pick(group.customers.filter((each) => appointment === undefined || isWithout(group, appointment, each)));
    const whose =
      customer === undefined ? ({ $case: 'customerReference', value: owner.reference } as const) : undefined;
    await changeBooking(group, participation, { customer: whose, message, sendMails });
    participation.customer = owner;
  } else if (appointment !== undefined && customer !== undefined && random.chance(0.3)) {
    const flags = { ignoreCapacity: false, onDuplicateRaise: false, sendMails };
    const request = {
      ...owned,
      ...flags,
      reference,
      appointmentReference: appointment.reference,
      customerReference: customer.reference,
      state,
      message,
    };
    await patiently(() => surroundings.participations.createParticipation(request));
  } else {
    await updateState(group, participation, { state, message, sendMails });
  }
  participation.state = state;
  if (template !== undefined) tell(participation, { template, sendMails, message });
  return true;
}

async function moveToPlace(group: Group): Promise<boolean> {
  const { random } = group;
  const participation = pickOf(group, ({ state }) => state === BOOKED || state === REQUESTED);
  if (participation === undefined) return false;
  const template = participation.state === BOOKED ? 'booking-moved' : 'request-changed';
  const [sendMails, message] = [mayBeMailed(participation, template) && random.chance(0.75), newMessage(group)];
  const appointment = random.chance(0.5) ? await appointmentWithout(group, participation.customer!) : undefined;
  const { place, facts } = placeOf(group, appointment);
  await changeBooking(group, participation, { place, message, sendMails });
  participation.appointment = appointment;
  participation.facts.push(facts);
  tell(participation, { template, sendMails, message });
  return true;
}

/** Its time, its description, both, or something that nobody is told of. */
async function changeAppointment(group: Group): Promise<boolean> {
  const { random, surroundings } = group;
  const appointment = random.pick(group.appointments);
  const taking = group.participations.filter((each) => each.appointment === appointment);
  const told = taking.filter(({ state }) => state === BOOKED || state === REQUESTED);
  const templateFor = ({ state }: Participation) => (state === BOOKED ? 'appointment-changed' : 'request-changed');
  const sendMails = told.every((each) => mayBeMailed(each, templateFor(each))) && random.chance(0.75);
  const [time, description] = random.pick([
    [true, false],
    [false, true],
    [true, true],
    [false, false],
  ] as const);
  const { title, start, end } = appointment.facts;
  const facts = {
    title: description ? newTitle(group) : title,
    ...(time ? newPeriod(group) : { start, end }),
    sinceMs: performance.now(),
  };
  const times = time ? { start: textOf(facts.start.getTime()), end: textOf(facts.end.getTime()) } : {};
  const fields = { ...times, description: description ? facts.title : undefined, capacity: random.integer(50, 100) };
  await patiently(() =>
    surroundings.appointments.updateAppointment({
      ...owned,
      appointmentReference: appointment.reference,
      ...fields,
      noAddress: false,
      sendMails,
    }),
  );
  if (!time && !description) return true;
  appointment.facts = facts;
  for (const each of taking) each.facts.push(facts);
  for (const each of told) tell(each, { template: templateFor(each), sendMails });
  return true;
}

/** Interface 3.2. */
async function cancelAppointment(group: Group): Promise<boolean> {
  const appointment = group.random.pick(group.appointments);
  const taking = group.participations.filter((each) => each.appointment === appointment);
  if (taking.length === 0) return false;
  const message = newMessage(group);
  const request = { ...owned, appointmentReference: appointment.reference, message };
  await patiently(() => group.surroundings.appointments.cancelAppointment(request));
  for (const each of taking) {
    if (isActive(each)) tell(each, { template: 'appointment-cancelled', sendMails: true, message });
    each.state = CANCELED;
  }
  group.appointments = group.appointments.filter((each) => each !== appointment);
  await createAppointment(group);
  // Without effect.
  await patiently(() => group.surroundings.appointments.cancelAppointment(request));
  return true;
}

async function changeAddress(group: Group): Promise<boolean> {
  const customer = group.random.pick(group.customers);
  const address = newAddress(group);
  await patiently(() =>
    group.surroundings.customers.updateCustomer({
      ...owned,
      customerReference: customer.reference,
      email: address.email,
    }),
  );
  customer.addresses.push(address);
  return true;
}

/** Interface 4.4. */
async function deleteCustomer(group: Group): Promise<boolean> {
  if (group.customers.length <= customersPerGroup / 2) return false;
  const customer = group.random.pick(group.customers);
  // The mails that are due to it are erased if they have not been sent by then.
  customer.isDeleted = true;
  await patiently(() =>
    group.surroundings.customers.deleteCustomer({
      ...owned,
      customerReference: customer.reference,
      ignoreFutureAppointments: true,
    }),
  );
  const own = group.participations.filter((each) => each.customer === customer);
  for (const each of own.filter(isActive)) tell(each, { template: 'removed-by-deletion', sendMails: true });
  for (const each of own) each.appointment = undefined;
  group.customers = group.customers.filter((each) => each !== customer);
  return true;
}

/** What is so already is done again, which has no effect. */
async function repeat(group: Group): Promise<boolean> {
  const participation = pickOf(group, () => true);
  if (participation === undefined) return false;
  const { state, appointment } = participation;
  const message = newMessage(group);
  if (appointment !== undefined && (state === BOOKED || state === REQUESTED)) {
    await changeBooking(group, participation, {
      place: { $case: 'appointmentReference', value: appointment.reference },
      message,
      sendMails: true,
    });
  }
  await updateState(group, participation, { state, message, sendMails: true });
  return true;
}

interface Told {
  message?: string | undefined;
  sendMails: boolean;
}

function updateState(group: Group, { reference }: Participation, change: Told & { state: ParticipationState }) {
  return patiently(() =>
    group.surroundings.participations.updateParticipation({
      ...owned,
      participationReference: reference,
      ignoreCapacity: false,
      ...change,
    }),
  );
}

function changeBooking(
  group: Group,
  { reference }: Participation,
  change: Told & Pick<ChangeBookingRequest, 'place' | 'customer'>,
) {
  return patiently(() =>
    group.surroundings.bookings.changeBooking({
      ...owned,
      participationReference: reference,
      ignoreNotice: false,
      ...change,
    }),
  );
}

/** A mail is due, unless it was not wanted, or there is nobody to receive it. */
function tell(participation: Participation, { template, sendMails, message }: Told & { template: MailTemplate }): void {
  const { customer, facts, mails, isInvited } = participation;
  if (!sendMails || customer === undefined) return;
  const calendar = calendarOf(template, isInvited);
  if (calendar === 'REQUEST') participation.isInvited = true;
  mails.push({
    participation,
    customer,
    template,
    message,
    calendar,
    firstAddress: customer.addresses.length - 1,
    firstFacts: facts.length - 1,
  });
}

/** Interface 6.3: a mail about the end of a booking removes the event if an earlier one has added it. */
function calendarOf(template: MailTemplate, isInvited: boolean): CalendarMethod | undefined {
  switch (template) {
    case 'booking-confirmed':
    case 'request-confirmed':
    case 'booking-moved':
    case 'appointment-changed':
      return 'REQUEST';
    case 'booking-cancelled':
    case 'appointment-cancelled':
    case 'removed-by-deletion':
      return isInvited ? 'CANCEL' : undefined;
    case 'request-received':
    case 'request-declined':
    case 'request-withdrawn':
    case 'request-changed':
    case 'booking-reminder':
    case 'request-unconfirmed':
    case 'booking-verification':
    case 'booking-limit':
    case 'email-verification':
      return undefined;
    default:
      return template satisfies never;
  }
}

function mayBeMailed({ mails }: Participation, template: MailTemplate): boolean {
  return urgent.has(template) || mails.filter((mail) => !urgent.has(mail.template)).length < maxWaiting;
}

function isActive({ state }: Participation): boolean {
  return state === RESERVED || state === REQUESTED || state === BOOKED;
}

/**
 * One whose customer, if it has one, was not deleted. Half of the time it is a recent one, so that its changes follow
 * each other closely.
 */
function pickOf(
  { random, participations }: Group,
  isWanted: (participation: Participation) => boolean,
): Participation | undefined {
  const wanted = participations.filter((each) => each.customer?.isDeleted !== true && isWanted(each));
  return wanted.length === 0 ? undefined : random.pick(random.chance(0.5) ? wanted.slice(-recent) : wanted);
}

/** One in which the customer has never taken part, so that the last mail about each booking has another title. */
async function appointmentWithout(group: Group, customer: Customer): Promise<Appointment> {
  const possible = group.appointments.filter((each) => isWithout(group, each, customer));
  return possible.length === 0 ? createAppointment(group) : group.random.pick(possible);
}

function isWithout({ participations }: Group, appointment: Appointment, customer: Customer): boolean {
  return !participations.some((each) => each.customer === customer && each.appointment === appointment);
}

/** The place of the appointment, or a new slot. */
function placeOf(group: Group, appointment: Appointment | undefined) {
  if (appointment !== undefined)
    return {
      place: { $case: 'appointmentReference', value: appointment.reference } as const,
      facts: { ...appointment.facts, sinceMs: performance.now() },
    };
  const startMs = firstSlotMs + (group.slots += 1) * hourMs;
  const facts = {
    title: newTitle(group),
    start: new Date(startMs),
    end: new Date(startMs + hourMs),
    sinceMs: performance.now(),
  };
  const value: TimeslotPlace = {
    timeslotReference: `slots-${group.name}`,
    start: textOf(startMs),
    productReference: 'talk',
    description: facts.title,
  };
  return { place: { $case: 'timeslot', value } as const, facts };
}

const next = (group: Group, kind: string): string => `${kind}-${group.name}-${(group.count += 1)}`;

const newTitle = (group: Group): string => next(group, 'title');

/** Most changes have one. */
const newMessage = (group: Group): string | undefined =>
  group.random.chance(0.85) ? `${next(group, 'message')}.` : undefined;

function newAddress(group: Group): Customer['addresses'][number] {
  return { email: `${next(group, 'ann')}@example.com`, sinceMs: performance.now() };
}

function newPeriod(group: Group): Pick<Facts, 'start' | 'end'> {
  const startMs = firstStartMs + (group.count += 1) * hourMs;
  return { start: new Date(startMs), end: new Date(startMs + group.random.integer(1, 8) * 15 * 60_000) };
}

/** As requests have it. */
function textOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16)}Z`;
}
