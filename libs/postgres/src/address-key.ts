import { type RawBuilder, sql } from 'kysely';
import type { MigrationSet } from './migration-set.ts';
import { frozenFiles } from './sql-files.ts';

/** Run before the service's own migrations, whose indexes of addresses call the function. */
export const addressMigrations: MigrationSet = {
  name: 'address',
  migrations: { '2026-12-10-address-key': frozenFiles(import.meta.url, ['address-key.sql']) },
};

/**
 * Whether a column has this e-mail address, in any of its forms. An index that helps has `address_key` of the column.
 */
export function isAddress(column: RawBuilder<unknown>, address: string): RawBuilder<boolean> {
  return sql<boolean>`address_key(${column}) = address_key(${address})`;
}
