import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { ParticipationChangeCause } from '@scheduling/contracts/events/v1';
import { patiently } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ParticipationState as State } from '../src/db/schema.ts';
import {
  type Calendar,
  type CalendarUnderTest,
  createAppointment,
  createCustomer,
  eventsOf,
  freshReference,
  newParticipation,
  owned,
  refusal,
  seatsOf,
  startCalendar,
} from './calendar-under-test.ts';

let calendar: CalendarUnderTest;
let customerReference: string;

beforeAll(async () => {
  calendar = await startCalendar({ RESERVATION_SWEEPER: 'off' });
  customerReference = await createCustomer(calendar);
}, 180_000);
afterAll(() => calendar?.[Symbol.asyncDispose]());

const states = ['RESERVED', 'REQUESTED', 'BOOKED', 'CANCELED', 'DELETED'] as const;

const seats: Record<State, number> = { RESERVED: 1, REQUESTED: 0, BOOKED: 1, CANCELED: 0, DELETED: 0 };

const same = 'same';
const unsupported = 'participation.state_unsupported';
const refused = 'participation.move_not_allowed';
const mail = 'moved, mail';
const silent = 'moved, no mail';

/** From each state (row) to each (column): interface 3.1, and what "Meaning, Moves" specifies for the rest. */
const table: Record<State, Record<State, string>> = {
  RESERVED: { RESERVED: same, REQUESTED: unsupported, BOOKED: mail, CANCELED: silent, DELETED: refused },
  REQUESTED: { RESERVED: unsupported, REQUESTED: same, BOOKED: mail, CANCELED: mail, DELETED: refused },
  BOOKED: { RESERVED: unsupported, REQUESTED: unsupported, BOOKED: same, CANCELED: mail, DELETED: silent },
  CANCELED: { RESERVED: unsupported, REQUESTED: unsupported, BOOKED: refused, CANCELED: same, DELETED: refused },
  DELETED: { RESERVED: unsupported, REQUESTED: unsupported, BOOKED: refused, CANCELED: silent, DELETED: same },
};

const allMoves = states.flatMap((from) => states.map((to) => [from, to] as const));

async function place(state: State, appointmentReference: string): Promise<string> {
  const request = newParticipation({ appointmentReference, customerReference }, { state: ParticipationState[state] });
  await calendar.participations.createParticipation(request);
  return request.reference;
}

function move(
  participationReference: string,
  to: State,
  options: { sendMails?: boolean; message?: string } = {},
  replica: Calendar = calendar,
) {
  return replica.participations.updateParticipation({
    ...owned,
    participationReference,
    state: ParticipationState[to],
    ignoreCapacity: false,
    sendMails: options.sendMails ?? true,
    message: options.message,
  });
}

describe('moving a participation', () => {
  it.each(allMoves)('from %s to %s', async (from, to) => {
    const appointmentReference = await createAppointment(calendar, { capacity: 2 });
    const reference = await place(from, appointmentReference);
    const expected = table[from][to];
    const moved = expected === mail || expected === silent;
    if (moved || expected === same) {
      const { participation } = await move(reference, to);
      expect(participation).toMatchObject({ reference, state: ParticipationState[to] });
      expect(participation.expiresAt === undefined).toBe(to !== 'RESERVED');
    } else {
      expect(await refusal(move(reference, to))).toMatchObject({
        category: expected === unsupported ? 'invalid' : 'conflict',
        code: expected,
      });
    }

    expect(await seatsOf(calendar, appointmentReference)).toBe(seats[moved ? to : from]);
    const [created, ...later] = await eventsOf(calendar, reference);
    expect(created).toMatchObject({
      version: 1,
      cause: ParticipationChangeCause.CREATED,
      fromState: ParticipationState.UNSPECIFIED,
      toState: ParticipationState[from],
      notify: from === 'BOOKED' || from === 'REQUESTED',
      silent: from !== 'BOOKED' && from !== 'REQUESTED',
    });
    const event = {
      version: 2,
      cause: ParticipationChangeCause.UPDATED,
      fromState: ParticipationState[from],
      toState: ParticipationState[to],
      notify: expected === mail,
      silent: expected !== mail,
    };
    expect(later).toMatchObject(moved ? [event] : []);
  });

  it.each([
    ['REQUESTED', 'REQUESTED'],
    ['REQUESTED', 'BOOKED'],
    ['REQUESTED', 'RESERVED'],
    ['BOOKED', 'DELETED'],
    ['DELETED', 'BOOKED'],
  ] as const)('with an existing reference in create, from %s to %s, follows the same table', async (from, to) => {
    const appointmentReference = await createAppointment(calendar, { capacity: 2 });
    const reference = await place(from, appointmentReference);
    const again = calendar.participations.createParticipation(
      newParticipation({ appointmentReference, customerReference }, { reference, state: ParticipationState[to] }),
    );
    const expected = table[from][to];
    if (expected === unsupported || expected === refused) expect((await refusal(again)).code).toBe(expected);
    else expect(await again).toMatchObject({ created: false, participation: { state: ParticipationState[to] } });
  });

  it.each(states)('of a cancelled appointment to %s', async (to) => {
    const appointmentReference = await createAppointment(calendar, { capacity: 2 });
    const reference = await place('BOOKED', appointmentReference);
    await calendar.appointments.cancelAppointment({ ...owned, appointmentReference });
    const codes: Record<State, string | undefined> = {
      RESERVED: unsupported,
      REQUESTED: unsupported,
      BOOKED: 'appointment.cancelled',
      CANCELED: undefined,
      DELETED: refused,
    };
    if (codes[to] === undefined) await move(reference, to);
    else expect((await refusal(move(reference, to))).code).toBe(codes[to]);
    expect(await seatsOf(calendar, appointmentReference)).toBe(0);
    expect(await eventsOf(calendar, reference)).toHaveLength(2);
  });

  it('names the moves that are allowed', async () => {
    const reference = await place('BOOKED', await createAppointment(calendar));
    await move(reference, 'DELETED');
    expect((await refusal(move(reference, 'BOOKED'))).message).toBe(
      'A participation that is DELETED cannot become BOOKED; allowed from here: CANCELED.',
    );
  });

  it('sends no mail if the caller opts out', async () => {
    const reference = await place('BOOKED', await createAppointment(calendar));
    await move(reference, 'CANCELED', { sendMails: false });
    expect(await eventsOf(calendar, reference)).toMatchObject([
      { notify: true, silent: false },
      { notify: false, silent: true },
    ]);
  });

  it('checks for a free seat from REQUESTED to BOOKED, unless the participation was placed deliberately', async () => {
    const appointmentReference = await createAppointment(calendar, { capacity: 1 });
    const requested = await place('REQUESTED', appointmentReference);
    const deliberate = newParticipation(
      { appointmentReference, customerReference },
      { state: ParticipationState.REQUESTED, ignoreCapacity: true },
    );
    await calendar.participations.createParticipation(deliberate);
    const booked = await place('BOOKED', appointmentReference);
    expect(await refusal(move(requested, 'BOOKED'))).toMatchObject({
      category: 'conflict',
      code: 'participation.capacity_exhausted',
    });
    await move(deliberate.reference, 'BOOKED');
    expect(await seatsOf(calendar, appointmentReference)).toBe(2);
    await move(booked, 'CANCELED');
    expect((await refusal(move(requested, 'BOOKED'))).code).toBe('participation.capacity_exhausted');
    await calendar.participations.updateParticipation({
      ...owned,
      participationReference: requested,
      state: ParticipationState.BOOKED,
      ignoreCapacity: true,
      sendMails: true,
    });
    expect(await seatsOf(calendar, appointmentReference)).toBe(2);
  });

  it('happens once for twenty concurrent requests', async () => {
    const appointmentReference = await createAppointment(calendar, { capacity: 1 });
    const reference = await place('REQUESTED', appointmentReference);
    await Promise.all(Array.from({ length: 20 }, () => patiently(() => move(reference, 'BOOKED'))));
    expect(await seatsOf(calendar, appointmentReference)).toBe(1);
    expect(await eventsOf(calendar, reference)).toHaveLength(2);
  });

  it('is rejected for another provider, another CRM and an unknown reference with the same message', async () => {
    const reference = await place('BOOKED', await createAppointment(calendar));
    const ask = (crmId: string, providerReference: string, participationReference: string) =>
      refusal(
        calendar.participations.updateParticipation({
          crmId,
          providerReference,
          participationReference,
          state: ParticipationState.CANCELED,
          ignoreCapacity: false,
          sendMails: true,
        }),
      );
    const absent = await ask('one', 'p1', freshReference('absent'));
    expect(absent).toMatchObject({ category: 'not_found', code: 'participation.not_found' });
    expect(await ask('one', 'p2', reference)).toEqual(absent);
    expect(await ask('two', 'p1', reference)).toEqual(absent);
    expect(await eventsOf(calendar, reference)).toHaveLength(1);
  });

  it('returns 404 for a reservation that has expired', async () => {
    const appointmentReference = await createAppointment(calendar, { capacity: 1 });
    const reference = await place('RESERVED', appointmentReference);
    await using later = await calendar.startReplicaAt('180 seconds');
    for (const to of states)
      expect((await refusal(move(reference, to, {}, later))).code).toBe('participation.not_found');
  });

  it('keeps the text of each version', async () => {
    const appointmentReference = await createAppointment(calendar);
    const request = newParticipation(
      { appointmentReference, customerReference },
      { state: ParticipationState.REQUESTED, message: 'first' },
    );
    await calendar.participations.createParticipation(request);
    await move(request.reference, 'BOOKED');
    const { participation } = await move(request.reference, 'CANCELED', { message: 'last' });
    expect(participation.messages).toEqual(['first', 'last']);
    const [{ participationId } = { participationId: '' }] = await eventsOf(calendar, request.reference);
    const notices = await Promise.all(
      [1, 2, 3].map((version) =>
        calendar.participations.getParticipationMailData({ crmId: 'one', participationId, version }),
      ),
    );
    expect(notices.map((notice) => notice.message)).toEqual(['first', undefined, 'last']);
    expect(notices[0]).toMatchObject({ reference: request.reference, currentVersion: 3 });
  });
});
