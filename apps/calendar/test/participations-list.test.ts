import {
  AppointmentState,
  type ListParticipationsRequest,
  ParticipationState,
} from '@scheduling/contracts/calendar/v1';
import { readFunction } from '@scheduling/postgres';
import { patiently } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Calendar,
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  freshReference,
  listAppointments,
  newParticipation,
  owned,
  refusal,
  startCalendar,
} from './calendar-under-test.ts';

const { BOOKED, CANCELED, DELETED, REQUESTED, RESERVED } = ParticipationState;

interface Listed {
  reference: string;
  state: string;
}

let calendar: CalendarUnderTest;
let customerReference: string;

beforeAll(async () => {
  calendar = await startCalendar({ RESERVATION_SWEEPER: 'off' });
  customerReference = await createCustomer(calendar);
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

async function listPage(
  query: Partial<ListParticipationsRequest>,
  replica: Calendar = calendar,
): Promise<{ listed: Listed[]; nextCursor: string | undefined }> {
  const messages = await patiently(() =>
    Array.fromAsync(replica.participations.listParticipations({ ...owned, ...query })),
  );
  const texts = messages.map(({ json }) => json.toString()).filter((text) => text !== '');
  return { listed: JSON.parse(`[${texts.join(',')}]`) as Listed[], nextCursor: messages.at(-1)!.nextCursor };
}

async function list(query: Partial<ListParticipationsRequest> = {}, replica?: Calendar): Promise<string[]> {
  const { listed, nextCursor } = await listPage(query, replica);
  expect(nextCursor).toBeUndefined();
  return listed.map(({ reference }) => reference);
}

/** Every page but the last is full. */
async function listPages(
  query: Partial<ListParticipationsRequest> & { limit: number },
  between: () => Promise<unknown> = async () => {},
): Promise<string[]> {
  const seen: string[] = [];
  for (let cursor: string | undefined; ; await between()) {
    const { listed, nextCursor } = await listPage({ ...query, cursor });
    seen.push(...listed.map(({ reference }) => reference));
    if (nextCursor === undefined) return seen;
    expect(listed).toHaveLength(query.limit);
    cursor = nextCursor;
  }
}

/** On a day that no other test uses. */
const days = Array.from({ length: 28 }, (_, index) => `2097-02-${String(index + 1).padStart(2, '0')}`).values();

interface Day {
  /** The filter for its appointments. */
  period: { from: string; to: string };
  appointmentAt(hour: number): Promise<string>;
}

function freshDay(): Day {
  const day = days.next().value!;
  const at = (hour: number): string => `${day}T${String(hour).padStart(2, '0')}:00`;
  return {
    period: { from: at(0), to: at(23) },
    appointmentAt: (hour) =>
      createAppointment(calendar, {
        start: at(hour),
        end: at(hour + 1),
        capacity: 100,
        resourceReference: freshReference('resource'),
      }),
  };
}

async function book(
  appointmentReference: string,
  state: ParticipationState = BOOKED,
  customer = customerReference,
): Promise<string> {
  const request = newParticipation({ appointmentReference, customerReference: customer }, { state, sendMails: false });
  await patiently(() => calendar.participations.createParticipation(request));
  return request.reference;
}

async function customerIdOf(reference: string): Promise<string> {
  const { id } = await calendar.database.kysely
    .selectFrom('customer')
    .select('id')
    .where('reference', '=', reference)
    .executeTakeFirstOrThrow();
  return id;
}

function move(participationReference: string, state: ParticipationState) {
  return calendar.participations.updateParticipation({
    ...owned,
    participationReference,
    state,
    ignoreCapacity: false,
    sendMails: false,
  });
}

async function databaseNow(): Promise<string> {
  const { rows } = await sql<{ now: Date }>`SELECT scheduling_now() AS now`.execute(calendar.database.kysely);
  return new Date(rows[0]!.now.getTime() + 1).toISOString();
}

describe('the list of participations', () => {
  it('contains what the appointment contains, by start, then by appointment, in order of creation', async () => {
    const { period, appointmentAt } = freshDay();
    const [late, early, alsoEarly] = [await appointmentAt(12), await appointmentAt(9), await appointmentAt(9)];
    for (const state of [BOOKED, RESERVED, REQUESTED]) {
      for (const appointment of [late, alsoEarly, early]) await book(appointment, state);
    }
    const { listed } = await listPage(period);
    expect(listed).toHaveLength(9);
    const appointments = await listAppointments(calendar, { ...owned, ...period, includeArchived: true });
    expect(appointments.map(({ start }) => start.slice(11, 13))).toEqual(['08', '08', '11']);
    expect(listed).toEqual(appointments.flatMap(({ participations }) => participations));
    expect(listed.map((each) => 'expiresAt' in each)).toEqual(listed.map(({ state }) => state === 'RESERVED'));
  });

  it('is filtered by customer, state and period of the appointment', async () => {
    const { period, appointmentAt } = freshDay();
    const other = await createCustomer(calendar);
    const [morning, noon] = [await appointmentAt(9), await appointmentAt(12)];
    const own = [await book(morning), await book(noon, REQUESTED)];
    const others = [await book(morning, REQUESTED, other), await book(noon, BOOKED, other)];
    const day = period.from.slice(0, 10);
    expect(await list(period)).toEqual([own[0], others[0], own[1], others[1]]);
    expect(await list({ ...period, customerReference })).toEqual(own);
    expect(await list({ customerReference: other })).toEqual(others);
    expect(await list({ ...period, state: REQUESTED })).toEqual([others[0], own[1]]);
    expect(await list({ ...period, state: REQUESTED, customerReference: other })).toEqual([others[0]]);
    expect(await list({ ...period, state: DELETED })).toEqual([]);
    expect(await list({ ...period, from: `${day}T10:00` })).toEqual([own[1], others[1]]);
    expect(await list({ ...period, to: `${day}T12:00` })).toEqual([own[0], others[0]]);
    expect(await list({ customerReference: other, from: `${day}T10:00`, to: `${day}T12:01` })).toEqual([others[1]]);
    expect(await list({ customerReference: other, to: `${day}T12:00` })).toEqual([others[0]]);
    expect(await list({ customerReference: 'unknown@test' })).toEqual([]);
  });

  it('contains neither those of another provider nor those of another CRM', async () => {
    const { period, appointmentAt } = freshDay();
    const reference = await book(await appointmentAt(9));
    expect(await list(period)).toEqual([reference]);
    for (const scope of [{ providerReference: 'p2' }, { crmId: 'two' }]) {
      expect(await list({ ...scope, ...period })).toEqual([]);
      expect(await list({ ...scope, customerReference })).toEqual([]);
    }
    expect(await refusal(list({ providerReference: 'unknown' }))).toMatchObject({ code: 'provider.not_found' });
  });

  it('does not contain expired reservations', async () => {
    const { period, appointmentAt } = freshDay();
    const appointmentReference = await appointmentAt(9);
    const other = await createCustomer(calendar);
    const [reserved, booked] = [
      await book(appointmentReference, RESERVED, other),
      await book(appointmentReference, BOOKED, other),
    ];
    await using later = await calendar.startReplicaAt('181 seconds', { RESERVATION_SWEEPER: 'off' });
    for (const query of [period, { customerReference: other }]) {
      expect(await list(query)).toEqual([reserved, booked]);
      expect(await list(query, later)).toEqual([booked]);
    }
    expect(await list({ ...period, state: RESERVED }, later)).toEqual([]);
  });

  it('rejects a period that ends before it begins, a cursor that is none, and a state that it does not know', async () => {
    const day = { from: '2097-03-02T00:00', to: '2097-03-01T00:00' };
    const fault = await refusal(list({ ...day, cursor: 'z' }));
    expect([fault.code, ...fault.errors.map(({ pointer }) => pointer)]).toEqual([
      'participation.invalid',
      '/to',
      '/cursor',
    ]);
    const { nextCursor } = await firstOfTwo();
    for (const cursor of [
      `${nextCursor!}x`,
      `${nextCursor!}.x`,
      nextCursor!.split('.')[0]!,
      `.${nextCursor!.split('.')[1]!}`,
    ]) {
      expect((await refusal(list({ cursor }))).errors).toMatchObject([{ pointer: '/cursor' }]);
    }
    expect((await refusal(list({ state: 'PARTICIPATION_STATE_OTHER' as ParticipationState }))).errors).toMatchObject([
      { pointer: '/state' },
    ]);
  });
});

async function firstOfTwo() {
  const { period, appointmentAt } = freshDay();
  const appointmentReference = await appointmentAt(9);
  const references = [await book(appointmentReference), await book(appointmentReference)];
  const page = await listPage({ ...period, limit: 1 });
  expect(page.listed.map(({ reference }) => reference)).toEqual([references[0]]);
  return page;
}

describe('changedSince', () => {
  it('selects those that were created or changed since then, whatever changed them', async () => {
    const { period, appointmentAt } = freshDay();
    const [first, second] = [await appointmentAt(9), await appointmentAt(12)];
    const [unchanged, moved, cancelled] = [await book(first), await book(first), await book(second)];
    const changedSince = await databaseNow();
    expect(await list({ ...period, changedSince })).toEqual([]);
    await move(moved, CANCELED);
    await calendar.appointments.cancelAppointment({ ...owned, appointmentReference: second });
    const created = await book(first, REQUESTED);
    expect(await list({ ...period, changedSince })).toEqual([moved, created, cancelled]);
    expect(await list({ customerReference, ...period, changedSince })).toEqual([moved, created, cancelled]);
    expect(await list({ ...period, changedSince: await databaseNow() })).toEqual([]);
    expect(await list(period)).toEqual([unchanged, moved, created, cancelled]);
  });
});

describe('the pages of the list', () => {
  it.each([1, 2, 3, 12, 13])(
    'of %i participations are together the whole list, also if an appointment or a customer has more than one page',
    async (limit) => {
      const { period, appointmentAt } = freshDay();
      const other = await createCustomer(calendar);
      const appointments = [await appointmentAt(9), await appointmentAt(9), await appointmentAt(12)];
      const made: string[] = [];
      for (const appointment of [...appointments, ...appointments])
        made.push(await book(appointment), await book(appointment, REQUESTED, other));
      const all = await list(period);
      expect(all.toSorted()).toEqual(made.toSorted());
      expect(await listPages({ ...period, limit })).toEqual(all);
      expect(await listPages({ customerReference: other, limit })).toEqual(await list({ customerReference: other }));
      expect(await listPages({ ...period, state: REQUESTED, limit })).toEqual(
        await list({ ...period, state: REQUESTED }),
      );
    },
  );

  it('neither repeat nor omit what was there, while participations are added in between', async () => {
    const { period, appointmentAt } = freshDay();
    const appointments = [await appointmentAt(9), await appointmentAt(9), await appointmentAt(12)];
    const before: string[] = [];
    for (const appointment of [...appointments, ...appointments]) before.push(await book(appointment));
    const places = appointments.values();
    const added: string[] = [];
    const pages = await listPages({ ...period, limit: 2 }, async () => {
      const place = places.next().value;
      if (place !== undefined) added.push(await book(place));
    });
    expect(added.length).toBeGreaterThan(2);
    expect(new Set(pages).size).toBe(pages.length);
    expect(pages.filter((reference) => !added.includes(reference)).toSorted()).toEqual(before.toSorted());
    const order = await list(period);
    expect(pages).toEqual(order.filter((reference) => pages.includes(reference)));
  });
});

interface Row {
  participation: string | null;
  startsAt: Date | null;
  appointmentId: string;
  participationId: string;
}

describe('a part of the list', () => {
  /** All parts, one after the other, each of which may read as many rows. */
  async function readParts(
    filter: object,
    rows: number,
    size: number,
  ): Promise<{ references: string[]; partCount: number }> {
    const { kysely } = calendar.database;
    const { id: providerId } = await kysely
      .selectFrom('provider')
      .select('id')
      .where('crmId', '=', 'one')
      .where('reference', '=', 'p1')
      .executeTakeFirstOrThrow();
    const references: string[] = [];
    let after: Row | undefined;
    for (let partCount = 1; ; partCount += 1) {
      const part = await readFunction<Row>(kysely, {
        name: 'read_participations',
        request: { crmId: 'one', providerId, ...filter, rows, size, after },
      });
      const listed = part.flatMap(({ participation }) => participation ?? []);
      expect(listed.length).toBeLessThanOrEqual(size);
      references.push(...listed.map((json) => (JSON.parse(json) as Listed).reference));
      after = part.at(-1);
      if (after!.participation !== null || after!.startsAt === null) return { references, partCount };
    }
  }

  it('ends after a limited number of rows and goes on there, whether or not they match, also for a customer who has more', async () => {
    const { period, appointmentAt } = freshDay();
    const appointments = [
      await appointmentAt(8),
      await appointmentAt(9),
      await appointmentAt(9),
      await appointmentAt(10),
      await appointmentAt(11),
      await appointmentAt(12),
    ];
    const made: string[] = [];
    for (const appointment of [
      appointments[1]!,
      appointments[2]!,
      appointments[2]!,
      appointments[2]!,
      appointments[5]!,
    ])
      made.push(await book(appointment));
    const all = await list(period);
    expect(all.toSorted()).toEqual(made.toSorted());
    const customerId = await customerIdOf(customerReference);
    const ofOther = await book(appointments[2]!, BOOKED, await createCustomer(calendar));
    for (const [rows, size] of [
      [2, 10],
      [3, 10],
      [3, 1],
      [5, 2],
      [100, 1],
      [100, 5],
    ] as const) {
      for (const filter of [period, { ...period, customerId }]) {
        const { references: listed } = await readParts(filter, rows, size);
        expect(listed.includes(ofOther)).toBe(!('customerId' in filter));
        expect(listed.filter((reference) => reference !== ofOther)).toEqual(all);
        const { references, partCount } = await readParts({ ...filter, state: 'DELETED' }, rows, size);
        expect(references).toEqual([]);
        if (rows === 2) expect(partCount).toBeGreaterThan(3);
      }
    }
  });
});

describe('the list of appointments', () => {
  it('is filtered by state', async () => {
    const { period, appointmentAt } = freshDay();
    const [active, cancelled] = [await appointmentAt(9), await appointmentAt(12)];
    await calendar.appointments.cancelAppointment({ ...owned, appointmentReference: cancelled });
    const listed = async (state: AppointmentState | undefined): Promise<string[]> => {
      const appointments = await listAppointments(calendar, { ...owned, ...period, includeArchived: true, state });
      return appointments.map(({ reference }) => reference);
    };
    expect(await listed(undefined)).toEqual([active, cancelled]);
    expect(await listed(AppointmentState.ACTIVE)).toEqual([active]);
    expect(await listed(AppointmentState.CANCELLED)).toEqual([cancelled]);
    expect(await refusal(listed('APPOINTMENT_STATE_OTHER' as AppointmentState))).toMatchObject({
      code: 'appointment.invalid',
      errors: [{ pointer: '/state' }],
    });
  });
});
