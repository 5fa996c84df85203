import { DomainError } from '@scheduling/errors';
import { currentContext, type Idempotency } from '@scheduling/runtime';
import { type Kysely, type QueryExecutorProvider, sql, type Transaction } from 'kysely';
import { createHash } from 'node:crypto';
import type { Database } from './database.ts';
import { type IdempotencySchema, keyLifetime } from './idempotency-schema.ts';

/** What is kept of an answer. Not its body: that would be personal data, and out of date at the next change. */
export interface KeptAnswer {
  resourceIds: string[];
  /** Whether it said that something was created. */
  created: boolean;
}

/** Work that a request asks for, and how its answer is given again. */
export interface RepeatableWork<Db, Result> {
  work: (db: Db) => Promise<Result>;
  /** Undefined when the work ended without an answer and goes on elsewhere: then the key stays free. */
  keep: (result: Result) => KeptAnswer | undefined;
  /** The same answer, with the resources as they are by now. Rejects when they are gone. */
  replay: (db: Db, kept: KeptAnswer) => Promise<Result>;
}

/**
 * Does the work in a transaction, once for each `Idempotency-Key` of a CRM (interface 1): the key is written in the same transaction, so it is
 * there exactly when the effect is. A request with the same key and content gets the same answer for 72 hours; one with other content is
 * rejected with `idempotency_key.reused`, and one that comes while the first is being worked on with `idempotency_key.in_flight`. Work that
 * rejects leaves nothing behind. A request without a key costs nothing more.
 */
export function transactOnce<Schema extends IdempotencySchema, Result>(
  database: Database<Schema>,
  crmId: string,
  repeatable: RepeatableWork<Transaction<Schema>, Result>,
): Promise<Result> {
  return database.transaction((tx) => doOnce(tx, crmId, repeatable));
}

/** As {@link transactOnce}, for work whose writes are one statement: without a key there is no transaction around it. Tells of the commit. */
export async function runOnce<Schema extends IdempotencySchema, Result>(
  database: Database<Schema>,
  crmId: string,
  repeatable: RepeatableWork<Kysely<Schema>, Result>,
): Promise<Result> {
  if (currentContext()?.idempotency !== undefined) return transactOnce(database, crmId, repeatable);
  const result = await repeatable.work(database.kysely);
  if (repeatable.keep(result) !== undefined) database.committed();
  return result;
}

/** Lets go of every key whose answer was about one of these resources. */
export async function forgetKeys<Schema extends IdempotencySchema>(tx: Transaction<Schema>, crmId: string, resourceIds: string[]): Promise<void> {
  if (resourceIds.length === 0) return;
  await sql`DELETE FROM idempotency_key WHERE crm_id = ${crmId} AND resource_ids && ${resourceIds}::uuid[]`.execute(tx);
}

async function doOnce<Schema extends IdempotencySchema, Result>(
  tx: Transaction<Schema>,
  crmId: string,
  { work, keep, replay }: RepeatableWork<Transaction<Schema>, Result>,
): Promise<Result> {
  const idempotency = currentContext()?.idempotency;
  if (idempotency === undefined) return work(tx);
  const keyHash = createHash('sha256').update(idempotency.key).digest();
  await lockKey(tx, crmId, keyHash);
  const kept = await findAnswer(tx, crmId, keyHash, idempotency);
  if (kept !== undefined) return replay(tx, kept);
  const result = await work(tx);
  const answer = keep(result);
  if (answer !== undefined) await keepAnswer(tx, crmId, keyHash, idempotency, answer);
  return result;
}

/** Until the end of the transaction. Waiting for the lock would keep a connection busy for each repetition. */
async function lockKey(db: QueryExecutorProvider, crmId: string, keyHash: Buffer): Promise<void> {
  const { rows } = await sql<{ locked: boolean }>`
    SELECT pg_try_advisory_xact_lock(hashtextextended(${`${keyHash.toString('hex')} ${crmId}`}, 0)) AS locked`.execute(db);
  if (rows[0]!.locked) return;
  throw new DomainError('idempotency_key.in_flight');
}

/** A statement of its own: it must see what was committed before the lock was granted. */
async function findAnswer(db: QueryExecutorProvider, crmId: string, keyHash: Buffer, { fingerprint }: Idempotency): Promise<KeptAnswer | undefined> {
  const { rows } = await sql<{ fingerprint: Buffer; resourceIds: string[]; created: boolean }>`
    SELECT fingerprint, resource_ids, created FROM idempotency_key
     WHERE crm_id = ${crmId} AND key_hash = ${keyHash} AND created_at > now() - ${keyLifetime}`.execute(db);
  const [row] = rows;
  if (row === undefined) return undefined;
  if (!row.fingerprint.equals(fingerprint)) {
    throw new DomainError('idempotency_key.reused');
  }
  return { resourceIds: row.resourceIds, created: row.created };
}

/** What is there already is older than its lifetime. */
async function keepAnswer(db: QueryExecutorProvider, crmId: string, keyHash: Buffer, { fingerprint }: Idempotency, answer: KeptAnswer): Promise<void> {
  await sql`
    INSERT INTO idempotency_key (crm_id, key_hash, fingerprint, resource_ids, created)
    VALUES (${crmId}, ${keyHash}, ${fingerprint}, ${answer.resourceIds}::uuid[], ${answer.created})
    ON CONFLICT (crm_id, key_hash) DO UPDATE
       SET fingerprint = excluded.fingerprint, resource_ids = excluded.resource_ids, created = excluded.created, created_at = excluded.created_at`.execute(db);
}
