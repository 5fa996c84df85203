import { type Kysely, sql } from 'kysely';

export const withoutTransaction = true;

const batchSize = 1_000;

interface User {
  crm_id: string;
  id: string;
  username: string;
  username_key: string;
}

/**
 * Usernames that a person sees as the same have the same key from now on. A user keeps the former key, and the username, if another user has the new one: whose
 * name is plain, or who is older. Only names with spaces, or with characters that are not ASCII, can have another key.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  let lastId = '00000000-0000-0000-0000-000000000000';
  for (let found = batchSize; found === batchSize; ) {
    const { rows } = await sql<User>`
      SELECT crm_id, id, username, username_key FROM app_user
       WHERE id > ${lastId} AND username ~ '[^!-~]' COLLATE "C"
       ORDER BY id
       LIMIT ${batchSize}`.execute(db);
    for (const user of rows) await changeKey(db, user);
    found = rows.length;
    lastId = rows.at(-1)?.id ?? lastId;
  }
}

async function changeKey(db: Kysely<unknown>, { crm_id, id, username, username_key }: User): Promise<void> {
  const scope = username_key.startsWith(`${crm_id}\n`) ? `${crm_id}\n` : '';
  const key = `${scope}${keyOf(username)}`;
  if (key === username_key) return;
  await sql`
    UPDATE app_user SET username_key = ${key}
     WHERE crm_id = ${crm_id} AND id = ${id} AND username = ${username} AND NOT EXISTS (SELECT FROM app_user WHERE username_key = ${key})`.execute(db);
}

function keyOf(username: string): string {
  const visible = username.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '').replace(/[\s\u2800]+/g, ' ').trim();
  return visible.normalize('NFKC').toLowerCase().normalize('NFKC');
}
