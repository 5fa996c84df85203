import type { FieldErrors } from '@scheduling/errors';
import { type RawBuilder, sql } from 'kysely';

/** When a timeslot is open, and the length of its slots in minutes. */
export interface Window {
  startsAt: Date;
  endsAt: Date;
  raster: number;
}

const minuteMs = 60_000;

/**
 * The end must be after the start, and at least one slot must fit. `pointer` is that of the timeslot in the request.
 */
export function checkWindow(errors: FieldErrors, pointer: string, { startsAt, endsAt, raster }: Window): void {
  if (endsAt <= startsAt) errors.add(`${pointer}/end`, 'must be after start');
  else if (raster * minuteMs > endsAt.getTime() - startsAt.getTime())
    errors.add(`${pointer}/raster`, 'must fit between start and end');
}

/** Whether a timeslot keeps its window and its raster. */
export function isSameWindow(before: Window, after: Window): boolean {
  return (
    before.startsAt.getTime() === after.startsAt.getTime() &&
    before.endsAt.getTime() === after.endsAt.getTime() &&
    before.raster === after.raster
  );
}

/**
 * Whether a change of the timeslot orphans the row of an appointment that lies in the window before: it no longer does,
 * or it matched one of the raster's slots (or several in a row) and no longer does. An appointment that never matched
 * the raster, because the CRM chose other times, does not block a change of the raster.
 */
export function isOrphaned(before: Window, after: Window): RawBuilder<boolean> {
  return sql`(starts_at < ${after.startsAt} OR ends_at > ${after.endsAt} OR (${isOnRaster(before)} AND NOT ${isOnRaster(after)}))`;
}

function isOnRaster({ startsAt, raster }: Window): RawBuilder<boolean> {
  const step = sql`make_interval(mins => ${raster})`;
  return sql`(date_bin(${step}, starts_at, ${startsAt}) = starts_at AND date_bin(${step}, ends_at, starts_at) = ends_at)`;
}
