import { DomainError } from '@scheduling/errors';
import { currentContext, type Idempotency } from '@scheduling/runtime';
import { type QueryExecutorProvider, sql, type Transaction } from 'kysely';
import { createHash } from 'node:crypto';
import { callFunction } from './call-function.ts';
import type { Database } from './database.ts';
import type { FunctionCall } from './function-caller.ts';
import { type IdempotencySchema, keyLifetime } from './idempotency-schema.ts';

/** What is stored of a response. Not its body: that would be personal data, and out of date after the next change. */
export interface KeptAnswer {
  resourceIds: string[];
  /** Whether it reported that something was created. */
  created: boolean;
}

/** The work of a request, and how to repeat its response. */
export interface RepeatableWork<Db, Result> {
  work: (db: Db) => Promise<Result>;
  /** Undefined if the work ended without a response and continues elsewhere: then the key is not used up. */
  keep: (result: Result) => KeptAnswer | undefined;
  /** The same response, with the current state of the resources. Rejects if they no longer exist. */
  replay: (db: Db, kept: KeptAnswer) => Promise<Result>;
}

/**
 * Does the work in a transaction, once per `Idempotency-Key` of a CRM (interface 1): the key is written in the same
 * transaction, so it exists exactly if the effect does. A request with the same key and content gets the same response
 * for 72 hours; one with different content is rejected with `idempotency_key.reused`, and one that arrives while the
 * first is in progress with `idempotency_key.in_flight`. Work that rejects leaves nothing behind. A request without a
 * key has no overhead.
 */
export function transactOnce<Schema extends IdempotencySchema, Result>(
  database: Database<Schema>,
  crmId: string,
  repeatable: RepeatableWork<Transaction<Schema>, Result>,
): Promise<Result> {
  return database.transaction((tx) => doOnce(tx, crmId, repeatable));
}

/** What a function answers that is called once. */
export interface CallAnswer {
  /** Of the resource, if the function has done its work; without it, it has done nothing. */
  id?: string | undefined;
  /** Whether the resource is new. */
  created?: boolean | undefined;
}

/**
 * Like {@link transactOnce}, for work that is the call of one function. It is one round trip, with a key or without, and
 * can share its transaction with other calls. Notifies the commit listeners.
 *
 * @param replay the same answer, with the current state of the resource; rejects if it no longer exists
 */
export async function callOnce<Answer extends CallAnswer>(
  database: { kysely: QueryExecutorProvider; committed(): void },
  call: FunctionCall,
  replay: (kept: { id: string; created: boolean }) => Promise<Answer>,
): Promise<Answer> {
  const idempotency = currentContext()?.idempotency;
  if (idempotency === undefined) return committed(database, await callFunction<Answer>(database.kysely, call));
  const known = await callFunction<KeyAnswer<Answer>>(database.kysely, withKey(call, idempotency));
  switch (known.key) {
    case 'in_flight':
    case 'reused':
      throw new DomainError(`idempotency_key.${known.key}`);
    case 'used':
      return repeat(idempotency, replay({ id: known.resourceIds[0]!, created: known.created }));
    case 'new':
      return committed(database, known.answer);
  }
}

function committed<Answer extends CallAnswer>(database: { committed(): void }, answer: Answer): Answer {
  if (answer.id !== undefined) database.committed();
  return answer;
}

/** See call-once.sql. */
type KeyAnswer<Answer> =
  | { key: 'in_flight' | 'reused' }
  | ({ key: 'used' } & KeptAnswer)
  | { key: 'new'; answer: Answer };

function withKey({ name, request, locks }: FunctionCall, { key, fingerprint }: Idempotency): FunctionCall {
  const content = {
    crmId: request.crmId,
    name,
    request,
    keyHash: hashOf(key).toString('hex'),
    fingerprint: fingerprint.toString('hex'),
    lifetime: keyLifetime,
  };
  return { name: 'call_once', request: content, locks };
}

/**
 * Deletes every key whose response was about one of these resources. The index is searched for each: for many at once
 * Postgres would read all keys.
 */
export async function forgetKeys<Schema extends IdempotencySchema>(
  tx: Transaction<Schema>,
  crmId: string,
  resourceIds: string[],
): Promise<void> {
  if (resourceIds.length === 0) return;
  await sql`
    DELETE FROM idempotency_key USING unnest(${resourceIds}::uuid[]) AS resource (id)
     WHERE crm_id = ${crmId} AND resource_ids @> ARRAY[resource.id]`.execute(tx);
}

async function doOnce<Schema extends IdempotencySchema, Result>(
  tx: Transaction<Schema>,
  crmId: string,
  { work, keep, replay }: RepeatableWork<Transaction<Schema>, Result>,
): Promise<Result> {
  const idempotency = currentContext()?.idempotency;
  if (idempotency === undefined) return work(tx);
  const keyHash = hashOf(idempotency.key);
  await lockKey(tx, crmId, keyHash);
  const kept = await findAnswer(tx, crmId, keyHash, idempotency);
  if (kept !== undefined) return repeat(idempotency, replay(tx, kept));
  const result = await work(tx);
  const answer = keep(result);
  if (answer !== undefined) await keepAnswer(tx, crmId, keyHash, idempotency, answer);
  return result;
}

async function repeat<Result>(idempotency: Idempotency, replayed: Promise<Result>): Promise<Result> {
  const result = await replayed;
  idempotency.isReplayed = true;
  return result;
}

function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** Locked until the end of the transaction. Waiting for the lock would tie up a connection per repetition. */
async function lockKey(db: QueryExecutorProvider, crmId: string, keyHash: Buffer): Promise<void> {
  const { rows } = await sql<{ locked: boolean }>`
    SELECT pg_try_advisory_xact_lock(hashtextextended(${`${keyHash.toString('hex')} ${crmId}`}, 0)) AS locked`.execute(
    db,
  );
  if (rows[0]!.locked) return;
  throw new DomainError('idempotency_key.in_flight');
}

/** A separate statement: it must see what was committed before the lock was granted. */
async function findAnswer(
  db: QueryExecutorProvider,
  crmId: string,
  keyHash: Buffer,
  { fingerprint }: Idempotency,
): Promise<KeptAnswer | undefined> {
  const { rows } = await sql<{ fingerprint: Buffer; resourceIds: string[]; created: boolean }>`
    SELECT fingerprint, resource_ids, created FROM idempotency_key
     WHERE crm_id = ${crmId} AND key_hash = ${keyHash} AND created_at > now() - ${keyLifetime}::interval`.execute(db);
  const [row] = rows;
  if (row === undefined) return undefined;
  if (!row.fingerprint.equals(fingerprint)) {
    throw new DomainError('idempotency_key.reused');
  }
  return { resourceIds: row.resourceIds, created: row.created };
}

/** Any row that already exists here has expired. */
async function keepAnswer(
  db: QueryExecutorProvider,
  crmId: string,
  keyHash: Buffer,
  { fingerprint }: Idempotency,
  answer: KeptAnswer,
): Promise<void> {
  await sql`
    INSERT INTO idempotency_key (crm_id, key_hash, fingerprint, resource_ids, created)
    VALUES (${crmId}, ${keyHash}, ${fingerprint}, ${answer.resourceIds}::uuid[], ${answer.created})
    ON CONFLICT (crm_id, key_hash) DO UPDATE
       SET fingerprint = excluded.fingerprint, resource_ids = excluded.resource_ids, created = excluded.created, created_at = excluded.created_at`.execute(
    db,
  );
}
