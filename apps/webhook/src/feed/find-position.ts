import { DomainError } from '@scheduling/errors';
import type { Database } from '@scheduling/postgres';
import { isUuid } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { WebhookSchema } from '../db/schema.ts';
import { keptDays } from './delete-old-events.ts';

/** The place of an event in the feed of its CRM. */
export interface Position {
  /** Empty before the first event. */
  id: string;
  sequence: number;
}

const beginning: Position = { id: '', sequence: 0 };

/** What a client names as `after`: an event, `start` or `end`. Rejects with `events.invalid` or `events.expired`. */
export async function findPosition(
  { kysely }: Database<WebhookSchema>,
  { crmId, after }: { crmId: string; after: string },
): Promise<Position> {
  if (after === 'start') return beginning;
  if (after === 'end') return (await findNewest(kysely, crmId)) ?? beginning;
  const found = isUuid(after) ? await findEvent(kysely, crmId, after) : undefined;
  if (found !== undefined) return found;
  if (isUuid(after) && (await isOlderThanKept(kysely, after))) throw new DomainError('events.expired');
  throw new DomainError('events.invalid', { errors: [{ pointer: '/after', detail: 'is not an event of this CRM' }] });
}

function findNewest(db: Database<WebhookSchema>['kysely'], crmId: string): Promise<Position | undefined> {
  return db
    .selectFrom('event')
    .select(['id', 'sequence'])
    .where('crmId', '=', crmId)
    .orderBy('sequence', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** One that is kept, or the newest that is not. */
function findEvent(db: Database<WebhookSchema>['kysely'], crmId: string, id: string): Promise<Position | undefined> {
  return db
    .selectFrom('event')
    .select(['id', 'sequence'])
    .where('crmId', '=', crmId)
    .where('id', '=', id)
    .union(db.selectFrom('removedEvent').select(['id', 'sequence']).where('crmId', '=', crmId).where('id', '=', id))
    .executeTakeFirst();
}

/** By the time that the id contains. */
async function isOlderThanKept(db: Database<WebhookSchema>['kysely'], id: string): Promise<boolean> {
  const { rows } = await sql<{ isOld: boolean | null }>`
    SELECT uuid_extract_timestamp(${id}::uuid) < now() - make_interval(days => ${keptDays}) AS is_old`.execute(db);
  return rows[0]!.isOld === true;
}
