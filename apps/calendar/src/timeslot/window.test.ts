import { expect, it } from 'vitest';
import { isSameWindow, type Window } from './window.ts';

const window: Window = { startsAt: new Date('2026-06-01T08:00Z'), endsAt: new Date('2026-06-01T12:00Z'), raster: 30 };

it('a window is the same if nothing of it is different', () => {
  const others = [
    { startsAt: new Date('2026-06-01T07:30Z') },
    { endsAt: new Date('2026-06-01T12:30Z') },
    { raster: 60 },
  ];
  expect(isSameWindow(window, { ...window, startsAt: new Date(window.startsAt) })).toBe(true);
  expect(others.map((other) => isSameWindow(window, { ...window, ...other }))).toEqual([false, false, false]);
});
