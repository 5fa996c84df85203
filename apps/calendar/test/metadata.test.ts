import { type CreateAppointmentRequest, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { createRandom } from '@scheduling/testing/random';
import { sql } from 'kysely';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CalendarUnderTest,
  createCustomer,
  eventsOf,
  freshReference,
  newAppointment,
  readAppointments,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';
import { newBooking, newTimeslot } from './slots-under-test.ts';

// A sandbox: its clock can be set.
const owner = { crmId: 'sandbox', providerReference: 'p1' };
const { REQUESTED, BOOKED, CANCELED, DELETED, UNSPECIFIED } = ParticipationState;
const before = new Date('2031-06-02T07:59:59Z');
const start = new Date('2031-06-02T08:00:00Z');

let calendar: CalendarUnderTest;
let customer: string;
beforeAll(async () => {
  calendar = await startCalendar();
  customer = await createCustomer(calendar, owner);
  await setClock(before);
});
afterAll(() => calendar?.[Symbol.asyncDispose]());

type Pairs = Record<string, string>;
const setClock = (now: Date) => calendar.clocks.setSandboxClock({ crmId: owner.crmId, now });

/** From 10:00 to 11:00 in Berlin. */
async function appoint(overrides: Partial<CreateAppointmentRequest> = {}): Promise<string> {
  const times = { start: '2031-06-02T10:00', end: '2031-06-02T11:00', capacity: 100 };
  const request = newAppointment({ ...owner, ...times, ...overrides });
  await calendar.appointments.createAppointment(request);
  return request.reference;
}

async function book(appointmentReference: string, metadata?: Pairs, state: ParticipationState = BOOKED) {
  const reference = freshReference('participation');
  await calendar.participations.createParticipation({
    ...owner,
    reference,
    appointmentReference,
    customerReference: customer,
    state,
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails: true,
    ...(metadata && { metadata: { pairs: metadata } }),
  });
  return reference;
}

interface Change {
  state?: ParticipationState;
  metadata?: { pairs: Pairs };
  noShow?: boolean;
}
async function change(participationReference: string, { state = UNSPECIFIED, ...changes }: Change): Promise<Shown> {
  const request = { ...owner, participationReference, state, ignoreCapacity: false, sendMails: true, ...changes };
  return shownIn((await calendar.participations.updateParticipation(request)).json);
}

interface Shown {
  state: string;
  metadata: Pairs | null;
  noShow: boolean;
}
const shownIn = (json: Buffer): Shown => {
  const { state, metadata, noShow } = JSON.parse(json.toString()) as Shown;
  return { state, metadata, noShow };
};
const read = async (participationReference: string): Promise<Shown> =>
  shownIn((await calendar.participations.getParticipation({ ...owner, participationReference })).json);
const readAppointment = async (
  appointmentReference: string,
): Promise<{ metadata: Pairs | null; participations: Shown[] }> =>
  JSON.parse((await calendar.appointments.getAppointment({ ...owner, appointmentReference })).json.toString()) as never;

async function participationsWith(filter: Pairs, noShow?: boolean, limit?: number): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | undefined, isLast = false; !isLast; isLast = cursor === undefined) {
    const request = { ...owner, metadata: { pairs: filter }, noShow, limit, cursor };
    const messages = await Array.fromAsync(calendar.participations.listParticipations(request));
    found.push(
      ...messages.flatMap(({ json }) =>
        (JSON.parse(`[${json.toString()}]`) as { reference: string }[]).map((each) => each.reference),
      ),
    );
    cursor = messages.at(-1)!.nextCursor;
  }
  return found;
}

async function appointmentsWith(filter: Pairs, limit?: number): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | undefined, isLast = false; !isLast; isLast = cursor === undefined) {
    const request = { ...owner, metadata: { pairs: filter }, includeArchived: true, limit, cursor };
    const messages = await Array.fromAsync(calendar.appointments.listAppointments(request));
    found.push(...messages.flatMap(({ json }) => readAppointments(json).map(({ reference }) => reference)));
    cursor = messages.at(-1)!.nextCursor;
  }
  return found;
}

describe('metadata', () => {
  const pairs = { channel: 'phone', 'a.b_c': 'ä\n🦊', aB: '1', a_b: '2' };

  it('is part of the content of an appointment, whatever its order', async () => {
    const embedded = {
      reference: freshReference('embedded'),
      name: 'N',
      email: 'n@a.example',
      state: BOOKED,
      metadata: { pairs },
    };
    const request = newAppointment({ ...owner, metadata: { pairs: { x: '1', y: '2' } }, participations: [embedded] });
    const { json } = await calendar.appointments.createAppointment(request);
    expect(JSON.parse(json.toString())).toMatchObject({
      metadata: { x: '1', y: '2' },
      participations: [{ metadata: pairs, noShow: false }],
    });
    const create = (changes: Partial<CreateAppointmentRequest>) =>
      calendar.appointments.createAppointment({ ...request, ...changes });
    expect((await create({ metadata: { pairs: { y: '2', x: '1' } } })).created).toBe(false);
    for (const changes of [
      { metadata: undefined },
      { metadata: { pairs: { x: '1', y: '3' } } },
      { participations: [{ ...embedded, metadata: { pairs: { ...pairs, aB: '2', a_b: '1' } } }] },
    ])
      expect((await refusal(create(changes))).code).toBe('appointment.reference_taken');
  });

  it('is that of each appointment of a series', async () => {
    const details = { capacity: 1, acceptBookings: false, resourceReference: 'r', productReference: 'p' };
    const span = { spanFrom: '2031-06-03T10:00', spanTo: '2031-06-03T12:00', raster: 60, weekdays: [] };
    const { json } = await calendar.appointments.createSeries({ ...owner, ...details, ...span, metadata: { pairs } });
    expect(readAppointments(json)).toMatchObject([{ metadata: pairs }, { metadata: pairs }]);
  });

  it('of an appointment is kept, replaced or cleared, with an event, and no participant hears of it', async () => {
    const reference = await appoint({ metadata: { pairs } });
    const participation = await book(reference);
    const update = async (changes: object): Promise<unknown> => {
      const request = { ...owner, appointmentReference: reference, noAddress: false, sendMails: true, ...changes };
      return (
        JSON.parse((await calendar.appointments.updateAppointment(request)).json.toString()) as { metadata: unknown }
      ).metadata;
    };
    expect(await update({ notes: 'n' })).toEqual(pairs);
    expect(await update({ metadata: { pairs: { x: '1' } } })).toEqual({ x: '1' });
    expect(await update({ metadata: { pairs: {} } })).toBeNull();
    const { rows } = await sql<{
      revision: number;
    }>`SELECT revision FROM appointment WHERE reference = ${reference}`.execute(calendar.database.kysely);
    expect(rows).toEqual([{ revision: 4 }]);
    expect(await eventsOf(calendar, participation)).toHaveLength(1);
  });

  it('of a participation is kept, replaced or cleared, each with an event and without a mail', async () => {
    const reference = await book(await appoint(), pairs, REQUESTED);
    expect(await read(reference)).toEqual({ state: 'REQUESTED', metadata: pairs, noShow: false });
    expect(await change(reference, { metadata: { pairs: { x: '1' } } })).toMatchObject({ metadata: { x: '1' } });
    expect(await change(reference, { metadata: { pairs: { x: '1' } } })).toMatchObject({ metadata: { x: '1' } });
    expect(await change(reference, { state: BOOKED })).toEqual({
      state: 'BOOKED',
      metadata: { x: '1' },
      noShow: false,
    });
    expect(await change(reference, { state: CANCELED, metadata: { pairs: {} } })).toMatchObject({
      state: 'CANCELED',
      metadata: null,
    });
    expect(await change(reference, { metadata: { pairs: { y: '2' } } })).toMatchObject({
      state: 'CANCELED',
      metadata: { y: '2' },
    });
    const events = await eventsOf(calendar, reference);
    expect(events.map(({ version }) => version)).toEqual([1, 2, 3, 4, 5]);
    expect(events.map(({ notify }) => notify)).toEqual([true, false, true, true, false]);
  });

  it('of one that exists stays, if it is created again', async () => {
    const appointmentReference = await appoint();
    const reference = await book(appointmentReference, pairs);
    const again = {
      ...owner,
      reference,
      appointmentReference,
      customerReference: customer,
      ignoreCapacity: false,
      sendMails: false,
    };
    for (const state of [BOOKED, CANCELED])
      await calendar.participations.createParticipation({
        ...again,
        state,
        onDuplicateRaise: false,
        metadata: { pairs: { other: '1' } },
      });
    expect(await read(reference)).toMatchObject({ state: 'CANCELED', metadata: pairs });
  });

  it('is not what a mail is about: the last one can still be sent again', async () => {
    const reference = await book(await appoint());
    const { id: participationId } = await calendar.participations.getParticipation({
      ...owner,
      participationReference: reference,
    });
    const current = async () =>
      (await calendar.participations.getParticipationMailData({ crmId: owner.crmId, participationId, version: 1 }))
        .currentVersion;
    await change(reference, { metadata: { pairs: { x: '1' } } });
    await change(reference, { metadata: { pairs: { x: '2' } } });
    expect(await current()).toBe(1);
    await change(reference, { state: CANCELED });
    expect(await current()).toBe(4);
    await change(reference, { metadata: { pairs: {} } });
    expect(await current()).toBe(4);
  });

  it('of a booking stays with it as it is held, confirmed and moved', async () => {
    const timeslot = newTimeslot({ start: '2031-06-04T10:00', end: '2031-06-04T12:00' });
    await calendar.timeslots.createTimeslots({ ...owner, timeslots: [timeslot] });
    const placeAt = (time: string) => ({
      $case: 'timeslot' as const,
      value: { timeslotReference: timeslot.reference, start: `2031-06-04T${time}`, productReference: 'p' },
    });
    const state = ParticipationState.RESERVED;
    const request = { ...newBooking(placeAt('10:00'), { state, customer: undefined }), ...owner, metadata: { pairs } };
    const { participation } = await calendar.bookings.bookSlot(request);
    const { reference } = participation;
    expect(await read(reference)).toMatchObject({ state: 'RESERVED', metadata: pairs });
    expect((await calendar.bookings.bookSlot({ ...request, metadata: { pairs: { other: '1' } } })).created).toBe(false);
    const common = { ...owner, participationReference: reference, ignoreNotice: true, sendMails: false };
    await calendar.bookings.changeBooking({ ...common, customer: { $case: 'customerReference', value: customer } });
    expect(await read(reference)).toMatchObject({ state: 'BOOKED', metadata: pairs });
    await calendar.bookings.changeBooking({ ...common, place: placeAt('11:00') });
    expect(await read(reference)).toMatchObject({ state: 'BOOKED', metadata: pairs });
  });

  const seed = Number(process.env['METADATA_SEED'] ?? Date.now() % 1_000_000);
  it(`finds what a plain model finds (METADATA_SEED=${seed})`, async () => {
    const random = createRandom(seed, 0);
    const scope = randomUUID();
    const somePairs = (from: number, to: number): Pairs =>
      Object.fromEntries(
        Array.from({ length: random.integer(from, to) }, () => [
          random.pick(['a', 'b', 'A', 'constructor']),
          random.pick(['1', '2', '1 ', '%']),
        ]),
      );
    const model = { appointments: new Map<string, Pairs>(), participations: new Map<string, Pairs>() };
    for (let index = 0; index < 20; index += 1) {
      const metadata = { ...somePairs(0, 3), scope };
      const time = String(index + 1).padStart(2, '0');
      const appointment = await appoint({
        metadata: { pairs: metadata },
        start: `2031-07-${time}T10:00`,
        end: `2031-07-${time}T11:00`,
      });
      model.appointments.set(appointment, metadata);
      for (let number = random.integer(0, 3); number > 0; number -= 1) {
        const own = { ...somePairs(0, 3), scope };
        model.participations.set(await book(appointment, own), own);
      }
    }
    for (let round = 0; round < 25; round += 1) {
      const changed = random.pick([...model.participations.keys()]);
      model.participations.set(changed, { ...somePairs(0, 3), scope });
      await change(changed, { metadata: { pairs: model.participations.get(changed)! } });
      const wanted = { ...somePairs(1, 2), scope };
      const limit = random.pick([undefined, 1, 4]);
      const expected = (kind: keyof typeof model) =>
        [...model[kind]]
          .filter(([, own]) =>
            Object.entries(wanted).every(([key, value]) => Object.hasOwn(own, key) && own[key] === value),
          )
          .map(([reference]) => reference);
      expect(await appointmentsWith(wanted, limit)).toEqual(expected('appointments'));
      expect(await participationsWith(wanted, undefined, limit)).toEqual(expected('participations'));
    }
    const elsewhere = { crmId: 'one', providerReference: 'p1', metadata: { pairs: { scope } } };
    expect(await Array.fromAsync(calendar.participations.listParticipations(elsewhere))).toMatchObject([
      { json: Buffer.alloc(0) },
    ]);
    const messages = await Array.fromAsync(
      calendar.appointments.listAppointments({ ...elsewhere, includeArchived: true }),
    );
    expect(messages.every(({ json }) => json.length === 0)).toBe(true);
  });
});

describe('a no-show', () => {
  const codeOf = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).code;

  it('is marked from the start on, by the clock of the CRM, and taken back', async () => {
    const reference = await book(await appoint(), { x: '1' });
    await setClock(before);
    const early = await refusal(change(reference, { noShow: true }));
    expect(early).toMatchObject({ category: 'conflict', code: 'participation.not_started' });
    expect(early.message).toContain('2031-06-02T08:00:00Z');
    expect(await change(reference, { noShow: false })).toMatchObject({ noShow: false });
    await setClock(start);
    for (const noShow of [true, true, false, true])
      expect(await change(reference, { noShow })).toEqual({ state: 'BOOKED', metadata: { x: '1' }, noShow });
    expect((await eventsOf(calendar, reference)).map(({ version, notify }) => [version, notify])).toEqual([
      [1, true],
      [2, false],
      [3, false],
      [4, false],
    ]);
    expect(await participationsWith({ x: '1' }, true)).toContain(reference);
    expect(await participationsWith({ x: '1' }, false)).not.toContain(reference);
  });

  it('is only of one that is BOOKED, also after the change in the same request', async () => {
    await setClock(start);
    const appointment = await appoint();
    const requested = await book(appointment, undefined, REQUESTED);
    expect(await codeOf(change(requested, { noShow: true }))).toBe('participation.not_booked');
    expect(await codeOf(change(requested, { state: CANCELED, noShow: true }))).toBe('participation.not_booked');
    expect(await change(requested, { state: BOOKED, noShow: true })).toMatchObject({ state: 'BOOKED', noShow: true });
    expect(await codeOf(change(requested, { state: DELETED, noShow: true }))).toBe('participation.not_booked');
    expect(await read(requested)).toMatchObject({ state: 'BOOKED', noShow: true });
  });

  it.each([
    ['it is cancelled', (reference: string) => change(reference, { state: CANCELED })],
    ['it is deleted', (reference: string) => change(reference, { state: DELETED })],
    [
      'its appointment is cancelled',
      (_: string, appointmentReference: string) =>
        calendar.appointments.cancelAppointment({ ...owner, appointmentReference }),
    ],
    [
      'its appointment begins later',
      (_: string, appointmentReference: string) =>
        calendar.appointments.updateAppointment({
          ...owner,
          appointmentReference,
          noAddress: false,
          sendMails: false,
          start: '2031-06-02T10:30',
        }),
    ],
  ])('is over when %s', async (_, end) => {
    await setClock(start);
    const appointment = await appoint();
    const reference = await book(appointment);
    await change(reference, { noShow: true });
    await end(reference, appointment);
    expect((await read(reference)).noShow).toBe(false);
  });

  it('is over when it moves to another time', async () => {
    const timeslot = newTimeslot({ start: '2031-06-02T10:00', end: '2031-06-02T12:00' });
    await calendar.timeslots.createTimeslots({ ...owner, timeslots: [timeslot] });
    const placeAt = (time: string) => ({
      $case: 'timeslot' as const,
      value: { timeslotReference: timeslot.reference, start: `2031-06-02T${time}`, productReference: 'p' },
    });
    await setClock(before);
    const request = {
      ...newBooking(placeAt('10:00'), { state: BOOKED, customer: { $case: 'customerReference', value: customer } }),
      ...owner,
    };
    const { reference } = (await calendar.bookings.bookSlot({ ...request, ignoreNotice: true })).participation;
    await setClock(start);
    await change(reference, { noShow: true });
    await calendar.bookings.changeBooking({
      ...owner,
      participationReference: reference,
      ignoreNotice: true,
      sendMails: false,
      place: placeAt('11:00'),
    });
    expect(await read(reference)).toMatchObject({ state: 'BOOKED', noShow: false });
  });

  it('is never left on one that is not BOOKED, whatever happens at the same time', async () => {
    await setClock(start);
    const appointment = await appoint();
    for (let round = 0; round < 15; round += 1) {
      const reference = await book(appointment);
      await Promise.allSettled([
        change(reference, { noShow: true }),
        change(reference, { state: CANCELED }),
        change(reference, { noShow: true }),
      ]);
      expect(await read(reference)).toMatchObject({ state: 'CANCELED', noShow: false });
    }
    await expect(
      sql`UPDATE participation SET no_show = true WHERE state = 'CANCELED'`.execute(calendar.database.kysely),
    ).rejects.toThrow('participation_no_show_check');
  });
});

describe('an erasure', () => {
  it('removes what is noted of a booking, and nothing can be noted any more', async () => {
    await setClock(start);
    const customerReference = await createCustomer(calendar, owner);
    const appointmentReference = await appoint({ metadata: { pairs: { kept: '1' } } });
    const reference = freshReference('participation');
    const secret = randomUUID();
    const flags = { ignoreCapacity: false, onDuplicateRaise: false, sendMails: false };
    const metadata = { pairs: { secret } };
    await calendar.participations.createParticipation({
      ...owner,
      reference,
      appointmentReference,
      customerReference,
      state: BOOKED,
      ...flags,
      metadata,
    });
    await change(reference, { noShow: true });
    await setClock(new Date('2031-06-03T00:00:00Z'));
    const { id } = await calendar.participations.getParticipation({ ...owner, participationReference: reference });
    const { rows } = await sql<{
      customer_id: string;
      customerId: string;
    }>`SELECT customer_id FROM participation WHERE id = ${id}`.execute(calendar.database.kysely);
    const writing = Array.from({ length: 5 }, (_, index) =>
      change(reference, { metadata: { pairs: { secret: `${secret} ${index}` } } }),
    );
    await Promise.allSettled([
      ...writing,
      calendar.removals.removeCustomer({
        crmId: owner.crmId,
        customerId: rows[0]!.customerId,
        ignoreFutureAppointments: true,
      }),
    ]);
    const anonymous = `anonymous-${id}`;
    expect(await read(anonymous)).toEqual({ state: 'BOOKED', metadata: null, noShow: false });
    expect((await readAppointment(appointmentReference)).metadata).toEqual({ kept: '1' });
    for (const noted of [{ metadata: { pairs: { secret } } }, { noShow: true }])
      expect((await refusal(change(anonymous, noted))).code).toBe('participation.anonymous');
    expect(await change(anonymous, { metadata: { pairs: {} }, noShow: false })).toMatchObject({ metadata: null });
    expect(await participationsWith({ secret })).toEqual([]);
  });
});
