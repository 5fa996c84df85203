import { path } from '@scheduling/test-stack/client';
import { type Practice, unique } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import type { Conflicts } from './answers.ts';

/** A block as the API shows it. */
export interface Block {
  reference: string;
  resourceReference: string;
  start: string;
  end: string;
  note: string | null;
}

export interface Blocked {
  block: Block;
  conflicts: Conflicts;
}

type Target = Pick<Practice, 'crm' | 'at' | 'resource'>;

/** Where the blocks of a resource are. */
export function blocksAt({ at, resource }: Pick<Practice, 'at' | 'resource'>): string {
  return at + path`/resource/${resource}/blocks`;
}

/** A day on which no other test books. */
export function newBlock(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    reference: `${unique('block')}@test`,
    start: '2031-09-01T09:00',
    end: '2031-09-01T17:00',
    note: 'Training',
    ...fields,
  };
}

export async function createBlock(practice: Target, fields: Record<string, unknown> = {}): Promise<Blocked> {
  const { status, body, text } = await practice.crm.post<Blocked>(blocksAt(practice), newBlock(fields));
  if (status !== 201) throw new Error(`expected 201, was ${status}: ${text}`);
  return body;
}

/**
 * Creates so many blocks of a day, all but the first in the database: as many requests take half a minute. Returns the
 * reference of the first.
 */
export async function createBlocks(practice: Target, count: number): Promise<string> {
  const { reference } = (await createBlock(practice)).block;
  await query(
    'calendar',
    `INSERT INTO resource_block
     SELECT (jsonb_populate_record(block, jsonb_build_object('id', gen_random_uuid(), 'reference', reference || number))).*
       FROM resource_block AS block, generate_series(2, $3::int) AS number
      WHERE crm_id = $1 AND reference = $2`,
    [practice.crm.crmId, reference, count],
  );
  return reference;
}
