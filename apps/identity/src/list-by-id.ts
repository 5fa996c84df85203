import { collectFieldErrors, type ErrorCode } from '@scheduling/errors';
import { idCursor, lowestId, readCursor } from '@scheduling/runtime';

export interface PageQuery {
  /** Absent: all. */
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListedPart<Row> {
  rows: Row[];
  /** Set in the last part of a page if there is another page. */
  nextCursor?: string | undefined;
}

/** The most rows that a statement reads, so also the most in a part. */
const maxRows = 250;

/**
 * A list in the order of ids, which is that of creation, in parts of bounded size, each read once the previous one has
 * been consumed. Rejects with the given code if the cursor is invalid.
 *
 * @param read the first `count` rows after an id
 */
export async function* listById<Row extends { id: string }>(
  { limit, cursor }: PageQuery,
  invalid: ErrorCode,
  read: (after: string, count: number) => Promise<Row[]>,
  signal: AbortSignal,
): AsyncGenerator<ListedPart<Row>> {
  const errors = collectFieldErrors();
  let after = readCursor(idCursor, cursor, errors) ?? lowestId;
  errors.throwIfAny(invalid);
  let left = limit ?? Number.POSITIVE_INFINITY;
  while (!signal.aborted) {
    const count = Math.min(maxRows, left);
    // One more than that shows whether others follow.
    const found = await read(after, count + 1);
    const rows = found.slice(0, count);
    const hasMore = found.length > count;
    left -= rows.length;
    after = rows.at(-1)?.id ?? after;
    yield { rows, nextCursor: hasMore && left === 0 ? idCursor.encode(after) : undefined };
    if (!hasMore || left === 0) return;
  }
}
