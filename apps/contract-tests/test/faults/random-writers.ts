import type { Random } from '@scheduling/testing/random';
import { expect } from 'vitest';
import type { Appointment, Booking } from '../answers.ts';
import { type Answer, path, untilServed } from '@scheduling/test-stack/client';
import {
  createCrm,
  createPractice,
  createTimeslot,
  newAppointment,
  type Practice,
  unique,
} from '@scheduling/test-stack/crm';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';

/** A CRM whose writers share what they know: any of them changes what another one has made, at the same moment. */
export interface Office {
  practice: Practice;
  isSandbox: boolean;
  timeslot: string;
  /** References, the oldest first. What they name may have ended. */
  customers: string[];
  appointments: string[];
  series: string[];
  participations: KnownParticipation[];
  /** How many requests were answered, and how many of them were rejected because all seats were taken. */
  answered: number;
  rejectedAsFull: number;
}

interface KnownParticipation {
  reference: string;
  appointmentReference: string;
}

const customerCount = 10;
/** So many of the newest are changed, and the others are left. Few, so that the changes meet. */
const recentAppointments = 5;
const recentParticipations = 12;
const slotCount = 4;
const guests = 4;
const dayStart = '2031-03-03T08:00';
/** A reservation lasts three. */
const clockStepMs = 4 * 60_000;
/** 204 and 404 say that what one writer changes another one has removed. */
const expectedStatuses = [200, 201, 202, 204, 404, 409];
/** Begins the references of participations whose seat was given whatever the capacity. */
export const deliberately = 'deliberate';

export async function openOffice(stack: TestStack, { sandbox }: { sandbox: boolean }): Promise<Office> {
  const practice = await createPractice(await createCrm({ sandbox }, stack.info));
  const timeslot = await createTimeslot(practice, { start: dayStart, end: slotStart(slotCount), defaultCapacity: 2 });
  const office = {
    practice,
    isSandbox: sandbox,
    timeslot,
    customers: [],
    appointments: [],
    series: [],
    participations: [],
    answered: 0,
    rejectedAsFull: 0,
  };
  for (let count = 0; count < customerCount; count += 1) await addCustomer(office);
  return office;
}

/** What a writer does, and how often in relation to the rest. */
const actions: { weight: number; act: (office: Office, random: Random) => Promise<unknown> }[] = [
  { weight: 24, act: (office, random) => addParticipation(office, random) },
  { weight: 20, act: book },
  { weight: 26, act: changeState },
  { weight: 30, act: moveBooking },
  { weight: 4, act: confirmHold },
  { weight: 6, act: createAppointment },
  { weight: 10, act: changeAppointment },
  { weight: 2, act: cancelAppointment },
  { weight: 2, act: deleteAppointment },
  { weight: 1, act: createSeries },
  { weight: 1, act: deleteSeries },
  { weight: 2, act: replaceCustomer },
  { weight: 1, act: eraseGuest },
  { weight: 1, act: expireReservations },
];
const lottery = actions.flatMap((action) => Array.from({ length: action.weight }, () => action));

/** Makes one change after the other. */
export async function write(office: Office, random: Random, until: AbortSignal): Promise<void> {
  while (!until.aborted) await random.pick(lottery).act(office, random);
}

async function createAppointment(office: Office, random: Random): Promise<void> {
  const participations = random.chance(0.3) ? Array.from({ length: random.integer(1, 2) }, () => newGuest(random)) : [];
  const fields = {
    reference: newReference('appointment'),
    resourceReference: 'hall@test',
    capacity: random.integer(1, 2),
    acceptBookings: true,
    participations,
  };
  await send(office, () =>
    office.practice.crm.post(`${office.practice.at}/appointments`, newAppointment(office.practice, fields)),
  );
  office.appointments.push(fields.reference);
  office.participations.push(
    ...participations.map(({ reference }) => ({ reference, appointmentReference: fields.reference })),
  );
}

function newGuest(random: Random) {
  const state = random.pick(['BOOKED', 'BOOKED', 'REQUESTED', 'RESERVED']);
  return {
    reference: newReference(deliberately),
    name: 'Guest',
    email: `guest-${random.integer(1, guests)}@customers.example`,
    state,
  };
}

async function addParticipation(
  office: Office,
  random: Random,
  appointmentReference = recentAppointment(office, random),
): Promise<void> {
  const ignoreCapacity = random.chance(0.06);
  const reference = newReference(ignoreCapacity ? deliberately : 'participation');
  const body = {
    reference,
    appointmentReference,
    customerReference: random.pick(office.customers),
    state: newState(random),
  };
  const query = { ignoreCapacity, sendMails: random.chance(0.5) };
  const answer = await send(office, () =>
    office.practice.crm.post(`${office.practice.at}/participations`, body, { query }),
  );
  if (answer.status < 300) office.participations.push({ reference, appointmentReference });
}

async function book(office: Office, random: Random): Promise<void> {
  const state = newState(random);
  const customerReference = state === 'RESERVED' && random.chance(0.5) ? undefined : random.pick(office.customers);
  const reference = newReference('booking');
  const appointmentReference = await sendBooking(
    office,
    '/bookings',
    { reference, ...placeOf(office, random), customerReference, state },
    random,
  );
  if (appointmentReference !== undefined) office.participations.push({ reference, appointmentReference });
}

async function changeState(office: Office, random: Random): Promise<void> {
  const participation = recentParticipation(office, random);
  const { reference, appointmentReference } = participation;
  const state = random.pick(['BOOKED', 'BOOKED', 'CANCELED', 'CANCELED', 'CANCELED', 'DELETED']);
  const query = { sendMails: random.chance(0.5), ignoreCapacity: random.chance(0.05) };
  const answer = await send(office, () =>
    office.practice.crm.post(office.practice.at + path`/participations/${reference}`, { state }, { query }),
  );
  const hasEnded = answer.status === 404 || (answer.status === 200 && state === 'CANCELED');
  if (hasEnded) office.participations = office.participations.filter((each) => each !== participation);
  if (answer.status === 200 && state !== 'BOOKED') await takeOver(office, random, appointmentReference);
}

async function moveBooking(office: Office, random: Random): Promise<void> {
  const participation = recentParticipation(office, random);
  const { reference, appointmentReference: left } = participation;
  const joined = await sendBooking(office, path`/bookings/${reference}`, placeOf(office, random), random);
  if (joined === undefined || joined === left) return;
  participation.appointmentReference = joined;
  await takeOver(office, random, left);
}

/** Somebody has waited for the seat that has just become free. */
async function takeOver(office: Office, random: Random, appointmentReference: string): Promise<void> {
  if (random.chance(0.8)) await addParticipation(office, random, appointmentReference);
}

async function confirmHold(office: Office, random: Random): Promise<void> {
  const { reference } = recentParticipation(office, random);
  await sendBooking(
    office,
    path`/bookings/${reference}`,
    { state: 'BOOKED', customerReference: random.pick(office.customers) },
    random,
  );
}

async function changeAppointment(office: Office, random: Random): Promise<void> {
  const at = office.practice.at + path`/appointments/${recentAppointment(office, random)}`;
  // A description concerns the participants, too.
  const body = random.chance(0.3) ? { description: unique('title') } : { capacity: random.integer(0, 3) };
  await send(office, () => office.practice.crm.put(at, body, { query: { sendMails: random.chance(0.5) } }));
}

async function cancelAppointment(office: Office, random: Random): Promise<void> {
  const body = { appointmentReference: recentAppointment(office, random) };
  await send(office, () => office.practice.crm.delete(`${office.practice.at}/appointments`, body));
}

async function deleteAppointment(office: Office, random: Random): Promise<void> {
  const body = { appointmentReference: recentAppointment(office, random) };
  await send(office, () => office.practice.crm.delete(`${office.practice.at}/appointments/withoutNotification`, body));
}

async function createSeries(office: Office, random: Random): Promise<void> {
  const { practice } = office;
  const series = { from: dayStart, to: slotStart(2), raster: 30 };
  const body = {
    series_data: series,
    resourceReference: 'hall@test',
    productReference: practice.product,
    capacity: random.integer(1, 2),
    acceptBookings: true,
  };
  const answer = await send(office, () => practice.crm.post<Appointment[]>(`${practice.at}/appointments`, body));
  if (answer.status !== 201) return;
  office.series.push(answer.body[0]!.seriesId!);
  office.appointments.push(...answer.body.map(({ reference }) => reference));
}

async function deleteSeries(office: Office, random: Random): Promise<void> {
  if (office.series.length === 0) return;
  const body = { seriesId: random.pick(office.series) };
  await send(office, () => office.practice.crm.delete(`${office.practice.at}/appointments/withoutNotification`, body));
}

async function replaceCustomer(office: Office, random: Random): Promise<void> {
  const reference = random.pick(office.customers);
  await send(office, () =>
    office.practice.crm.delete(office.practice.at + path`/customers/${reference}?ignoreFutureAppointments=true`),
  );
  office.customers = office.customers.filter((each) => each !== reference);
  await addCustomer(office);
}

async function addCustomer(office: Office): Promise<void> {
  const customerReference = newReference('customer');
  await send(office, () =>
    office.practice.crm.post(`${office.practice.at}/customers`, {
      customerReference,
      providerReference: office.practice.provider,
      userName: 'Ann',
    }),
  );
  office.customers.push(customerReference);
}

async function eraseGuest(office: Office, random: Random): Promise<void> {
  await send(office, () =>
    office.practice.crm.post('/erasures', { email: `guest-${random.integer(1, guests)}@customers.example` }),
  );
}

/** All that there are at this moment. */
async function expireReservations(office: Office): Promise<void> {
  if (!office.isSandbox) return;
  const { crm } = office.practice;
  const { body } = await send(office, () => crm.get<{ clock: { now: string } }>('/sandbox/clock'));
  const now = new Date(Date.parse(body.clock.now) + clockStepMs).toISOString();
  await send(office, () => crm.put('/sandbox/clock', { now }));
}

/** Returns where the participation is then, or undefined if the request was rejected. */
async function sendBooking(office: Office, at: string, body: object, random: Random): Promise<string | undefined> {
  const query = { sendMails: random.chance(0.5) };
  const answer = await send(office, () =>
    office.practice.crm.post<{ booking: Booking }>(office.practice.at + at, body, { query }),
  );
  if (answer.status >= 300) return undefined;
  const { appointmentReference } = answer.body.booking.participation;
  if (!office.appointments.includes(appointmentReference)) office.appointments.push(appointmentReference);
  return appointmentReference;
}

async function send<Body>(office: Office, request: () => Promise<Answer<Body>>): Promise<Answer<Body>> {
  const answer = await untilServed(request);
  expect(expectedStatuses, answer.text).toContain(answer.status);
  office.answered += 1;
  if (answer.status === 409 && /capacity_exhausted|"full"/.test(answer.text)) office.rejectedAsFull += 1;
  return answer;
}

function newReference(prefix: string): string {
  return `${unique(prefix)}@test`;
}

function newState(random: Random): string {
  return random.pick(['BOOKED', 'BOOKED', 'BOOKED', 'REQUESTED', 'RESERVED']);
}

/** An appointment, or a slot, in which bookings make and end appointments. */
function placeOf(office: Office, random: Random): object {
  if (random.chance(0.5)) return { appointmentReference: recentAppointment(office, random) };
  return {
    timeslotReference: office.timeslot,
    start: slotStart(random.integer(0, slotCount - 1)),
    productReference: office.practice.product,
  };
}

function slotStart(index: number): string {
  return new Date(Date.parse(`${dayStart}Z`) + index * 30 * 60_000).toISOString().slice(0, 16);
}

/** Before there is any, one that does not exist. */
function recentAppointment({ appointments }: Office, random: Random): string {
  return random.pick(['nothing@test', ...appointments].slice(-recentAppointments));
}

function recentParticipation({ participations }: Office, random: Random): KnownParticipation {
  const nobody = { reference: 'nobody@test', appointmentReference: 'nothing@test' };
  return random.pick([nobody, ...participations].slice(-recentParticipations));
}
