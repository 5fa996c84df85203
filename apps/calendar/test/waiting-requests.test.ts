import { Confirmation, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { events } from '@scheduling/events';
import { eventually } from '@scheduling/testing';
import { createRandom, type Random } from '@scheduling/testing/random';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dateOf, makeClockAdjustable, type SetRealClock, textOf, wakeReplicas } from './adjustable-clock.ts';
import {
  type Calendar,
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  freshReference,
  newParticipation,
  startCalendar,
} from './calendar-under-test.ts';

const { BOOKED, REQUESTED, CANCELED } = ParticipationState;
/**
 * The clocks are set to multiples of this, and go on for some seconds then. With the start of all appointments, nothing
 * is closer than a minute to what the rules compare it with.
 */
const grid = 11;
const startOffset = 6;
const onGrid = (minutes: number): number => Math.floor(minutes / grid) * grid;

const seed = Number(process.env['WAITING_REQUESTS_SEED'] ?? Math.floor(Math.random() * 1_000_000));
const steps = Number(process.env['WAITING_REQUESTS_STEPS'] ?? 80);

const owners = {
  real: { crmId: 'one', providerReference: 'p1' },
  sandbox: { crmId: 'sandbox', providerReference: 'p1' },
};
type Owner = (typeof owners)[keyof typeof owners];

let calendar: CalendarUnderTest;
let replica: Calendar;
let setRealClock: SetRealClock;

beforeAll(async () => {
  calendar = await startCalendar();
  setRealClock = await makeClockAdjustable(calendar);
  replica = await calendar.startReplica();
}, 180_000);
afterAll(async () => {
  await replica?.[Symbol.asyncDispose]();
  await calendar?.[Symbol.asyncDispose]();
});

/** Wakes the replicas, and waits until all is said that is due now. */
async function runRounds(): Promise<void> {
  await wakeReplicas([calendar, replica]);
  await eventually(async () => {
    const { rows } = await sql`SELECT FROM waiting_request WHERE due_at <= scheduling_now(crm_id)`.execute(
      calendar.database.kysely,
    );
    expect(rows).toEqual([]);
  });
}

interface Said {
  participationId: string;
  version: number;
  remindProvider: boolean;
  tellPerson: boolean;
}

const seen = new Set<string>();

/** Since the last call. */
async function newlySaid(): Promise<Said[]> {
  const rows = await calendar.database.kysely
    .selectFrom('outbox')
    .select(['id', 'data'])
    .where('subject', '=', events.participationUndecided.subject)
    .execute();
  const unseen = rows.filter(({ id }) => !seen.has(id));
  for (const { id } of unseen) seen.add(id);
  return unseen.map(({ data }) => {
    const { participationId, version, remindProvider, tellPerson } = events.participationUndecided.fromJson(data!);
    return { participationId, version, remindProvider, tellPerson };
  });
}

const byId = (one: Said, two: Said): number => (one.participationId < two.participationId ? -1 : 1);

interface Appointment {
  reference: string;
  start: number;
  isActive: boolean;
}

interface WaitingRequest {
  id: string;
  reference: string;
  appointment: Appointment;
  version: number;
  state: ParticipationState;
  /** Whether the person has got a mail about it. */
  isKnown: boolean;
  remindAt?: number | undefined;
  tellAt?: number | undefined;
}

/** Random changes of one provider, through any replica, and what they mean. */
class Actor {
  readonly requests: WaitingRequest[] = [];
  readonly appointments: Appointment[] = [];
  notifyProvider = false;
  needsConfirmation = false;
  /** How far its clock is ahead of the real time. */
  ahead = 0;
  readonly counts = { reminders: 0, tellings: 0, atOnce: 0, silent: 0 };
  readonly #owner: Owner;
  readonly #random: Random;
  #customerReference = '';

  constructor(owner: Owner, random: Random) {
    this.#owner = owner;
    this.#random = random;
  }

  async act(realNow: number): Promise<void> {
    this.#customerReference ||= await createCustomer(calendar, this.#owner);
    const act = this.#random.pick([
      this.#ask,
      this.#ask,
      this.#ask,
      this.#askEmbedded,
      this.#decide,
      this.#moveAppointment,
      this.#describeAppointment,
      this.#moveRequest,
      this.#cancelAppointment,
      this.setRules,
    ]);
    await act.call(this, realNow + this.ahead);
  }

  /** What is to be said now. */
  hear(realNow: number): Said[] {
    const now = realNow + this.ahead;
    return this.requests.flatMap((request) => {
      const { id, version, appointment, state, remindAt = Infinity, tellAt = Infinity } = request;
      if (Math.min(remindAt, tellAt) > now) return [];
      const isOpen = appointment.isActive && state === REQUESTED && appointment.start > now;
      if (remindAt <= now || !isOpen) request.remindAt = undefined;
      if (tellAt <= now || !isOpen) request.tellAt = undefined;
      const remindProvider = isOpen && remindAt <= now && this.notifyProvider;
      const tellPerson = isOpen && tellAt <= now && (this.notifyProvider || this.needsConfirmation);
      this.counts.reminders += Number(remindProvider && !tellPerson);
      this.counts.tellings += Number(tellPerson && !remindProvider);
      this.counts.atOnce += Number(tellPerson && remindProvider);
      this.counts.silent += Number(!tellPerson && !remindProvider);
      return remindProvider || tellPerson ? [{ participationId: id, version, remindProvider, tellPerson }] : [];
    });
  }

  async setRules(): Promise<void> {
    this.notifyProvider = this.#random.chance(0.6);
    this.needsConfirmation = this.#random.chance(0.6);
    await this.#somewhere.bookings.updateBookingRules({
      ...this.#owner,
      noHorizon: false,
      defaultSelfService: false,
      notifyProvider: this.notifyProvider,
      confirmation: this.needsConfirmation ? Confirmation.REQUESTED : Confirmation.BOOKED,
    });
  }

  /** Of a sandbox. */
  async setClock(now: number, realNow: number): Promise<void> {
    await this.#somewhere.clocks.setSandboxClock({ crmId: this.#owner.crmId, now: dateOf(now) });
    this.ahead = now - realNow;
  }

  get #somewhere(): Calendar {
    return this.#random.pick([calendar, replica]);
  }

  #newStart(now: number): number {
    return onGrid(now + this.#random.pick([grid, 40, 110, 200, 700, 1_500, 3_000, 10_000])) + startOffset;
  }

  /** It waits from now on. */
  #await(request: WaitingRequest, now: number): void {
    const { appointment, isKnown, state } = request;
    if (!isKnown || state !== REQUESTED || appointment.start <= now) return;
    const half = now + (appointment.start - now) / 2;
    const remindAt = Math.max(half, now + 60);
    request.remindAt = remindAt < appointment.start ? remindAt : undefined;
    request.tellAt = Math.max(half, appointment.start - 12 * 60);
  }

  async #createAppointment(now: number, embedded: string[] = []): Promise<Appointment> {
    const start = this.#newStart(now);
    const participations = embedded.map((reference) => ({
      reference,
      name: 'Grace',
      email: 'grace@example.com',
      state: REQUESTED,
    }));
    const reference = await createAppointment(this.#somewhere, {
      ...this.#owner,
      start: textOf(start),
      end: textOf(start + 60),
      capacity: 100,
      acceptBookings: true,
      participations,
    });
    const appointment = { reference, start, isActive: true };
    this.appointments.push(appointment);
    return appointment;
  }

  async #note(reference: string, appointment: Appointment, isKnown: boolean, now: number): Promise<void> {
    const { id, version } = await calendar.database.kysely
      .selectFrom('participation')
      .select(['id', 'version'])
      .where('crmId', '=', this.#owner.crmId)
      .where('reference', '=', reference)
      .executeTakeFirstOrThrow();
    const request = { id, reference, appointment, version, state: REQUESTED, isKnown };
    this.requests.push(request);
    this.#await(request, now);
  }

  async #ask(now: number): Promise<void> {
    const appointment = (this.#random.chance(0.3) && this.#pickAppointment()) || (await this.#createAppointment(now));
    const sendMails = this.#random.chance(0.8);
    const required = { appointmentReference: appointment.reference, customerReference: this.#customerReference };
    const request = newParticipation(required, { ...this.#owner, state: REQUESTED, sendMails });
    await this.#somewhere.participations.createParticipation(request);
    await this.#note(request.reference, appointment, sendMails, now);
  }

  /** Nobody gets a mail about the creation of an appointment. */
  async #askEmbedded(now: number): Promise<void> {
    const references = [1, 2].map(() => freshReference('embedded'));
    const appointment = await this.#createAppointment(now, references);
    for (const reference of references) await this.#note(reference, appointment, false, now);
  }

  #pickAppointment(): Appointment | undefined {
    return this.#random.shuffled(this.appointments).find(({ isActive }) => isActive);
  }

  #pickRequest(): WaitingRequest | undefined {
    return this.#random
      .shuffled(this.requests)
      .find(({ state, appointment }) => state === REQUESTED && appointment.isActive);
  }

  async #decide(): Promise<void> {
    const request = this.#pickRequest();
    if (request === undefined) return;
    const state = this.#random.pick([BOOKED, CANCELED]);
    await this.#somewhere.participations.updateParticipation({
      ...this.#owner,
      participationReference: request.reference,
      state,
      ignoreCapacity: false,
      sendMails: this.#random.chance(0.5),
    });
    request.state = state;
    request.version += 1;
  }

  async #moveAppointment(now: number): Promise<void> {
    await this.#update(now, { start: this.#newStart(now) });
  }

  async #describeAppointment(now: number): Promise<void> {
    await this.#update(now, { description: freshReference('title') });
  }

  async #update(now: number, { start, description }: { start?: number; description?: string }): Promise<void> {
    const appointment = this.#pickAppointment();
    if (appointment === undefined || appointment.start === start) return;
    const sendMails = this.#random.chance(0.5);
    await this.#somewhere.appointments.updateAppointment({
      ...this.#owner,
      appointmentReference: appointment.reference,
      ...(start === undefined ? { description } : { start: textOf(start), end: textOf(start + 60) }),
      sendMails,
      noAddress: false,
    });
    appointment.start = start ?? appointment.start;
    for (const request of this.requests) {
      if (request.appointment !== appointment || request.state === CANCELED) continue;
      const isNew = sendMails && !request.isKnown;
      request.version += 1;
      request.isKnown ||= sendMails;
      if (start !== undefined || isNew) this.#await(request, now);
    }
  }

  async #moveRequest(now: number): Promise<void> {
    const request = this.#pickRequest();
    if (request === undefined) return;
    const target = await this.#createAppointment(now);
    const sendMails = this.#random.chance(0.5);
    await this.#somewhere.bookings.changeBooking({
      ...this.#owner,
      participationReference: request.reference,
      place: { $case: 'appointmentReference', value: target.reference },
      ignoreNotice: true,
      sendMails,
    });
    request.appointment = target;
    request.version += 1;
    request.isKnown ||= sendMails;
    this.#await(request, now);
  }

  async #cancelAppointment(): Promise<void> {
    const appointment = this.#pickAppointment();
    if (appointment === undefined) return;
    const { reference } = appointment;
    await this.#somewhere.appointments.cancelAppointment({ ...this.#owner, appointmentReference: reference });
    appointment.isActive = false;
  }
}

describe('requests that nobody decides', () => {
  it(
    `are said once to be waiting, at the right time and to whom the rules say (seed ${seed})`,
    { timeout: 600_000 },
    async () => {
      const random = createRandom(seed, 0);
      const real = new Actor(owners.real, createRandom(seed, 1));
      const sandbox = new Actor(owners.sandbox, createRandom(seed, 2));
      let now = 0;
      await setRealClock(now);
      for (const actor of [real, sandbox]) await actor.setRules();

      const counts = ['reminders', 'tellings', 'atOnce', 'silent'] as const;
      const total = (count: (typeof counts)[number]) => real.counts[count] + sandbox.counts[count];
      // Otherwise the test says nothing about one of them.
      const isEnough = () => counts.every((count) => total(count) > steps / 20);
      for (let step = 0; step < steps || (!isEnough() && step < 5 * steps); step += 1) {
        if (random.chance(0.2)) {
          const present = now + sandbox.ahead;
          await sandbox.setClock(present + grid * random.pick([-100, -5, 1, 5, 30, 100, 300]), now);
        } else {
          now += grid * random.pick([1, 1, 1, 2, 3, 5, 9, 25, 60, 200]);
          await setRealClock(now);
        }
        await runRounds();
        const expected = [real, sandbox].flatMap((actor) => actor.hear(now));
        expect((await newlySaid()).toSorted(byId), `seed ${seed}, step ${step}`).toEqual(expected.toSorted(byId));
        for (const actor of [real, sandbox]) {
          for (let count = random.integer(0, 3); count > 0; count -= 1) await actor.act(now);
        }
      }
      for (const count of counts) expect(total(count), count).toBeGreaterThan(steps / 20);
    },
  );
});
