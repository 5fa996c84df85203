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
