import { leaseDueRows } from '@scheduling/delivery';
import type { Database } from '@scheduling/postgres';
import type { Kysely } from 'kysely';
import type { NotificationSchema } from '../src/db/schema.ts';
import { type MailRow, mailTable } from '../src/mail/mail-table.ts';

/** Claims due mails, as the delivery of a process does. */
export async function leaseMails(
  { kysely }: Pick<Database<NotificationSchema>, 'kysely'>,
  { total = 10, leaseMs = 60_000 } = {},
): Promise<MailRow[]> {
  const limits = { total, perCrm: 5, perHost: 5 };
  const { rows } = await leaseDueRows<MailRow>(kysely as unknown as Kysely<unknown>, mailTable, {
    limits,
    free: total,
    leaseMs,
    leased: [],
  });
  return rows;
}
