import { collectFieldErrors, type FieldErrors } from '@scheduling/errors';
import { endOfDay } from './expand-hours.ts';
import type { Hours, HoursWindow } from '../db/schema.ts';

/** What the gateway cannot see in a single field. Rejects with `hours.invalid`. */
export function checkHours({ weekly, exceptions, validFrom, validUntil }: Hours): void {
  const errors = collectFieldErrors();
  for (const [index, window] of weekly.entries()) checkWindow(errors, `/weekly/${index}`, window);
  for (const [index, { from, to, windows }] of exceptions.entries()) {
    const pointer = `/exceptions/${index}`;
    if (to < from) errors.add(`${pointer}/to`, 'must not be before from');
    for (const [number, window] of windows.entries()) checkWindow(errors, `${pointer}/windows/${number}`, window);
  }
  if (validFrom !== null && validUntil !== null && validUntil < validFrom)
    errors.add('/validUntil', 'must not be before validFrom');
  errors.throwIfAny('hours.invalid');
}

function checkWindow(errors: FieldErrors, pointer: string, { from, to, raster }: HoursWindow): void {
  if (to === from) errors.add(`${pointer}/to`, `must differ from from; a whole day is 00:00 to ${endOfDay}`);
  else if (raster > lengthOf(from, to)) errors.add(`${pointer}/raster`, 'must fit between from and to');
}

const minutesOfDay = 24 * 60;

/** In minutes, on the clock. */
function lengthOf(from: string, to: string): number {
  return (minuteOf(to) - minuteOf(from) + minutesOfDay) % minutesOfDay || minutesOfDay;
}

function minuteOf(time: string): number {
  const [hours, minutes] = time.split(':').map(Number);
  return hours! * 60 + minutes!;
}
