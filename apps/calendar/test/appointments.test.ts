import {
  type CreateAppointmentRequest,
  type ListAppointmentsRequest,
  ParticipationState,
  TimeslotState,
} from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause } from '@scheduling/contracts/events/v1';
import type { DomainError } from '@scheduling/errors';
import { events } from '@scheduling/events';
import { patiently } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AppointmentJson } from './parsed-answers.ts';
import {
  type Calendar,
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  eventsOf,
  freshReference,
  listAppointments,
  newAppointment,
  newParticipation,
  owned,
  readAppointments,
  refusal,
  seatsOf,
  startCalendar,
} from './calendar-under-test.ts';

let calendar: CalendarUnderTest;

beforeAll(async () => {
  calendar = await startCalendar();
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

function embedded(state: keyof typeof ParticipationState, reference = freshReference('embedded')) {
  return {
    reference,
    name: 'Ada',
    email: 'ada@example.com',
    mobile: '+49 1',
    note: 'window seat',
    state: ParticipationState[state],
  };
}

async function list(
  query: Partial<ListAppointmentsRequest> = {},
  replica: Calendar = calendar,
): Promise<AppointmentJson[]> {
  return listAppointments(replica, { ...owned, includeArchived: false, ...query });
}

const references = (appointments: AppointmentJson[]) => appointments.map((appointment) => appointment.reference);

describe('creating an appointment', () => {
  it('returns it with all fields', async () => {
    const participations = [embedded('BOOKED'), embedded('REQUESTED')];
    const request = newAppointment({
      capacity: 3,
      acceptBookings: true,
      contactReference: 'contact@test',
      description: 'Consultation',
      notes: 'bring papers',
      address: { kind: { $case: 'text', value: 'https://video.example' } },
      price: { value: 12.1, currency: 'CHF' },
      participations,
    });
    const { json, created } = await calendar.appointments.createAppointment(request);
    expect(created).toBe(true);
    expect(readAppointments(json)).toEqual([
      {
        reference: request.reference,
        acceptBookings: true,
        address: 'https://video.example',
        archived: false,
        capacity: 3,
        contactReference: 'contact@test',
        description: 'Consultation',
        start: '2099-06-01T08:00:00Z',
        end: '2099-06-01T09:00:00Z',
        notes: 'bring papers',
        participations: participations.map((participation, index) => ({
          ...participation,
          state: ['BOOKED', 'REQUESTED'][index],
          appointmentReference: request.reference,
          customerReference: null,
          messages: null,
          metadata: null,
          noShow: false,
        })),
        price: { value: 12.1, currency: 'CHF' },
        productReference: 'product@test',
        resourceReference: 'resource@test',
        seriesId: null,
        metadata: null,
        state: 'ACTIVE',
      },
    ]);
  });

  it.each<[string, Partial<CreateAppointmentRequest>]>([
    ['only what is required', {}],
    [
      'every field',
      {
        acceptBookings: true,
        contactReference: 'contact@test',
        description: 'Yoga',
        notes: '',
        address: { kind: { $case: 'text', value: 'Room 1' } },
      },
    ],
    [
      'an address with some fields',
      { address: { kind: { $case: 'address', value: { street: 'Weg', city: 'Basel' } } } },
    ],
    ['a price with many digits', { price: { value: -0.30000000000000004, currency: 'EUR' } }],
    ['a small price', { price: { value: 1e-7, currency: 'EUR' } }],
    ['seconds and an offset', { start: '2099-06-01T10:00:59+05:30', end: '9998-12-31T23:59:59Z' }],
    ['an end that is long ago', { start: '1900-01-01T00:00', end: '1900-01-01T00:01' }],
    [
      'participations',
      {
        participations: [
          embedded('RESERVED'),
          embedded('BOOKED'),
          { ...embedded('REQUESTED'), mobile: undefined, note: '' },
          embedded('CANCELED'),
          embedded('DELETED'),
        ],
      },
    ],
    ['many participations', { participations: Array.from({ length: 500 }, () => embedded('BOOKED')) }],
  ])('with %s returns what a list contains afterwards', async (_what, overrides) => {
    const productReference = freshReference('product');
    const { json, created } = await calendar.appointments.createAppointment(
      newAppointment({ productReference, ...overrides }),
    );
    expect(created).toBe(true);
    expect(await list({ productReference, includeArchived: true })).toEqual(readAppointments(json));
  });

  it('places embedded participations deliberately: never rejected, counted as taken, no mail', async () => {
    const participations = [
      embedded('BOOKED'),
      embedded('RESERVED'),
      embedded('REQUESTED'),
      embedded('CANCELED'),
      embedded('DELETED'),
    ];
    const request = newAppointment({ capacity: 1, participations });
    const { json } = await calendar.appointments.createAppointment(request);
    expect(await seatsOf(calendar, request.reference)).toBe(2);
    expect(readAppointments(json)[0]!.participations[1]!.expiresAt).toMatch(/Z$/);
    for (const { reference, state } of participations) {
      expect(await eventsOf(calendar, reference)).toMatchObject([
        { version: 1, cause: ParticipationChangeCause.CREATED, toState: state, notify: false, silent: true },
      ]);
    }
    const confirm = {
      ...owned,
      participationReference: participations[2]!.reference,
      state: ParticipationState.BOOKED,
    };
    await calendar.participations.updateParticipation({ ...confirm, ignoreCapacity: false, sendMails: true });
    expect(await seatsOf(calendar, request.reference)).toBe(3);
    const customerReference = await createCustomer(calendar);
    const booking = newParticipation({ appointmentReference: request.reference, customerReference });
    expect((await refusal(calendar.participations.createParticipation(booking))).code).toBe(
      'participation.capacity_exhausted',
    );
  });

  it('again with the same content returns the existing one, with other content is rejected', async () => {
    const request = newAppointment({ participations: [embedded('BOOKED')] });
    await calendar.appointments.createAppointment(request);
    await calendar.appointments.cancelAppointment({ ...owned, appointmentReference: request.reference });
    const again = await calendar.appointments.createAppointment({ ...request, start: '2099-06-01T08:00:00Z' });
    expect(again.created).toBe(false);
    expect(readAppointments(again.json)).toMatchObject([{ state: 'CANCELLED' }]);
    expect(await eventsOf(calendar, request.participations[0]!.reference)).toHaveLength(2);
    for (const change of [{ capacity: 7 }, { notes: 'other' }, { participations: [] }, { providerReference: 'p2' }]) {
      expect(await refusal(calendar.appointments.createAppointment({ ...request, ...change }))).toMatchObject({
        category: 'conflict',
        code: 'appointment.reference_taken',
      });
    }
    expect(
      await calendar.appointments.createAppointment({ ...request, crmId: 'two', participations: [] }),
    ).toMatchObject({ created: true });
  });

  it('of one reference happens once for twenty concurrent requests', async () => {
    const request = newAppointment({ participations: [embedded('BOOKED'), embedded('BOOKED')] });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => patiently(() => calendar.appointments.createAppointment(request))),
    );
    expect(answers.filter((answer) => answer.created)).toHaveLength(1);
    expect(await seatsOf(calendar, request.reference)).toBe(2);
  });

  it.each(['one replica', 'two replicas'])(
    'with the same participations in other orders happens once in %s',
    async (where) => {
      await using other = await calendar.startReplica();
      const replicas = where === 'one replica' ? [calendar] : [calendar, other];
      for (let round = 0; round < 5; round += 1) {
        const participations = Array.from({ length: 50 }, () => embedded('BOOKED'));
        const orders = [
          participations,
          participations.toReversed(),
          participations.toSorted((a, b) => (a.reference < b.reference ? -1 : 1)),
        ];
        const requests = [...orders, ...orders].map((order) => newAppointment({ participations: order }));
        const calls = requests.map((request, index) =>
          replicas[index % replicas.length]!.appointments.createAppointment(request),
        );
        const codes = (await Promise.allSettled(calls)).map((result) =>
          result.status === 'fulfilled' ? 'created' : (result.reason as DomainError).code,
        );
        expect(codes.toSorted()).toEqual([
          'created',
          ...Array.from({ length: 5 }, () => 'participation.reference_taken'),
        ]);
      }
    },
  );

  it('that is rejected does not affect those that are created at the same moment', async () => {
    const taken = embedded('BOOKED');
    await createAppointment(calendar, { participations: [taken] });
    const others = Array.from({ length: 5 }, () => newAppointment({ participations: [embedded('BOOKED')] }));
    const requests = [...others, newAppointment({ participations: [taken] }), newAppointment({ notes: 'a\0b' })];
    const answers = await Promise.allSettled(
      requests.map((request) => calendar.appointments.createAppointment(request)),
    );
    expect(answers.slice(0, others.length)).toMatchObject(others.map(() => ({ value: { created: true } })));
    expect(answers.slice(others.length)).toMatchObject([
      { reason: { code: 'participation.reference_taken' } },
      { reason: { code: 'text.invalid' } },
    ]);
    for (const { participations } of others)
      expect(await eventsOf(calendar, participations[0]!.reference)).toHaveLength(1);
  });

  it('with an existing participation creates nothing', async () => {
    const taken = embedded('BOOKED');
    await createAppointment(calendar, { participations: [taken] });
    const request = newAppointment({ participations: [embedded('BOOKED'), taken] });
    expect(await refusal(calendar.appointments.createAppointment(request))).toMatchObject({
      category: 'conflict',
      code: 'participation.reference_taken',
    });
    expect(references(await list())).not.toContain(request.reference);
  });

  it('reports every invalid field', async () => {
    const twice = embedded('BOOKED');
    const { category, code, errors } = await refusal(
      calendar.appointments.createAppointment(
        newAppointment({ end: '2099-06-01T10:00', participations: [twice, twice] }),
      ),
    );
    expect({ category, code }).toEqual({ category: 'invalid', code: 'appointment.invalid' });
    expect(errors.map((error) => error.pointer)).toEqual(['/end', '/participations/1/reference']);
    const stateless = newAppointment({ participations: [{ ...twice, state: ParticipationState.UNSPECIFIED }] });
    expect((await refusal(calendar.appointments.createAppointment(stateless))).errors).toMatchObject([
      { pointer: '/participations/0/state' },
    ]);
  });

  it('interprets local times in the zone of the provider', async () => {
    const request = newAppointment({ providerReference: 'Asia/Kolkata' });
    const { json } = await calendar.appointments.createAppointment(request);
    expect(readAppointments(json)[0]!.start).toBe('2099-06-01T04:30:00Z');
  });
});

describe('after the provider has changed, creating an appointment', () => {
  const inBerlin = { start: '2099-06-01T10:00', end: '2099-06-01T11:00' };
  /** 02:30 does not exist in Berlin on this day, and means 03:30. */
  const inGap = { start: '2099-03-29T02:30', end: '2099-03-29T03:15' };

  it.each([
    ['interprets local times in the new zone', inBerlin, '2099-06-01T04:30:00Z'],
    ['does not reject times that the old zone skips', inGap, '2099-03-28T21:00:00Z'],
  ])('%s', async (_what, times, start) => {
    const [providerReference, version] = [freshReference('provider'), 2];
    await calendar.identity.createProvider({
      crmId: 'one',
      reference: providerReference,
      ownerReference: 'owner@crm',
      accountReference: 'account@crm',
      name: 'Name',
      timeZone: 'Europe/Berlin',
    });
    const { json: before } = await calendar.appointments.createAppointment(
      newAppointment({ providerReference, ...inBerlin }),
    );
    expect(readAppointments(before)[0]!.start).toBe('2099-06-01T08:00:00Z');
    const invalid = newAppointment({ providerReference, ...inGap });
    expect((await refusal(calendar.appointments.createAppointment(invalid))).errors).toMatchObject([
      { pointer: '/end' },
    ]);

    await calendar.database.kysely
      .updateTable('provider')
      .set({ timeZone: 'Asia/Kolkata', version })
      .where('reference', '=', providerReference)
      .execute();
    const { json: after } = await calendar.appointments.createAppointment(
      newAppointment({ providerReference, ...times }),
    );
    expect(readAppointments(after)[0]!.start).toBe(start);
  });
});

describe('after the provider has changed, a list', () => {
  type Query = Pick<ListAppointmentsRequest, 'crmId' | 'providerReference'> & {
    resourceReference: string;
    from: string;
    to: string;
  };

  it.each<[what: string, list: (query: Query) => Promise<unknown[]>]>([
    ['of appointments', list],
    ['of timeslots', async (query) => (await calendar.timeslots.listTimeslots(query)).timeslots],
  ])('%s interprets local times in the new zone', async (_what, listIn) => {
    const [providerReference, resourceReference] = [freshReference('provider'), freshReference('resource')];
    await calendar.identity.createProvider({
      crmId: 'one',
      reference: providerReference,
      ownerReference: 'owner@crm',
      accountReference: 'account@crm',
      name: 'Name',
      timeZone: 'Europe/Berlin',
    });
    const scope = { crmId: 'one', providerReference };
    const window = { resourceReference, start: '2099-06-01T08:00:00Z', end: '2099-06-01T09:00:00Z' };
    const timeslot = {
      ...window,
      raster: 30,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
      state: TimeslotState.BOOKABLE,
    };
    await calendar.timeslots.createTimeslots({ ...scope, timeslots: [timeslot] });
    await calendar.appointments.createAppointment(newAppointment({ providerReference, ...window }));
    const query = { ...scope, resourceReference, from: '2099-06-01T10:00', to: '2099-06-01T11:00' };
    expect(await listIn(query)).toHaveLength(1);
    await calendar.database.kysely
      .updateTable('provider')
      .set({ timeZone: 'Asia/Kolkata', version: 2 })
      .where('reference', '=', providerReference)
      .execute();
    expect(await listIn(query)).toEqual([]);
  });
});

describe('the list of appointments', () => {
  it('filters by product, resource and period, and is ordered by start', async () => {
    const at = (start: string, end: string, productReference: string, resourceReference: string) =>
      createAppointment(calendar, { start, end, productReference, resourceReference });
    const late = await at('2098-01-01T12:00', '2098-01-01T13:00', 'pa', 'ra');
    const early = await at('2098-01-01T10:00', '2098-01-01T11:00', 'pa', 'rb');
    const middle = await at('2098-01-01T11:00', '2098-01-01T12:00', 'pb', 'ra');
    const period = { from: '2098-01-01T10:00', to: '2098-01-01T13:00' };
    expect(references(await list(period))).toEqual([early, middle, late]);
    expect(references(await list({ ...period, productReference: 'pa' }))).toEqual([early, late]);
    expect(references(await list({ ...period, resourceReference: 'ra' }))).toEqual([middle, late]);
    expect(references(await list({ ...period, productReference: 'pa', resourceReference: 'ra' }))).toEqual([late]);
    expect(references(await list({ from: '2098-01-01T11:00', to: '2098-01-01T12:00' }))).toEqual([middle]);
    expect(references(await list({ ...period, providerReference: 'p2' }))).toEqual([]);
    expect(references(await list({ ...period, crmId: 'two' }))).toEqual([]);
  });

  it('is split into pages that together are the whole list', async () => {
    const productReference = freshReference('product');
    const made = await Promise.all(Array.from({ length: 7 }, () => createAppointment(calendar, { productReference })));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const query = { ...owned, includeArchived: false, productReference, limit: 3, cursor };
      const parts = await Array.fromAsync(calendar.appointments.listAppointments(query));
      seen.push(...references(parts.flatMap((part) => readAppointments(part.json))));
      cursor = parts.at(-1)!.nextCursor;
    } while (cursor !== undefined);
    expect(seen).toEqual(references(await list({ productReference })));
    expect(seen.toSorted()).toEqual(made.toSorted());
  });

  it('rejects a period that ends before it begins, and an invalid cursor', async () => {
    const faults = await refusal(list({ from: '2099-06-02T00:00', to: '2099-06-01T00:00', cursor: 'z' }));
    expect(faults.errors.map((error) => error.pointer)).toEqual(['/to', '/cursor']);
    expect((await refusal(list({ from: '2098-01-02T00:00', to: '2098-01-01T00:00' }))).errors).toMatchObject([
      { pointer: '/to' },
    ]);
  });

  it('omits what ended longer ago than the configured time, unless requested', async () => {
    const productReference = freshReference('product');
    const dayMs = 24 * 60 * 60 * 1_000;
    const ended = (agoMs: number) => {
      const end = Date.now() - agoMs;
      const text = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
      return createAppointment(calendar, { productReference, start: text(end - 60_000), end: text(end) });
    };
    const [old, recent] = [await ended(365 * dayMs + 60_000), await ended(365 * dayMs - 60_000)];
    expect(references(await list({ productReference }))).toEqual([recent]);
    const all = await list({ productReference, includeArchived: true });
    expect(all.map(({ reference, archived }) => [reference, archived])).toEqual([
      [old, true],
      [recent, false],
    ]);
    await using later = await calendar.startReplica({ ARCHIVE_AFTER_DAYS: '366' });
    expect(references(await list({ productReference }, later))).toEqual([old, recent]);
  });

  it('stops early when the caller disconnects', async () => {
    const productReference = freshReference('product');
    for (let index = 0; index < 120; index += 1) await createAppointment(calendar, { productReference });
    const gone = new AbortController();
    let parts = 0;
    const call = async () => {
      for await (const { json } of calendar.appointments.listAppointments(
        { ...owned, includeArchived: false, productReference },
        gone.signal,
      )) {
        parts += json.length > 0 ? 1 : 0;
        gone.abort();
      }
    };
    expect((await refusal(call())).category).toBe('unavailable');
    expect(parts).toBe(1);
    expect(await list({ productReference })).toHaveLength(120);
  });

  it('includes an appointment whose participations exceed one message, along with the others', async () => {
    const productReference = freshReference('product');
    const bulky = () => Array.from({ length: 500 }, () => ({ ...embedded('BOOKED'), note: 'n'.repeat(1_024) }));
    for (let index = 0; index < 6; index += 1)
      await createAppointment(calendar, { productReference, participations: bulky() });
    const listed = await list({ productReference });
    expect(listed.map((appointment) => appointment.participations.length)).toEqual([500, 500, 500, 500, 500, 500]);
  });
});

describe('cancelling an appointment', () => {
  it('cancels every participation, and notifies those with an active one exactly once', async () => {
    const participations = [
      embedded('BOOKED'),
      embedded('RESERVED'),
      embedded('REQUESTED'),
      embedded('CANCELED'),
      embedded('DELETED'),
    ];
    const appointmentReference = await createAppointment(calendar, { participations });
    const cancel = { ...owned, appointmentReference, message: 'Sorry' };
    const answer = await calendar.appointments.cancelAppointment(cancel);
    const [appointment] = readAppointments(answer.json);
    expect(appointment).toMatchObject({ state: 'CANCELLED' });
    expect(appointment!.participations.map(({ state }) => state)).toEqual(participations.map(() => 'CANCELED'));
    expect(appointment!.participations.map(({ messages }) => messages)).toEqual([
      ['Sorry'],
      ['Sorry'],
      ['Sorry'],
      null,
      null,
    ]);
    expect(await seatsOf(calendar, appointmentReference)).toBe(0);

    expect(await calendar.appointments.cancelAppointment(cancel)).toEqual(answer);
    const events = await Promise.all(participations.map(({ reference }) => eventsOf(calendar, reference)));
    const cause = ParticipationChangeCause.APPOINTMENT_CANCELLED;
    const toState = ParticipationState.CANCELED;
    expect(events.map((each) => each.slice(1))).toMatchObject([
      [{ version: 2, cause, toState, fromState: ParticipationState.BOOKED, notify: true, silent: false }],
      [{ version: 2, cause, toState, fromState: ParticipationState.RESERVED, notify: true, silent: false }],
      [{ version: 2, cause, toState, fromState: ParticipationState.REQUESTED, notify: true, silent: false }],
      [],
      [{ version: 2, cause, toState, fromState: ParticipationState.DELETED, notify: false, silent: true }],
    ]);
    const notice = { crmId: 'one', participationId: events[0]![0]!.participationId, version: 2 };
    expect(await calendar.participations.getParticipationMailData(notice)).toMatchObject({
      message: 'Sorry',
    });
  });

  it('happens once for twenty concurrent requests, while others book', async () => {
    const appointmentReference = await createAppointment(calendar, {
      capacity: 100,
      participations: [embedded('BOOKED')],
    });
    const customerReference = await createCustomer(calendar);
    const bookings = Array.from({ length: 20 }, () => newParticipation({ appointmentReference, customerReference }));
    await Promise.all([
      ...bookings.map((booking) => calendar.participations.createParticipation(booking).catch(() => undefined)),
      ...Array.from({ length: 20 }, () =>
        patiently(() => calendar.appointments.cancelAppointment({ ...owned, appointmentReference })),
      ),
    ]);
    const cancelled = (await list()).find((appointment) => appointment.reference === appointmentReference);
    expect(new Set(cancelled!.participations.map(({ state }) => state))).toEqual(new Set(['CANCELED']));
    expect(await seatsOf(calendar, appointmentReference)).toBe(0);
    for (const { reference } of cancelled!.participations) expect(await eventsOf(calendar, reference)).toHaveLength(2);
  });

  it('never affects another provider or CRM', async () => {
    const appointmentReference = await createAppointment(calendar);
    const absent = await refusal(calendar.appointments.cancelAppointment({ ...owned, appointmentReference: 'absent' }));
    expect(absent).toMatchObject({ category: 'not_found', code: 'appointment.not_found' });
    for (const owner of [
      { crmId: 'one', providerReference: 'p2' },
      { crmId: 'two', providerReference: 'p1' },
    ]) {
      expect(await refusal(calendar.appointments.cancelAppointment({ ...owner, appointmentReference }))).toEqual(
        absent,
      );
    }
  });
});

describe('deleting appointments without notification', () => {
  it('removes one with its participations and notifies nobody', async () => {
    const participation = embedded('BOOKED');
    const request = newAppointment({ participations: [participation] });
    await calendar.appointments.createAppointment(request);
    const [created] = await eventsOf(calendar, participation.reference);
    const changes = calendar.database.kysely
      .selectFrom('outbox')
      .select('id')
      .where('subject', '=', events.participationChanged.subject);
    const before = await changes.execute();
    const remove = { ...owned, target: { $case: 'appointmentReference' as const, value: request.reference } };
    await calendar.appointments.deleteAppointments(remove);
    expect(references(await list())).not.toContain(request.reference);
    expect(await changes.execute()).toHaveLength(before.length);
    expect((await refusal(calendar.appointments.deleteAppointments(remove))).code).toBe('appointment.not_found');
    const notice = { crmId: 'one', participationId: created!.participationId, version: 1 };
    expect((await refusal(calendar.participations.getParticipationMailData(notice))).code).toBe(
      'participation.not_found',
    );
    expect(await calendar.appointments.createAppointment(request)).toMatchObject({ created: true });
  });

  it('rejects an empty request, an unknown series, and what another provider owns', async () => {
    const value = await createAppointment(calendar);
    const remove = (request: object) => refusal(calendar.appointments.deleteAppointments({ ...owned, ...request }));
    expect((await remove({})).category).toBe('invalid');
    expect((await remove({ target: { $case: 'seriesId', value: 'absent' } })).code).toBe('series.not_found');
    expect((await remove({ providerReference: 'p2', target: { $case: 'appointmentReference', value } })).code).toBe(
      'appointment.not_found',
    );
    expect((await remove({ crmId: 'two', target: { $case: 'appointmentReference', value } })).code).toBe(
      'appointment.not_found',
    );
  });
});

it('causes no deadlock', async () => {
  expect(await calendar.countDeadlocks()).toBe(0);
});
