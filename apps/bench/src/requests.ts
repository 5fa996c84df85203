import { randomUUID } from 'node:crypto';
import type { Tenant } from './tenant.ts';
import { customers, dayOf } from './seed.ts';

/** What a request changes if it is answered as expected. The databases are compared with the sum after each load. */
export interface Effect {
  seats: number;
  appointments: number;
  customers: number;
  mails: number;
}

export interface BenchRequest {
  method: 'GET' | 'POST';
  path: string;
  headers: Record<string, string>;
  body?: string;
  /** Throws unless the answer is right; false if the request was refused because too many are in progress. */
  check: (status: number, body: string) => boolean;
  effect: Partial<Effect>;
}

export class WrongAnswer extends Error {
  override readonly name = 'WrongAnswer';
}

/**
 * Where slots are booked: each number is another step of one of the timeslots, of which each resource has one a day.
 */
export interface SlotsOf {
  timeslots: number;
  resources: number;
}

const slotMs = 30 * 60_000;

/** The requests of a tenant that the cases are made of. */
// oxlint-disable-next-line eslint/max-lines-per-function -- a table
export function requestsOf({ crmId, key, providerReference }: Tenant) {
  const base = `/crms/${crmId}/provider/${encodeURIComponent(providerReference)}`;

  const post = (
    path: string,
    content: unknown,
    status: number,
    effect: Partial<Effect>,
    isRight: (answer: never) => boolean,
  ): BenchRequest => ({
    method: 'POST',
    path: base + path,
    headers: { 'x-service-client-id': key, 'content-type': 'application/json' },
    body: JSON.stringify(content),
    check: checker(path, status, isRight),
    effect,
  });
  const get = (path: string, isRight: (answer: never) => boolean): BenchRequest => ({
    method: 'GET',
    path: base + path,
    headers: { 'x-service-client-id': key },
    check: checker(path, 200, isRight),
    effect: {},
  });

  return {
    book: (appointments: number, { mails = false, withKey = false } = {}): BenchRequest => {
      const reference = randomUUID();
      const content = {
        reference,
        appointmentReference: `a-${random(appointments)}`,
        customerReference: `c-${random(customers)}`,
        state: 'BOOKED',
      };
      const request = post(
        `/participations?sendMails=${mails}`,
        content,
        201,
        { seats: 1, mails: Number(mails) },
        ({ participation }: { participation: Participation }) =>
          participation.reference === reference && participation.state === 'BOOKED',
      );
      if (withKey) request.headers['idempotency-key'] = reference;
      return request;
    },
    /** A place that no request with another number books; see {@link SlotsOf}. */
    bookSlot: (number: number, { timeslots, resources }: SlotsOf): BenchRequest => {
      const reference = randomUUID();
      const [timeslot, step] = [number % timeslots, Math.floor(number / timeslots)];
      const start = new Date(
        Date.parse(`${dayOf(Math.floor(timeslot / resources))}T08:00Z`) + step * slotMs,
      ).toISOString();
      const place = {
        timeslotReference: `t-${timeslot}`,
        start: `${start.slice(0, 16)}Z`,
        productReference: 'cut',
        productName: 'Haircut',
      };
      const content = { ...place, reference, customerReference: `c-${random(customers)}`, state: 'BOOKED' };
      return post(
        '/bookings?sendMails=false',
        content,
        201,
        { seats: 1, appointments: 1 },
        ({ booking }: { booking: Booking }) =>
          booking.participation.reference === reference &&
          booking.slot.start === `${start.slice(0, 19)}Z` &&
          booking.slot.seats === 0,
      );
    },
    move: (number: number, state: string, seats: number): BenchRequest =>
      post(
        `/participations/p-${number}?sendMails=false`,
        { state },
        200,
        { seats },
        ({ participation }: { participation: Participation }) =>
          participation.reference === `p-${number}` && participation.state === state,
      ),
    createAppointment: (): BenchRequest => {
      const reference = randomUUID();
      const day = dayOf(random(1_000));
      const participations = [1, 2].map((number) => ({
        reference: `${reference}-${number}`,
        name: 'Grace Hopper',
        email: `${reference}@customers.example`,
        state: 'BOOKED',
      }));
      const content = { ...details, reference, start: `${day}T08:00`, end: `${day}T09:00`, participations };
      return post(
        '/appointments',
        content,
        201,
        { appointments: 1, seats: 2 },
        ({ appointment }: { appointment: Appointment }) =>
          appointment.reference === reference && appointment.participations.length === 2,
      );
    },
    createSeries: (length: number): BenchRequest => {
      const day = dayOf(random(1_000));
      const content = { ...details, series_data: { from: `${day}T08:00`, to: `${day}T09:40`, raster: 100 / length } };
      return post(
        '/appointments',
        content,
        201,
        { appointments: length },
        (appointments: Appointment[]) => appointments.length === length,
      );
    },
    timeslotsOfWeek: (resource: number, firstDay: number, appointmentsADay: number): BenchRequest =>
      get(
        `/resource/room-${resource}/timeslots?from=${dayOf(firstDay)}T00:00&to=${dayOf(firstDay + 7)}T00:00`,
        (timeslots: { appointments: Appointment[] }[]) =>
          timeslots.length === 7 && timeslots.every(({ appointments }) => appointments.length === appointmentsADay),
      ),
    appointmentsOfDay: (day: number, count: number): BenchRequest =>
      get(
        `/appointments?from=${dayOf(day)}T00:00&to=${dayOf(day + 1)}T00:00`,
        (appointments: Appointment[]) => appointments.length === count,
      ),
    /** Of the first days, in seeds with 8 appointments a day and a timeslot of 20 steps for each resource. */
    slots: (days: number, resources: number, filter = ''): BenchRequest =>
      get(
        `/slots?from=${dayOf(0)}T00:00Z&to=${dayOf(days)}T00:00Z${filter}`,
        (slots: Slot[]) =>
          slots.length === 20 * days * resources &&
          slots.filter((slot) => slot.appointmentReference !== null).length === 8 * days * resources,
      ),
    allAppointments: (count: number, participations: number): BenchRequest =>
      get(
        '/appointments',
        (appointments: Appointment[]) =>
          appointments.length === count && appointments.every((each) => each.participations.length === participations),
      ),
    getCustomer: (): BenchRequest => {
      const reference = `c-${random(customers)}`;
      return get(
        `/customers/${reference}`,
        ({ customer }: { customer: Customer }) => customer.customerReference === reference,
      );
    },
    createCustomer: (): BenchRequest => {
      const reference = randomUUID();
      const content = {
        customerReference: reference,
        providerReference,
        userName: 'Grace Hopper',
        email: `${reference}@customers.example`,
        language: 'en',
      };
      return post(
        '/customers',
        content,
        201,
        { customers: 1 },
        ({ customer }: { customer: Customer }) => customer.customerReference === reference,
      );
    },
  };
}

interface Participation {
  reference: string;
  state: string;
}

interface Booking {
  participation: Participation;
  slot: Slot;
}

interface Slot {
  start: string;
  seats: number;
  appointmentReference: string | null;
}

interface Appointment {
  reference: string;
  participations: Participation[];
}

interface Customer {
  customerReference: string;
}

const details = { capacity: 10, resourceReference: 'room-0', productReference: 'cut', productName: 'Haircut' };

/**
 * What a request gets after waiting for too long: for its turn, behind others of its CRM or of all CRMs, or for its
 * answer.
 */
const refusals = ['rate.concurrent', 'service.unavailable'];

export function random(count: number): number {
  return Math.floor(Math.random() * count);
}

/**
 * A request that was refused is sent again. If it had been done without an answer, the answer says that what it creates
 * exists.
 */
function checker(path: string, expected: number, isRight: (answer: never) => boolean): BenchRequest['check'] {
  let wasRefused = false;
  return (status, body) => {
    if (refusals.some((code) => body.includes(`"code":"${code}"`))) {
      wasRefused = true;
      return false;
    }
    if ((status === expected || (wasRefused && status === 200)) && isRight(JSON.parse(body) as never)) return true;
    throw new WrongAnswer(`${path} was answered with ${status} ${body.slice(0, 500)}`);
  };
}
