import { collectFieldErrors } from '@scheduling/errors';
import { readFunction } from '@scheduling/postgres';
import { readCursor } from '@scheduling/runtime';
import { parseDateTime } from '../date-time.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { type ListPart, splitForMessages } from '../list-part.ts';
import { pageCursor, type PagePosition } from '../page-cursor.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { type BlocksKey, type ListedBlock, writeBlock } from './block.ts';

export interface BlocksQuery extends BlocksKey {
  /** Date-times as in the interface: blocks that overlap this period. */
  from: string;
  to: string;
  /** Absent: all. */
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** The most blocks in a part. */
const partSize = 250;

/**
 * The blocks of a resource by start, in parts of bounded size, each read once the previous one has been consumed.
 * Rejects with `block.invalid` or `provider.not_found`.
 */
export async function* listBlocks(
  dependencies: CalendarDependencies,
  query: BlocksQuery,
  signal: AbortSignal,
): AsyncGenerator<ListPart> {
  const { id: providerId, timeZone } = await requireProvider(dependencies, query);
  const { crmId, resourceReference } = query;
  const { from, to, ...start } = readQuery(query, timeZone);
  let { after } = start;
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  while (!signal.aborted) {
    const size = Math.min(partSize, left);
    // One more shows whether there is another part, or another page.
    const request = { crmId, providerId, resourceReference, from, to, after, rows: size + 1 };
    const rows = await readFunction<ListedBlock>(dependencies.database.kysely, { name: 'read_blocks', request });
    const listed = rows.slice(0, size);
    left -= listed.length;
    after = listed.at(-1);
    const hasMore = rows.length > listed.length;
    yield* splitForMessages(listed.map(writeBlock), hasMore && left === 0 ? pageCursor.encode(after!) : undefined);
    if (!hasMore || left === 0) return;
  }
}

function readQuery(query: BlocksQuery, timeZone: string): { from: Date; to: Date; after: PagePosition | undefined } {
  const errors = collectFieldErrors();
  const from = parseDateTime(query.from, timeZone);
  const to = parseDateTime(query.to, timeZone);
  if (to <= from) errors.add('/to', 'must be after from');
  const after = readCursor(pageCursor, query.cursor, errors);
  errors.throwIfAny('block.invalid');
  return { from, to, after };
}
