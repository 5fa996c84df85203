import { isUuid } from '@scheduling/runtime';

/** Where a page ended: lists are ordered by start and id. */
export interface PagePosition {
  startsAt: Date;
  id: string;
}

/** Before every id, so that a position with it is before everything that starts then. */
export const lowestId = '00000000-0000-0000-0000-000000000000';

/** Opaque to the caller. */
export function encodeCursor({ startsAt, id }: PagePosition): string {
  return Buffer.from(`${startsAt.toISOString()} ${id}`).toString('base64url');
}

/** Undefined for a string that {@link encodeCursor} did not produce. */
export function decodeCursor(cursor: string): PagePosition | undefined {
  const [time = '', id = ''] = Buffer.from(cursor, 'base64url').toString().split(' ');
  const position = { startsAt: new Date(time), id };
  if (!isUuid(id) || !isPossibleStart(position.startsAt.getTime())) return undefined;
  // Node parses many date formats; only the encoded one is accepted.
  return encodeCursor(position) === cursor ? position : undefined;
}

/**
 * In epoch milliseconds. The years are those of interface 8, in any time zone: Postgres cannot read every time that a
 * `Date` can be.
 */
export function isPossibleStart(time: number): boolean {
  return time >= firstStart && time <= lastStart;
}

const [firstStart, lastStart] = [Date.UTC(1899, 11, 31), Date.UTC(9999, 0, 2)];
