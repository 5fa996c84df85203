import { type Kysely, sql } from 'kysely';

/** The erasure of an address consists of those of everybody who is known with it, and of what is left of the address itself. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE erasure ADD COLUMN subject text NOT NULL DEFAULT 'customer' CHECK (subject IN ('customer', 'participation', 'address'))`.execute(
    db,
  );
  await sql`ALTER TABLE erasure ADD COLUMN address text`.execute(db);
  await sql`
    CREATE UNIQUE INDEX erasure_address ON erasure (crm_id, (lower(normalize(address) COLLATE pg_c_utf8)))
     WHERE state = 'checking' AND address IS NOT NULL`.execute(db);
  await sql`
    CREATE TABLE erasure_part (
      crm_id text NOT NULL,
      erasure_id uuid NOT NULL,
      part_id uuid NOT NULL,
      PRIMARY KEY (crm_id, erasure_id, part_id),
      FOREIGN KEY (crm_id, erasure_id) REFERENCES erasure,
      FOREIGN KEY (crm_id, part_id) REFERENCES erasure
    )`.execute(db);
  await sql`CREATE INDEX erasure_part_of ON erasure_part (crm_id, part_id)`.execute(db);
  await sql`
    CREATE INDEX customer_by_email ON customer (crm_id, (lower(normalize(email) COLLATE pg_c_utf8)))
     WHERE email IS NOT NULL`.execute(db);
}
