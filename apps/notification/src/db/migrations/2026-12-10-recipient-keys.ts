import { type Kysely, sql } from 'kysely';

/** What is stored from now on has the key of the address in place of its lower case. They differ only for few addresses. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`UPDATE sandbox_mail SET recipient = address_key(recipient) WHERE recipient ~ '[^ -~]|xn--' COLLATE "C"`.execute(
    db,
  );
  await sql`UPDATE mail SET recipient = address_key(recipient) WHERE state = 'pending' AND recipient ~ '[^ -~]|xn--' COLLATE "C"`.execute(
    db,
  );
}
