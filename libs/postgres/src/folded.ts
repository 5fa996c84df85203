import { type RawBuilder, sql } from 'kysely';

/**
 * The same for texts that differ only in case, in any script; this collation does not depend on the server's locale. An
 * index that helps to find such a text has exactly this expression.
 */
export function folded(text: RawBuilder<unknown>): RawBuilder<string> {
  return sql`lower(normalize(${text}) COLLATE pg_c_utf8)`;
}
