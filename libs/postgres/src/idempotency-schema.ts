import { ago, type CleanUp } from './clean-up.ts';
import { type Generated, type Kysely, sql } from 'kysely';
import type { MigrationSet } from './migration-set.ts';
import { sqlFiles } from './sql-files.ts';

/**
 * The table of `Idempotency-Key`s, in the database of every service with operations that create something for the
 * gateway.
 */
export interface IdempotencySchema {
  idempotencyKey: IdempotencyKeyTable;
}

export interface IdempotencyKeyTable {
  crmId: string;
  /** SHA-256 of the key, which may contain anything. */
  keyHash: Buffer;
  /** SHA-256 of the operation and its request. */
  fingerprint: Buffer;
  resourceIds: string[];
  created: boolean;
  createdAt: Generated<Date>;
}

/** How long a key is kept (interface 1), by the database's clock. */
export const keyLifetime = '72 hours';

/** An expired key has no effect, whether or not its row still exists. */
export const idempotencyCleanUp: CleanUp<IdempotencySchema> = {
  table: 'idempotencyKey',
  column: 'createdAt',
  before: ago(keyLifetime),
  everyMs: 10 * 60 * 1_000,
};

/** Run before the service's own migrations. */
export const idempotencyMigrations: MigrationSet = {
  name: 'idempotency',
  migrations: {
    '2026-11-21-idempotency-keys': {
      up: async (db: Kysely<unknown>) => {
        await sql`
          CREATE TABLE idempotency_key (
            crm_id text NOT NULL,
            key_hash bytea NOT NULL,
            fingerprint bytea NOT NULL,
            resource_ids uuid[] NOT NULL,
            created boolean NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (crm_id, key_hash)
          )`.execute(db);
        await sql`CREATE INDEX idempotency_key_created_at ON idempotency_key (created_at)`.execute(db);
        await sql`CREATE INDEX idempotency_key_resources ON idempotency_key USING gin (resource_ids)`.execute(db);
      },
    },
  },
  functions: sqlFiles(import.meta.url, ['call-once.sql']),
};
