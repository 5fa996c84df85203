import { expect, it } from 'vitest';
import { applyEvent, createMirror, type MirroredEvent } from './feed-mirror.ts';

const nothing = {
  version: null,
  state: null,
  previousState: null,
  appointmentId: null,
  previousAppointmentId: null,
  capacity: null,
  ignoreCapacity: null,
};

function event(type: string, data: Partial<MirroredEvent['data']> & { id: string }): MirroredEvent {
  return { id: 'event', type, data: { ...nothing, ...data } };
}

const opened = (id: string, capacity: number) =>
  event('appointment.created', { id, version: 1, state: 'ACTIVE', capacity });
const resized = (id: string, version: number, capacity: number) =>
  event('appointment.changed', { id, version, state: 'ACTIVE', previousState: 'ACTIVE', capacity });
const deleted = (id: string, version: number) => event('appointment.deleted', { id, version, previousState: 'ACTIVE' });
const created = (id: string, appointmentId: string, state = 'BOOKED', ignoreCapacity = false) =>
  event('participation.created', { id, version: 1, state, appointmentId, ignoreCapacity });
const changed = (id: string, version: number, appointmentId: string, [previousState, state]: [string, string]) =>
  event('participation.changed', { id, version, state, previousState, appointmentId, ignoreCapacity: false });
const moved = (id: string, version: number, previousAppointmentId: string, appointmentId: string) =>
  event('participation.moved', {
    id,
    version,
    state: 'BOOKED',
    previousState: 'BOOKED',
    appointmentId,
    previousAppointmentId,
    ignoreCapacity: false,
  });
const removed = (id: string, version: number, appointmentId: string) =>
  event('participation.removed', { id, version, previousState: 'BOOKED', appointmentId });

/** What the last event contradicts, after others that contradict nothing. */
function findContradictions(...events: MirroredEvent[]): string[] {
  const mirror = createMirror();
  const found = events.map((each) => applyEvent(mirror, each));
  expect(found.slice(0, -1).flat()).toEqual([]);
  return found.at(-1)!;
}

it.each<[string, MirroredEvent[]]>([
  [
    'a seat that has become free is taken again',
    [opened('a', 1), created('p', 'a'), changed('p', 2, 'a', ['BOOKED', 'CANCELED']), created('q', 'a')],
  ],
  [
    'a seat that somebody has left is taken again',
    [opened('a', 1), opened('b', 1), created('p', 'a'), moved('p', 2, 'a', 'b'), created('q', 'a', 'RESERVED')],
  ],
  ['somebody is added deliberately', [opened('a', 1), created('p', 'a'), created('q', 'a', 'BOOKED', true)]],
  ['a request waits for a seat', [opened('a', 1), created('p', 'a'), created('q', 'a', 'REQUESTED')]],
  [
    'a capacity is reduced, and who is there is confirmed',
    [opened('a', 1), created('p', 'a', 'RESERVED'), resized('a', 2, 0), changed('p', 2, 'a', ['RESERVED', 'BOOKED'])],
  ],
  ['an appointment is deleted', [opened('a', 1), created('p', 'a'), removed('p', 2, 'a'), deleted('a', 2)]],
  ['a mail fails', [event('mail.failed', { id: 'p' })]],
])('no event contradicts the ones before it if %s', (_, events) => {
  expect(findContradictions(...events)).toEqual([]);
});

it.each<[string, MirroredEvent[], string]>([
  [
    'a seat is taken twice',
    [opened('a', 1), created('p', 'a'), created('q', 'a', 'RESERVED')],
    'takes a seat of a, of which 2 are taken then, although its capacity is 1',
  ],
  [
    'a request is confirmed without a seat',
    [opened('a', 0), created('p', 'a', 'REQUESTED'), changed('p', 2, 'a', ['REQUESTED', 'BOOKED'])],
    'takes a seat of a, of which 1 are taken then, although its capacity is 0',
  ],
  [
    'a booking moves to where no seat is',
    [opened('a', 1), opened('b', 0), created('p', 'a'), moved('p', 2, 'a', 'b')],
    'takes a seat of b, of which 1 are taken then, although its capacity is 0',
  ],
  [
    'a booking comes after a reduction of the capacity',
    [opened('a', 1), resized('a', 2, 0), created('p', 'a')],
    'takes a seat of a, of which 1 are taken then, although its capacity is 0',
  ],
  ['a participation comes before its appointment', [created('p', 'a')], 'there is no appointment a'],
  [
    'a participation comes after the end of its appointment',
    [opened('a', 1), deleted('a', 2), created('p', 'a')],
    'there is no appointment a',
  ],
  [
    'a participation is left behind',
    [opened('a', 1), created('p', 'a'), deleted('a', 2)],
    '1 participations are still there',
  ],
  [
    'somebody moves who was elsewhere',
    [opened('a', 1), opened('b', 1), created('p', 'a'), moved('p', 2, 'b', 'a')],
    'was BOOKED, but is not there',
  ],
  [
    'the previous state was another one',
    [opened('a', 1), created('p', 'a'), changed('p', 2, 'a', ['REQUESTED', 'BOOKED'])],
    'was REQUESTED, but is BOOKED',
  ],
  ['a version is missing', [opened('a', 1), resized('a', 3, 2)], 'has the version 3 instead of 2'],
  ['an event comes twice', [opened('a', 1), resized('a', 2, 2), resized('a', 2, 2)], 'has the version 2 instead of 3'],
])('finds if %s', (_, events, contradiction) => {
  const { type, data } = events.at(-1)!;
  expect(findContradictions(...events)).toEqual([`${type} (event) of ${data.id}: ${contradiction}`]);
});
