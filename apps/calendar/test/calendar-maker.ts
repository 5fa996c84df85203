import { type BookSlotRequest, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { DomainError } from '@scheduling/errors';
import { patiently } from '@scheduling/testing';
import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { expect } from 'vitest';
import { instantOf, toDate } from '../src/date-time.ts';
import { type CalendarUnderTest, createAppointment } from './calendar-under-test.ts';
import type { Action, ActionOf, Plan } from './calendar-plans.ts';
import { newHours, newWindow, putHours, type RoomKey } from './hours-under-test.ts';
import {
  type Appointment,
  type Block,
  dayMs,
  isThere,
  minuteMs,
  overlap,
  type Paper,
  type Person,
  type Place,
  spanOf,
  type Timeslot,
  type Verdict,
  verdictOf,
  verdictOfMove,
} from './slots-model.ts';

export interface StoredProvider {
  crmId: string;
  id: string;
  reference: string;
  timeZone: string;
  version: number;
}

/** A calendar in the database, and on paper. */
export interface Stored {
  provider: StoredProvider;
  paper: Paper;
  from: Date;
  to: Date;
}

/** Makes calendars, when it is `present` for the database. */
export class CalendarMaker {
  readonly calendar: CalendarUnderTest;
  readonly presentMs: () => number;
  /** How often it was done. */
  readonly counts = new Map<string, number>();

  constructor(calendar: CalendarUnderTest, presentMs: () => number) {
    this.calendar = calendar;
    this.presentMs = presentMs;
  }

  async make(plan: Plan): Promise<Stored> {
    const { zone, day, leadDays, hours, actions } = plan;
    const provider = { crmId: 'one', id: randomUUID(), reference: `exact-${randomUUID()}`, timeZone: zone, version: 1 };
    const midnight = toDate(instantOf(Temporal.PlainDateTime.from(`${day}T00:00`), zone)).getTime();
    await this.calendar.database.kysely.insertInto('provider').values(provider).execute();
    const paper: Paper = {
      timeslots: await this.#storeTimeslots(provider, midnight, plan),
      appointments: [],
      blocks: [],
      earliest: this.presentMs(),
      latest: Number.POSITIVE_INFINITY,
    };
    const room = { crmId: provider.crmId, providerReference: provider.reference, resourceReference: 'room' };
    if (hours !== null) await this.#setHours(room, day, hours.before);
    await this.#readTimeslots(provider, paper);
    paper.appointments = await this.#storeAppointments(provider, midnight, plan);
    const actor = new Actor(this, provider, paper, midnight, await this.#storeCustomer(provider));
    for (const [index, action] of actions.entries())
      await actor.act(action, `${provider.reference}, action ${index} of ${JSON.stringify(plan)}`);
    await actor.repeatBlock();
    const after = hours?.after ?? null;
    if (after !== null) await this.#setHours(room, day, after);
    await this.#readTimeslots(provider, paper);
    await this.#storeRules(provider, midnight, plan);
    return {
      provider,
      paper,
      from: new Date(midnight - leadDays * dayMs),
      to: new Date(midnight + 4 * dayMs),
    };
  }

  async #storeTimeslots({ crmId, id: providerId }: StoredProvider, midnight: number, plan: Plan): Promise<Timeslot[]> {
    const timeslots = plan.timeslots.map(({ start, minutes, state, buffers: { before, after }, ...others }) => ({
      ...others,
      reference: randomUUID(),
      start: midnight + start * minuteMs,
      end: midnight + (start + minutes) * minuteMs,
      isBookable: state === 'BOOKABLE',
      before,
      after,
    }));
    const rows = timeslots.map((timeslot) => ({
      crmId,
      providerId,
      contentDigest: Buffer.alloc(0),
      id: randomUUIDv7(),
      reference: timeslot.reference,
      resourceReference: timeslot.resource,
      startsAt: new Date(timeslot.start),
      endsAt: new Date(timeslot.end),
      raster: timeslot.raster,
      defaultCapacity: timeslot.capacity,
      defaultAcceptBookings: timeslot.acceptBookings,
      address: null,
      state: timeslot.isBookable ? ('BOOKABLE' as const) : ('CREATED' as const),
      bufferBefore: timeslot.before,
      bufferAfter: timeslot.after,
    }));
    await this.calendar.database.kysely.insertInto('timeslot').values(rows).execute();
    return timeslots;
  }

  /** What hours make, hide and remove. What timeslots that are known have as buffers is what they were given. */
  async #readTimeslots({ id }: StoredProvider, paper: Paper): Promise<void> {
    const db = this.calendar.database.kysely;
    const rows = await db
      .selectFrom('timeslot')
      .selectAll()
      .where('providerId', '=', id)
      .orderBy('startsAt')
      .orderBy('endsAt')
      .orderBy('raster')
      .orderBy('id')
      .execute();
    const known = new Map(paper.timeslots.map((timeslot) => [timeslot.reference, timeslot]));
    const timeslots = rows.map((row) => {
      const { reference, resourceReference, raster, defaultCapacity, defaultAcceptBookings, state } = row;
      const timeslot = known.get(reference) ?? {
        reference,
        resource: resourceReference,
        start: row.startsAt.getTime(),
        end: row.endsAt.getTime(),
        raster,
        capacity: defaultCapacity,
        acceptBookings: defaultAcceptBookings,
        isBookable: true,
        before: row.bufferBefore,
        after: row.bufferAfter,
      };
      timeslot.isBookable = state === 'BOOKABLE';
      return timeslot;
    });
    // In an order that does not depend on chance, for actions that name them by their index.
    paper.timeslots = [
      ...paper.timeslots.filter((timeslot) => timeslots.includes(timeslot)),
      ...timeslots.filter(({ reference }) => !known.has(reference)),
    ];
  }

  /** Such as are hard to make by bookings. */
  async #storeAppointments(
    { crmId, id: providerId }: StoredProvider,
    midnight: number,
    plan: Plan,
  ): Promise<Appointment[]> {
    const db = this.calendar.database.kysely;
    const stored = plan.appointments.map(
      ({ start, minutes, minutesBefore, state, participations, whenEmpty, buffers: { before, after }, ...others }) => {
        // One that was made by a booking has ended, if nobody is in it.
        const isMadeByBooking =
          whenEmpty !== null && participations.some((each) => !['CANCELED', 'DELETED'].includes(each));
        const endsAt = midnight + (start + minutes) * minuteMs;
        const appointment: Appointment = {
          ...others,
          reference: randomUUID(),
          start: endsAt - (minutes + minutesBefore) * minuteMs,
          end: endsAt,
          isCancelled: state === 'CANCELLED',
          whenEmpty: isMadeByBooking ? (participations.every(isHold) ? whenEmpty : 'CANCELLED') : null,
          people: participations.map((each) => ({ reference: randomUUID(), state: each })),
          before: isMadeByBooking ? before : 0,
          after: isMadeByBooking ? after : 0,
        };
        return { id: randomUUIDv7(), appointment };
      },
    );
    const rows = stored.map(({ id, appointment }) => ({
      crmId,
      providerId,
      contentDigest: Buffer.alloc(0),
      id,
      reference: appointment.reference,
      resourceReference: appointment.resource,
      productReference: appointment.product,
      startsAt: new Date(appointment.start),
      endsAt: new Date(appointment.end),
      capacity: appointment.capacity,
      acceptBookings: appointment.acceptBookings,
      state: appointment.isCancelled ? ('CANCELLED' as const) : ('ACTIVE' as const),
      taken: appointment.people.filter(({ state }) => ['BOOKED', 'RESERVED', 'OVER'].includes(state)).length,
      whenEmpty: appointment.whenEmpty,
      bufferBefore: appointment.before,
      bufferAfter: appointment.after,
      seriesId: null,
      contactReference: null,
      description: null,
      notes: null,
      address: null,
      priceValue: null,
      priceCurrency: null,
    }));
    if (rows.length > 0) await db.insertInto('appointment').values(rows).execute();
    const people = stored.flatMap(({ id, appointment }) =>
      appointment.people.map(({ reference, state }) => ({
        crmId,
        id: randomUUIDv7(),
        appointmentId: id,
        customerId: null,
        reference,
        name: 'Name',
        email: null,
        mobile: null,
        note: null,
        exempt: false,
        state: state === 'OVER' ? ('RESERVED' as const) : state,
        reservedUntil:
          state === 'RESERVED' ? new Date(this.presentMs() + dayMs) : state === 'OVER' ? this.#aMinuteAgo() : null,
      })),
    );
    if (people.length > 0) await db.insertInto('participation').values(people).execute();
    return stored.map(({ appointment }) => appointment);
  }

  #aMinuteAgo(): Date {
    return new Date(this.presentMs() - minuteMs);
  }

  /** Reservations end when the test says so, and not after three minutes. */
  async setReservedUntil(reference: string, isOver: boolean): Promise<void> {
    const reservedUntil = isOver ? this.#aMinuteAgo() : new Date(this.presentMs() + dayMs);
    await this.calendar.database.kysely
      .updateTable('participation')
      .set({ reservedUntil })
      .where('reference', '=', reference)
      .execute();
  }

  async #storeCustomer({ crmId, id: providerId }: StoredProvider): Promise<string> {
    const reference = `customer-${randomUUID()}`;
    const unknown = { userName: 'Name', email: null, mobile: null, language: null, erasedAt: null };
    await this.calendar.database.kysely
      .insertInto('customer')
      .values({ crmId, providerId, id: randomUUID(), reference, version: 1, ...unknown })
      .execute();
    return reference;
  }

  async #storeRules(
    { crmId, id: providerId }: StoredProvider,
    midnight: number,
    { noticeEnds, horizonDays }: Plan,
  ): Promise<void> {
    if (noticeEnds === null && horizonDays === null) return;
    const minutesUntil = (time: number): number => Math.round((time - this.presentMs()) / minuteMs);
    const horizon = horizonDays === null ? null : Math.floor(minutesUntil(midnight) / 1_440) + horizonDays;
    const rules = {
      minimumNotice: noticeEnds === null ? 0 : minutesUntil(midnight + noticeEnds * minuteMs),
      horizon,
      changeNotice: 0,
      confirmation: 'BOOKED' as const,
    };
    const others = { page: false, reminders: [], notifyProvider: false, maxPerPerson: 3, offers: '[]' };
    await this.calendar.database.kysely
      .insertInto('bookingRules')
      .values({ crmId, providerId, ...rules, ...others })
      .execute();
  }

  async #setHours(room: RoomKey, day: string, windows: NonNullable<Plan['hours']>['before']): Promise<void> {
    if (windows.length === 0) {
      await patiently(() => this.calendar.hours.deleteHours(room));
      return;
    }
    const timeOf = (minutes: number): string =>
      [Math.floor(minutes / 60) % 24, minutes % 60].map((part) => String(part).padStart(2, '0')).join(':');
    const exception = {
      from: day,
      to: day,
      windows: windows.map(({ from, minutes, raster, capacity, acceptBookings, buffers: { before, after } }) =>
        newWindow({
          weekdays: [],
          from: timeOf(from),
          to: timeOf(from + minutes),
          raster,
          defaultCapacity: capacity,
          defaultAcceptBookings: acceptBookings,
          bufferBefore: before,
          bufferAfter: after,
        }),
      ),
    };
    await putHours(this.calendar, room, newHours({ exceptions: [exception], aheadDays: 400 }));
  }
}

/** Does to a calendar what it does on paper, and expects the same answers. */
class Actor {
  readonly #maker: CalendarMaker;
  readonly #calendar: CalendarUnderTest;
  readonly #owner: { crmId: string; providerReference: string };
  readonly #paper: Paper;
  readonly #midnight: number;
  readonly #customerReference: string;

  constructor(maker: CalendarMaker, provider: StoredProvider, paper: Paper, midnight: number, customer: string) {
    this.#maker = maker;
    this.#calendar = maker.calendar;
    this.#owner = { crmId: provider.crmId, providerReference: provider.reference };
    this.#paper = paper;
    this.#midnight = midnight;
    this.#customerReference = customer;
  }

  async act(action: Action, about: string): Promise<void> {
    switch (action.kind) {
      case 'book':
        return this.#book(action, about);
      case 'join':
        return this.#join(action, about);
      case 'move':
        return this.#move(action, about);
      case 'cancel':
        return this.#cancel(action);
      case 'expire':
        return this.#expire(action);
      case 'changeBuffers':
        return this.#changeBuffers(action);
      case 'appoint':
        return this.#appoint(action);
      case 'shift':
        return this.#shift(action);
      case 'block':
        return this.#block(action.block, about);
      case 'unblock':
        return this.#unblock(action);
      case 'blockOften':
        return this.#blockOften(action, about);
    }
  }

  /** It is answered as it is now. */
  async repeatBlock(): Promise<void> {
    const block = this.#paper.blocks.findLast(({ isDeleted }) => !isDeleted);
    if (block !== undefined) await this.#createBlock(block, false, 'repeated');
  }

  async #book({ timeslot: index, step, length, product, state }: ActionOf<'book'>, about: string): Promise<void> {
    const timeslot = this.#pickOpen(index);
    const { raster } = timeslot;
    const minutes =
      length === 'longer than a day' ? Math.ceil(1_500 / raster) * raster : length === 1 ? undefined : length * raster;
    const place = { timeslot, start: this.#stepIn(timeslot, step).start, minutes, product };
    await this.#bookAt(place, state, about);
  }

  async #join({ appointment: index, state }: ActionOf<'join'>, about: string): Promise<void> {
    const appointment = this.#pick(this.#paper.appointments, index);
    if (appointment !== undefined) await this.#bookAt({ appointment }, state, about);
  }

  async #bookAt(place: Place, state: ActionOf<'book'>['state'], about: string): Promise<void> {
    const customer =
      state === 'RESERVED' ? undefined : { $case: 'customerReference' as const, value: this.#customerReference };
    const request = {
      ...this.#owner,
      place: placeOf(place),
      reference: randomUUID(),
      state: ParticipationState[state],
      customer,
      ignoreNotice: false,
      sendMails: false,
    };
    const verdict = verdictOf(this.#paper, place);
    const answer = await answerOf(patiently(() => this.#calendar.bookings.bookSlot(request)));
    expectSame(typeof answer === 'string' ? answer : 'done', outcomeOf(verdict), about);
    this.#count(`book: ${verdict}`);
    if (typeof answer === 'string') return;
    const { appointmentReference } = answer.participation;
    this.#arrive(place, verdict, appointmentReference, { reference: request.reference, state }, about);
    if (state === 'RESERVED') await this.#maker.setReservedUntil(request.reference, false);
  }

  #arrive(place: Place, verdict: Verdict, appointmentReference: string, person: Person, about: string): void {
    const { appointments } = this.#paper;
    const known = appointments.find(({ reference }) => reference === appointmentReference);
    expectSame(known === undefined ? 'made' : 'joined', verdict, about);
    if (known !== undefined) {
      known.people.push(person);
      if (known.whenEmpty !== null && person.state !== 'RESERVED') known.whenEmpty = 'CANCELLED';
      return;
    }
    if (!('timeslot' in place)) throw new Error('an appointment has been made where there is one');
    const { timeslot, product } = place;
    const { resource: ofResource, capacity, acceptBookings, before, after } = timeslot;
    appointments.push({
      ...spanOf(place),
      reference: appointmentReference,
      resource: ofResource,
      product,
      capacity,
      acceptBookings,
      isCancelled: false,
      whenEmpty: person.state === 'RESERVED' ? 'REMOVED' : 'CANCELLED',
      people: [person],
      before,
      after,
      timeslot,
    });
  }

  async #move({ person: index, timeslot: timeslotIndex, step }: ActionOf<'move'>, about: string): Promise<void> {
    const mover = this.#pick(moversOf(this.#paper), index);
    if (mover === undefined) return;
    const { person, source } = mover;
    const timeslot = this.#pickOpen(timeslotIndex);
    const place = { timeslot, start: this.#stepIn(timeslot, step).start, minutes: undefined, product: source.product };
    const verdict = verdictOfMove(this.#paper, mover, place);
    const request = {
      ...this.#owner,
      participationReference: person.reference,
      place: placeOf(place),
      ignoreNotice: false,
      sendMails: false,
    };
    const answer = await answerOf(patiently(() => this.#calendar.bookings.changeBooking(request)));
    expectSame(typeof answer === 'string' ? answer : 'done', outcomeOf(verdict), about);
    this.#count(`move: ${verdict}`);
    if (typeof answer === 'string' || verdict === 'present') return;
    source.people.splice(source.people.indexOf(person), 1);
    this.#leave(source);
    this.#arrive(place, verdict, answer.participation.appointmentReference, person, about);
  }

  async #cancel({ person: index }: ActionOf<'cancel' | 'expire'>): Promise<void> {
    const mover = this.#pick(moversOf(this.#paper), index);
    if (mover === undefined) return;
    const { person, source } = mover;
    const change = { state: ParticipationState.CANCELED, ignoreCapacity: false, sendMails: false };
    const key = { ...this.#owner, participationReference: person.reference };
    await patiently(() => this.#calendar.participations.updateParticipation({ ...key, ...change }));
    person.state = 'CANCELED';
    this.#leave(source);
    this.#count('cancel');
  }

  /** One that a booking made ends with the last one. Holds that are over do not keep it. */
  #leave(appointment: Appointment): void {
    if (appointment.whenEmpty === null) return;
    appointment.whenEmpty = 'CANCELLED';
    if (!isThere(appointment)) appointment.isCancelled = true;
  }

  async #expire({ person: index }: ActionOf<'cancel' | 'expire'>): Promise<void> {
    const holds = this.#paper.appointments.flatMap(({ people }) => people.filter(({ state }) => state === 'RESERVED'));
    const person = this.#pick(holds, index);
    if (person === undefined) return;
    await this.#maker.setReservedUntil(person.reference, true);
    person.state = 'OVER';
    this.#count('expire');
  }

  /** What is booked keeps its buffers. */
  async #changeBuffers({ timeslot: index, buffers: { before, after } }: ActionOf<'changeBuffers'>): Promise<void> {
    const booked = this.#paper.appointments.flatMap(({ timeslot }) => timeslot ?? []);
    const timeslot = this.#pick(booked.length > 0 ? booked : this.#paper.timeslots, index)!;
    // Too short for its raster: that is refused.
    if (timeslot.end - timeslot.start < timeslot.raster * minuteMs) return;
    const change = { bufferBefore: before, bufferAfter: after };
    await patiently(() =>
      this.#calendar.timeslots.updateTimeslot({ ...this.#owner, timeslotReference: timeslot.reference, ...change }),
    );
    Object.assign(timeslot, { before, after });
    this.#count('changeBuffers');
  }

  /** Anywhere, or exactly where others can book. */
  async #appoint({ where, product, capacity }: ActionOf<'appoint'>): Promise<void> {
    const { resource: ofResource, ...span } =
      'timeslot' in where
        ? this.#stepIn(this.#pickOpen(where.timeslot), where.step)
        : { resource: where.resource, start: this.#at(where.start), end: this.#at(where.start + where.minutes) };
    const reference = await createAppointment(this.#calendar, {
      ...this.#owner,
      resourceReference: ofResource,
      productReference: product,
      start: textOf(span.start),
      end: textOf(span.end),
      capacity,
      acceptBookings: true,
    });
    const rules = { capacity, acceptBookings: true, isCancelled: false, whenEmpty: null, before: 0, after: 0 };
    this.#paper.appointments.push({ ...span, ...rules, reference, resource: ofResource, product, people: [] });
    this.#count('appoint');
  }

  /** The CRM may do so, whatever is there, and a booking keeps its buffers. */
  async #shift({ appointment: index, minutes }: ActionOf<'shift'>): Promise<void> {
    const appointment = this.#pick(this.#paper.appointments.filter(isThere), index);
    if (appointment === undefined) return;
    appointment.start += minutes * minuteMs;
    appointment.end += minutes * minuteMs;
    const { reference: appointmentReference, start, end } = appointment;
    const change = { start: textOf(start), end: textOf(end), noAddress: false, sendMails: false };
    await patiently(() =>
      this.#calendar.appointments.updateAppointment({ ...this.#owner, appointmentReference, ...change }),
    );
    this.#count('shift');
  }

  async #block(
    { resource: ofResource, start, minutes, begins }: ActionOf<'block'>['block'],
    about: string,
  ): Promise<void> {
    const end = this.#at(start + minutes);
    const past = Math.floor(this.#maker.presentMs() / minuteMs) * minuteMs - 10 * dayMs;
    const [from, to] = {
      'as planned': [this.#at(start), end],
      'a day before': [this.#at(start) - dayMs, end],
      'in the past': [past, end],
      'and ends in the past': [past, past + minutes * minuteMs],
    }[begins] as [number, number];
    await this.#addBlock({ start: from, end: to }, ofResource, about);
    this.#count(`block ${begins}`);
  }

  async #addBlock(span: { start: number; end: number }, ofResource: string, about: string): Promise<void> {
    const block = { ...span, reference: randomUUID(), resource: ofResource, isDeleted: false };
    await this.#createBlock(block, true, about);
    this.#paper.blocks.push(block);
  }

  async #createBlock(
    { reference, resource: ofResource, start, end }: Block,
    isNew: boolean,
    about: string,
  ): Promise<void> {
    const request = {
      ...this.#owner,
      resourceReference: ofResource,
      reference,
      start: textOf(start),
      end: textOf(end),
    };
    const { created, conflicts } = await patiently(() => this.#calendar.blocks.createBlock(request));
    const named = this.#paper.appointments.filter(
      (each) =>
        each.resource === ofResource &&
        isThere(each) &&
        each.end > this.#maker.presentMs() &&
        overlap(each, { start, end }),
    );
    expectSame(created, isNew, about);
    expectSame(conflicts!.total, named.length, about);
    const { appointmentReferences } = conflicts!;
    expectSame(appointmentReferences.toSorted(), named.map((each) => each.reference).toSorted(), about);
    const starts = appointmentReferences.map((each) => named.find((one) => one.reference === each)!.start);
    expectSame(
      starts,
      starts.toSorted((a, b) => a - b),
      about,
    );
    if (named.length > 0) this.#count('block with conflicts');
  }

  async #unblock({ block: index }: ActionOf<'unblock'>): Promise<void> {
    const block = this.#pick(
      this.#paper.blocks.filter(({ isDeleted }) => !isDeleted),
      index,
    );
    if (block === undefined) return;
    const key = { ...this.#owner, resourceReference: block.resource, blockReference: block.reference };
    await patiently(() => this.#calendar.blocks.deleteBlock(key));
    block.isDeleted = true;
    this.#count('unblock');
  }

  /** Every second one touches the one before. */
  async #blockOften({ start, resource: ofResource }: ActionOf<'blockOften'>, about: string): Promise<void> {
    for (let index = 0; index < 16; index += 1) {
      const from = this.#at(start + 15 * index + 5 * (index % 2));
      await this.#addBlock({ start: from, end: from + 10 * minuteMs }, ofResource, about);
    }
    this.#count('blockOften');
  }

  #at(minutes: number): number {
    return this.#midnight + minutes * minuteMs;
  }

  #stepIn({ resource: ofResource, start, end, raster }: Timeslot, step: number) {
    const steps = Math.max(1, Math.floor((end - start) / minuteMs / raster));
    const from = start + (step % steps) * raster * minuteMs;
    return { resource: ofResource, start: from, end: from + raster * minuteMs };
  }

  /** Sometimes one in which nothing can be booked. */
  #pickOpen(index: number): Timeslot {
    const { timeslots } = this.#paper;
    const open = timeslots.filter(
      ({ isBookable, capacity, raster, start, end }) => isBookable && capacity > 0 && end - start >= raster * minuteMs,
    );
    return this.#pick(index % 8 === 0 || open.length === 0 ? timeslots : open, index)!;
  }

  #pick<T>(values: T[], index: number): T | undefined {
    return values[index % values.length];
  }

  #count(what: string): void {
    const { counts } = this.#maker;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
}

function expectSame<T>(actual: T, expected: T, about: string): void {
  expect(actual, about).toEqual(expected);
}

/** Those who can move to another slot. */
export function moversOf({ appointments }: Paper): { person: Person; source: Appointment }[] {
  return appointments
    .filter(isThere)
    .flatMap((source) =>
      source.people
        .filter(({ state }) => state === 'BOOKED' || state === 'REQUESTED')
        .map((person) => ({ person, source })),
    );
}

const isHold = (state: string): boolean => state === 'RESERVED' || state === 'OVER';

export const textOf = (time: number): string => new Date(time).toISOString().slice(0, 19) + 'Z';

function placeOf(place: Place): BookSlotRequest['place'] {
  if (!('timeslot' in place)) return { $case: 'appointmentReference', value: place.appointment.reference };
  const { timeslot, start, minutes: duration, product: productReference } = place;
  const value = { timeslotReference: timeslot.reference, start: textOf(start), productReference, duration };
  return { $case: 'timeslot', value };
}

/** `done`, or why not. */
export function outcomeOf(verdict: Verdict): string {
  return verdict === 'made' || verdict === 'joined' || verdict === 'present' ? 'done' : verdict;
}

async function answerOf<Answer extends object>(call: Promise<Answer>): Promise<Answer | string> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    if (error.code === 'appointment.not_found') return 'not_found';
    if (error.reason === undefined) throw error;
    return error.reason;
  }
}
