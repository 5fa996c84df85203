import { describe, expect, it } from 'vitest';
import { isOrphaned, type Window } from './window.ts';

const at = (time: string): Date => new Date(`2026-06-01T${time}:00Z`);
const window = (start: string, end: string, raster: number): Window => ({ startsAt: at(start), endsAt: at(end), raster });
const appointment = (start: string, end: string) => ({ startsAt: at(start), endsAt: at(end) });

const before = window('08:00', '12:00', 30);

describe('a change of a timeslot', () => {
  it.each([
    ['keeps what still lies in the window', appointment('09:00', '09:30'), window('09:00', '10:00', 30), false],
    ['orphans what begins before the new window', appointment('08:30', '09:00'), window('09:00', '12:00', 30), true],
    ['orphans what ends after the new window', appointment('11:30', '12:00'), window('08:00', '11:45', 15), true],
    ['keeps what is one slot of the new raster', appointment('09:00', '10:00'), window('08:00', '12:00', 60), false],
    ['keeps what is several slots of the new raster', appointment('09:00', '10:00'), window('08:00', '12:00', 15), false],
    ['orphans what does not begin on the new raster', appointment('08:30', '09:30'), window('08:00', '12:00', 60), true],
    ['orphans what is shorter than the new raster', appointment('09:00', '09:30'), window('08:00', '12:00', 60), true],
    ['orphans what a shifted start takes from the raster', appointment('09:00', '09:30'), window('07:50', '12:00', 30), true],
    ['leaves alone what never was on the raster', appointment('09:10', '09:25'), window('08:00', '12:00', 60), false],
    ['leaves alone what never lay in the window', appointment('07:30', '08:30'), window('09:00', '12:00', 30), false],
  ])('%s', (_, what, after, expected) => {
    expect(isOrphaned(what, before, after)).toBe(expected);
  });
});
