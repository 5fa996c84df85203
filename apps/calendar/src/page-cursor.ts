import { createCursor, idField } from '@scheduling/runtime';

/** Where a page ended: lists are ordered by start and id. */
export interface PagePosition {
  startsAt: Date;
  id: string;
}

export const pageCursor = createCursor<PagePosition>({
  startsAt: {
    write: (startsAt) => startsAt.toISOString(),
    read: (text) => (isPossibleStart(Date.parse(text)) ? new Date(text) : undefined),
  },
  id: idField(),
});

/**
 * In epoch milliseconds. The years are those of interface 8, in any time zone: Postgres cannot read every time that a
 * `Date` can be.
 */
export function isPossibleStart(time: number): boolean {
  return time >= firstStart && time <= lastStart;
}

const [firstStart, lastStart] = [Date.UTC(1899, 11, 31), Date.UTC(9999, 0, 2)];
