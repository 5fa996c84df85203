export { createDatabase, type Database, type DatabaseOptions } from './database.ts';
export { isUniqueViolation, translatePostgresError } from './errors.ts';
export { forgetKeys, runOnce, transactOnce } from './idempotency.ts';
export { idempotencyMigrations, type IdempotencySchema } from './idempotency-schema.ts';
export { startKeySweeper } from './idempotency-sweeper.ts';
export { createLeadership, type Leadership } from './leadership.ts';
export { migrateDatabase } from './migrate.ts';
export type { MigrationSet, SchemaMigration } from './migration-set.ts';
export { readSchemaState } from './schema-state.ts';
