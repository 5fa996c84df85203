import { collectFieldErrors, DomainError } from '@scheduling/errors';
import { callFunction, transactOnce } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import { randomUUIDv7 } from 'node:crypto';
import type { Conflicts } from '../appointment/conflicts.ts';
import { parseDateTime } from '../date-time.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';
import { requireProvider } from '../provider/provider-copy.ts';
import { type BlockRow, type BlocksKey, requireBlockById, selectBlocks, writeBlock } from './block.ts';

export interface NewBlock extends BlocksKey {
  /** Absent: generated. */
  reference?: string | undefined;
  /** Date-times as in the interface, in the provider's time zone. */
  start: string;
  end: string;
  note?: string | undefined;
}

export interface CreatedBlock {
  /** An object of the REST interface, as JSON. */
  block: string;
  conflicts: Conflicts;
  /** False: it existed. */
  created: boolean;
}

/** Of a resource, that are not over. */
const maxBlocks = 1_000;

/**
 * Blocks a period of a resource (interface 15). When it returns, no booking can be made in it any more, and those that
 * are in it have been named. For an existing block with this reference and the same content nothing is changed. Rejects
 * with `block.invalid`, `block.reference_taken`, `block.limit_reached`, `provider.not_found`, or with `block.not_found`
 * if it was deleted meanwhile.
 */
export async function createBlock(dependencies: CalendarDependencies, request: NewBlock): Promise<CreatedBlock> {
  const { crmId, resourceReference, reference, note = null } = request;
  const { database } = dependencies;
  const { id: providerId, timeZone } = await requireProvider(dependencies, request);
  const content = { providerId, resourceReference, ...readPeriod(request, timeZone), note };
  const { row, created } = await transactOnce(database, crmId, {
    work: (tx) => insertBlock(tx, { crmId, ...content }, reference),
    keep: (stored) => ({ resourceIds: [stored.row.id], created: stored.created }),
    replay: async (tx, { resourceIds: [id], created }) => ({ row: await requireBlockById(tx, crmId, id!), created }),
  });
  const conflicts = await findConflicts(dependencies, row);
  return { block: writeBlock(row), conflicts, created };
}

function readPeriod({ start, end }: NewBlock, timeZone: string): Pick<BlockRow, 'startsAt' | 'endsAt'> {
  const period = { startsAt: parseDateTime(start, timeZone), endsAt: parseDateTime(end, timeZone) };
  const errors = collectFieldErrors();
  if (period.endsAt <= period.startsAt) errors.add('/end', 'must be after start');
  errors.throwIfAny('block.invalid');
  return period;
}

type BlockContent = Omit<BlockRow, 'id' | 'reference'>;

async function insertBlock(
  tx: Transaction<CalendarSchema>,
  content: BlockContent,
  givenReference: string | undefined,
): Promise<{ row: BlockRow; created: boolean }> {
  const { crmId, providerId, resourceReference } = content;
  const reference = givenReference ?? `${randomUUIDv7()}@scheduling`;
  // The reference is looked up, and the blocks of the resource are counted below.
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`blocks ${crmId}`}, 0))`.execute(tx);
  const same = await selectBlocks(tx, crmId).where('reference', '=', reference).executeTakeFirst();
  if (same !== undefined) {
    if (!haveSameContent(same, content)) throw new DomainError('block.reference_taken');
    return { row: same, created: false };
  }
  const { count } = await tx
    .selectFrom('resourceBlock')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('crmId', '=', crmId)
    .where('providerId', '=', providerId)
    .where('resourceReference', '=', resourceReference)
    // Read once, so that those that are over are not.
    .where('endsAt', '>', sql<Date>`(SELECT scheduling_now(${crmId}))`)
    // One that is over does not count, however many others there are.
    .where(sql<boolean>`${content.endsAt} > (SELECT scheduling_now(${crmId}))`)
    .executeTakeFirstOrThrow();
  if (count >= maxBlocks) throw new DomainError('block.limit_reached');
  const row = await tx
    .insertInto('resourceBlock')
    .values({ ...content, id: randomUUIDv7(), reference })
    .returningAll()
    .executeTakeFirstOrThrow();
  return { row, created: true };
}

function haveSameContent(one: BlockContent, other: BlockContent): boolean {
  return (
    one.providerId === other.providerId &&
    one.resourceReference === other.resourceReference &&
    one.startsAt.getTime() === other.startsAt.getTime() &&
    one.endsAt.getTime() === other.endsAt.getTime() &&
    one.note === other.note
  );
}

/** Once the block is stored; see conflicts-with-block.sql. */
async function findConflicts({ database }: CalendarDependencies, { crmId, id }: BlockRow): Promise<Conflicts> {
  const request = { crmId, id };
  const conflicts = await callFunction<Conflicts | null>(database.kysely, {
    name: 'conflicts_with_block',
    request,
    locks: '',
  });
  if (conflicts === null) throw new DomainError('block.not_found');
  return conflicts;
}
