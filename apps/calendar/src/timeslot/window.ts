import type { FieldErrors } from '../field-errors.ts';

/** When a timeslot is open, and the length of its slots in minutes. */
export interface Window {
  startsAt: Date;
  endsAt: Date;
  raster: number;
}

interface Period {
  startsAt: Date;
  endsAt: Date;
}

const minuteMs = 60_000;

/** The end must be after the start, and at least one slot must fit. `pointer` is that of the timeslot in the request. */
export function checkWindow(errors: FieldErrors, pointer: string, { startsAt, endsAt, raster }: Window): void {
  if (endsAt <= startsAt) errors.add(`${pointer}/end`, 'must be after start');
  else if (raster * minuteMs > endsAt.getTime() - startsAt.getTime()) errors.add(`${pointer}/raster`, 'must fit between start and end');
}

/**
 * Whether a change of the timeslot orphans an appointment: it was in the window and no longer is, or it matched one of the raster's slots (or
 * several in a row) and no longer does. An appointment that never matched the raster, because the CRM chose other times, does not block a change
 * of the raster.
 */
export function isOrphaned(appointment: Period, before: Window, after: Window): boolean {
  if (!liesIn(appointment, before)) return false;
  return !liesIn(appointment, after) || (isOnRaster(appointment, before) && !isOnRaster(appointment, after));
}

function liesIn(appointment: Period, window: Window): boolean {
  return appointment.startsAt >= window.startsAt && appointment.endsAt <= window.endsAt;
}

function isOnRaster(appointment: Period, { startsAt, raster }: Window): boolean {
  const rasterMs = raster * minuteMs;
  const offsetMs = appointment.startsAt.getTime() - startsAt.getTime();
  const lengthMs = appointment.endsAt.getTime() - appointment.startsAt.getTime();
  return offsetMs % rasterMs === 0 && lengthMs % rasterMs === 0;
}
