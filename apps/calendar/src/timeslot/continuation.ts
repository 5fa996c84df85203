import { isUuid } from '@scheduling/runtime';
import { pageCursor, type PagePosition } from '../page-cursor.ts';

/** Where a part of an answer begins. */
export type Continuation = (RestOfPage | RestOfTimeslots) & {
  /**
   * The appointment with which the previous part ended, in the first of these timeslots. Absent: the part begins with a
   * timeslot.
   */
  appointment?: PagePosition | undefined;
  /** How many rows the part may have. */
  rows: number;
};

interface RestOfPage {
  /**
   * The timeslot with which the previous part or page ended, and with which this one begins if it is in the middle of
   * its appointments.
   */
  timeslot?: PagePosition | undefined;
  /** The last one of the page; absent: all. */
  until?: PagePosition | undefined;
}

interface RestOfTimeslots {
  /** Those of an answer that is no list, in its order. */
  ids: string[];
}

/** The most rows of a part. */
export const maxRows = 500;

/** Opaque to the caller. */
export function encodeContinuation(continuation: Continuation): string {
  const { appointment, rows } = continuation;
  const fields = new URLSearchParams();
  if ('ids' in continuation) fields.set('ids', continuation.ids.join(idSeparator));
  else setPositions(fields, { timeslot: continuation.timeslot, until: continuation.until });
  setPositions(fields, { appointment });
  fields.set('rows', String(rows));
  return fields.toString();
}

/** Undefined for a string that {@link encodeContinuation} did not produce. */
export function decodeContinuation(text: string): Continuation | undefined {
  const fields = new URLSearchParams(text);
  const positionIn = (name: string): PagePosition | undefined => pageCursor.decode(fields.get(name) ?? '');
  const ids = fields.get('ids')?.split(idSeparator);
  const rows = Number(fields.get('rows'));
  if (!Number.isInteger(rows) || rows < 1 || rows > maxRows || ids?.every(isUuid) === false) return undefined;
  const rest = ids ? { ids } : { timeslot: positionIn('timeslot'), until: positionIn('until') };
  const continuation = { ...rest, appointment: positionIn('appointment'), rows };
  // An invalid position was dropped.
  return encodeContinuation(continuation) === text ? continuation : undefined;
}

/** Not changed by the encoding. */
const idSeparator = '.';

function setPositions(fields: URLSearchParams, positions: Record<string, PagePosition | undefined>): void {
  for (const [name, position] of Object.entries(positions)) {
    if (position !== undefined) fields.set(name, pageCursor.encode(position));
  }
}
