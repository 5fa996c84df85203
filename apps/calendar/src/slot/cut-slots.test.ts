import { describe, expect, it } from 'vitest';
import {
  type Calendar,
  cutSlots,
  noAppointment,
  noTimeslot,
  type OpenAppointment,
  type OpenTimeslot,
  type Period,
  type SlotPosition,
} from './cut-slots.ts';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const beginning: SlotPosition = { startsAt: 0, timeslotId: '', appointmentId: '' };
const count = 1_000;

/** How often timeslots, appointments and periods have been read: how much work was done. */
let reads = 0;

function counted<T extends object>(object: T): T {
  return new Proxy(object, {
    get: (target, key) => {
      reads += 1;
      return Reflect.get(target, key) as unknown;
    },
  });
}

function id(number: number): string {
  return `00000000-0000-0000-0000-${String(number).padStart(12, '0')}`;
}

function timeslot(number: number, raster = 10): OpenTimeslot {
  return counted({
    id: id(number),
    reference: `t-${number}`,
    resourceReference: 'room',
    startsAt: 0,
    endsAt: dayMs,
    raster,
    details: '{}',
    occupiedKey: 'room',
  });
}

function appointment(number: number, startsAt: number, minutes = 10): OpenAppointment {
  return counted({
    id: id(number),
    isMadeByBooking: true,
    resourceReference: 'room',
    startsAt,
    endsAt: startsAt + minutes * minuteMs,
    details: '{}',
  });
}

function calendarOf({
  appointments = [],
  periods = [],
}: {
  appointments?: OpenAppointment[];
  periods?: Period[];
}): Calendar {
  const timeslots = Array.from({ length: count }, (_, number) => timeslot(number));
  return { from: 0, to: dayMs, timeslots, appointments, occupied: new Map([['room', periods.map(counted)]]) };
}

/** The positions of the first slots after another one, and how many reads each of the timeslots cost. */
function cut(
  calendar: Calendar,
  size: number,
  after = beginning,
): { positions: SlotPosition[]; readsPerTimeslot: number } {
  reads = 0;
  const positions = cutSlots(calendar, undefined, after)
    .take(size)
    .map(({ position }) => position)
    .toArray();
  return { positions, readsPerTimeslot: reads / count };
}

const nextPlace = (startsAt: number, number: number): SlotPosition => ({
  startsAt,
  timeslotId: id(number),
  appointmentId: noAppointment,
});

describe(`the first slots of ${count} timeslots that overlap`, () => {
  it('cost no more than looking at each timeslot a few times', () => {
    const { positions, readsPerTimeslot } = cut(calendarOf({}), 2);
    expect(positions).toEqual([nextPlace(0, 0), nextPlace(0, 1)]);
    expect(readsPerTimeslot).toBeLessThan(20);
  });

  it('cost no more with as many open appointments at the same moment, each of which is a step of each timeslot', () => {
    const appointments = Array.from({ length: count }, (_, number) => appointment(number, 0));
    const calendar = calendarOf({ appointments, periods: [[0, 10 * minuteMs]] });
    const first = cut(calendar, 2);
    expect(first.positions).toEqual(
      [0, 1].map((number) => ({ startsAt: 0, timeslotId: id(0), appointmentId: id(number) })),
    );
    expect(first.readsPerTimeslot).toBeLessThan(100);
    // The last of a million that begin then, and the first place after them.
    const last = cut(calendar, 2, { startsAt: 0, timeslotId: id(count - 1), appointmentId: id(count - 2) });
    expect(last.positions).toEqual([
      { startsAt: 0, timeslotId: id(count - 1), appointmentId: id(count - 1) },
      nextPlace(10 * minuteMs, 0),
    ]);
    expect(last.readsPerTimeslot).toBeLessThan(100);
  });

  it('cost no more with as many occupied periods between which there is no room', () => {
    const periods = Array.from({ length: count }, (_, number): Period => [
      2 * number * minuteMs,
      (2 * number + 1) * minuteMs,
    ]);
    const calendar = calendarOf({ periods });
    const { positions, readsPerTimeslot } = cut(
      {
        ...calendar,
        timeslots: calendar.timeslots.map((each) => counted({ ...each, endsAt: 2 * dayMs, raster: 7 })),
        to: 2 * dayMs,
      },
      1,
    );
    // The first step after the last period.
    expect(positions).toEqual([nextPlace(Math.ceil((2 * count - 1) / 7) * 7 * minuteMs, 0)]);
    expect(readsPerTimeslot).toBeLessThan(100);
  });

  it('cost no more with as many open appointments at other moments', () => {
    const appointments = Array.from({ length: count }, (_, number) => appointment(number, number * minuteMs, 5));
    const { positions, readsPerTimeslot } = cut(calendarOf({ appointments, periods: [[0, dayMs]] }), 2);
    expect(positions).toEqual(
      [0, 1].map((number) => ({ startsAt: number * minuteMs, timeslotId: noTimeslot, appointmentId: id(number) })),
    );
    expect(readsPerTimeslot).toBeLessThan(100);
  });
});
