import { DomainError } from '@scheduling/errors';
import { toTimeJson } from '@scheduling/runtime';
import type { ProviderKey } from '@scheduling/service';
import type { Kysely, Selectable } from 'kysely';
import type { CalendarSchema, ResourceBlockTable } from '../db/schema.ts';

export type BlockRow = Selectable<ResourceBlockTable>;

/** See read-blocks.sql. */
export type ListedBlock = Omit<BlockRow, 'crmId' | 'providerId'>;

export interface BlocksKey extends ProviderKey {
  resourceReference: string;
}

export function selectBlocks(db: Kysely<CalendarSchema>, crmId: string) {
  return db.selectFrom('resourceBlock').selectAll().where('crmId', '=', crmId);
}

/** The block of a repeated request. Rejects with `block.not_found` if it was deleted since. */
export function requireBlockById(db: Kysely<CalendarSchema>, crmId: string, id: string): Promise<BlockRow> {
  return selectBlocks(db, crmId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => new DomainError('block.not_found'));
}

/** As an object of the REST interface (15), as JSON. */
export function writeBlock({ reference, resourceReference, startsAt, endsAt, note }: ListedBlock): string {
  return JSON.stringify({ reference, resourceReference, start: toTimeJson(startsAt), end: toTimeJson(endsAt), note });
}
