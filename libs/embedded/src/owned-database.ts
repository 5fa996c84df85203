import { randomBytes } from 'node:crypto';
import { type Client, escapeIdentifier, escapeLiteral } from 'pg';

/**
 * Creates a database unless it exists, and a role of the same name that owns it and can connect to no other. Returns
 * the new password of the role.
 */
export async function createOwnedDatabase(administrator: Client, name: string): Promise<string> {
  const password = randomBytes(24).toString('hex');
  const role = escapeIdentifier(name);
  const { rowCount: roles } = await administrator.query('SELECT FROM pg_roles WHERE rolname = $1', [name]);
  if (roles === 0) await administrator.query(`CREATE ROLE ${role} LOGIN`);
  await administrator.query(`ALTER ROLE ${role} PASSWORD ${escapeLiteral(password)}`);
  const { rowCount: databases } = await administrator.query('SELECT FROM pg_database WHERE datname = $1', [name]);
  if (databases === 0) await administrator.query(`CREATE DATABASE ${role}`);
  await administrator.query(`ALTER DATABASE ${role} OWNER TO ${role}`);
  await administrator.query(`REVOKE ALL ON DATABASE ${role} FROM PUBLIC`);
  return password;
}

/** Gives the role what an earlier version of this library let the superuser create in the database. */
export async function adoptTables(administrator: Client, role: string): Promise<void> {
  // Sequences and indexes have the owner of their table.
  const { rows } = await administrator.query<{ statement: string }>(
    `SELECT format('ALTER TABLE %s OWNER TO %I', oid::regclass, $1::text) AS statement
       FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relowner = current_user::regrole
     UNION ALL
     SELECT format('ALTER ROUTINE %s OWNER TO %I', oid::regprocedure, $1::text)
       FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner = current_user::regrole`,
    [role],
  );
  for (const { statement } of rows) await administrator.query(statement);
}
