import { type Kysely, sql } from 'kysely';

export const withoutTransaction = true;

const batchSize = 1_000;

interface User {
  crm_id: string;
  id: string;
  email: string;
  email_key: string;
  email_derived_from: string | null;
}

/**
 * The forms of an address have the same key from now on, with the domain as A-labels. A user keeps the former key, and the address, if another user has the new
 * one: whose address was stored in that form, or who is older.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  let lastId = '00000000-0000-0000-0000-000000000000';
  for (let found = batchSize; found === batchSize; ) {
    const { rows } = await sql<User>`
      SELECT crm_id, id, email, email_key, email_derived_from FROM app_user
       WHERE id > ${lastId} AND email ~* '[^ -~]|@xn--|[.]xn--' COLLATE "C"
       ORDER BY id
       LIMIT ${batchSize}`.execute(db);
    for (const user of rows) await changeKeys(db, user);
    found = rows.length;
    lastId = rows.at(-1)?.id ?? lastId;
  }
}

async function changeKeys(db: Kysely<unknown>, { crm_id, id, email, email_key, email_derived_from }: User): Promise<void> {
  if (email_derived_from !== null) {
    await sql`UPDATE app_user SET email_derived_from = ${keyOf(email_derived_from)} WHERE crm_id = ${crm_id} AND id = ${id} AND email = ${email}`.execute(db);
  }
  const scope = email_key.startsWith(`${crm_id}\n`) ? `${crm_id}\n` : '';
  const key = `${scope}${keyOf(email)}`;
  if (key === email_key) return;
  await sql`
    UPDATE app_user SET email_key = ${key}
     WHERE crm_id = ${crm_id} AND id = ${id} AND email = ${email} AND NOT EXISTS (SELECT FROM app_user WHERE email_key = ${key})`.execute(db);
}

function keyOf(address: string): string {
  const domainAt = address.lastIndexOf('@') + 1;
  return lowerCase(address.slice(0, domainAt).replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')) + domainKey(address.slice(domainAt));
}

function domainKey(domain: string): string {
  if (/^\p{ASCII}*$/u.test(domain) && !/(?:^|\.)xn--/i.test(domain)) return domain.toLowerCase();
  return URL.parse(`ws://${domain}`)?.hostname ?? lowerCase(domain);
}

function lowerCase(text: string): string {
  return text.normalize('NFC').toLowerCase().normalize('NFC');
}
