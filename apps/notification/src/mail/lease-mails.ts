import type { Database } from '@scheduling/postgres';
import { type Selectable, sql } from 'kysely';
import type { MailTable, NotificationSchema } from '../db/schema.ts';

export type MailRow = Selectable<MailTable>;

/** How many mails one process sends at the same time: in all, of one CRM and to one domain. One recipient gets one mail after the other. */
export interface DeliveryLimits {
  total: number;
  perCrm: number;
  perDomain: number;
}

/** What a process is sending at the moment. */
export type InFlight = Iterable<Pick<MailRow, 'crm_id' | 'recipient'>>;

/**
 * Takes the mails whose turn it is. CRMs take turns, so one with thousands of mails waits for itself and nobody else; the CRMs are
 * found by hopping through the index, not by reading the queue. Mails about one thing leave in the order of its versions. A lease is
 * a token, valid until `due_at`: who lost it cannot record a result.
 */
export async function leaseDueMails(
  { kysely }: Database<NotificationSchema>,
  { limits, free, leaseMs, inFlight }: { limits: DeliveryLimits; free: number; leaseMs: number; inFlight: InFlight },
): Promise<MailRow[]> {
  const busy = [...inFlight];
  const crms = JSON.stringify(countBy(busy, (mail) => mail.crm_id));
  const domains = countBy(busy, (mail) => domainOf(mail.recipient));
  const fullDomains = Object.keys(domains).filter((domain) => domains[domain]! >= limits.perDomain);
  const recipients = busy.map((mail) => mail.recipient);
  const { rows } = await sql<MailRow>`
    WITH RECURSIVE crm AS (
      (SELECT crm_id FROM mail WHERE state = 'pending' ORDER BY crm_id LIMIT 1)
      UNION ALL
      SELECT (SELECT mail.crm_id FROM mail WHERE state = 'pending' AND mail.crm_id > crm.crm_id ORDER BY mail.crm_id LIMIT 1)
      FROM crm WHERE crm.crm_id IS NOT NULL
    ), next_of_crm AS (
      SELECT mail.*, row_number() OVER (PARTITION BY mail.crm_id ORDER BY mail.due_at, mail.id) AS crm_turn
      FROM crm CROSS JOIN LATERAL (
        SELECT crm_id, id, due_at, recipient, split_part(recipient, '@', -1) AS domain
        FROM mail
        WHERE mail.crm_id = crm.crm_id AND state = 'pending' AND due_at <= now()
          AND recipient <> ALL (${recipients}::text[]) AND split_part(recipient, '@', -1) <> ALL (${fullDomains}::text[])
          AND NOT EXISTS (
            SELECT FROM mail AS earlier
            WHERE earlier.crm_id = mail.crm_id AND earlier.about_id = mail.about_id AND earlier.version < mail.version AND earlier.state = 'pending'
          )
        ORDER BY due_at
        LIMIT greatest(0, ${limits.perCrm}::int - coalesce((${crms}::jsonb ->> crm.crm_id)::int, 0))
      ) AS mail
      WHERE crm.crm_id IS NOT NULL
    ), turns AS (
      SELECT *,
        row_number() OVER (PARTITION BY recipient ORDER BY due_at, id) AS recipient_turn,
        row_number() OVER (PARTITION BY domain ORDER BY crm_turn, due_at, id) + coalesce((${JSON.stringify(domains)}::jsonb ->> domain)::int, 0) AS domain_turn
      FROM next_of_crm
    ), chosen AS (
      SELECT crm_id, id FROM turns
      WHERE recipient_turn = 1 AND domain_turn <= ${limits.perDomain}
      ORDER BY crm_turn, due_at
      LIMIT ${free}
    ), leased AS (
      SELECT mail.crm_id, mail.id FROM mail JOIN chosen USING (crm_id, id)
      WHERE state = 'pending' AND due_at <= now()
      FOR UPDATE OF mail SKIP LOCKED
    )
    UPDATE mail SET lease = gen_random_uuid(), due_at = least(now() + make_interval(secs => ${leaseMs / 1_000}), expires_at)
    FROM leased WHERE mail.crm_id = leased.crm_id AND mail.id = leased.id
    RETURNING mail.*`.execute(kysely);
  return rows;
}

/** Keeps what is being sent from others for another while. A lease that was lost stays lost, and no mail is kept beyond its expiry. */
export async function renewLeases({ kysely }: Database<NotificationSchema>, mails: Iterable<MailRow>, leaseMs: number): Promise<void> {
  const leases = [...mails].map((mail) => mail.lease);
  if (leases.length === 0) return;
  await kysely
    .updateTable('mail')
    .set({ due_at: sql<Date>`least(now() + make_interval(secs => ${leaseMs / 1_000}), expires_at)` })
    .where('state', '=', 'pending')
    .where('lease', '=', sql<string>`ANY(${leases}::uuid[])`)
    .execute();
}

function domainOf(recipient: string | null): string {
  return recipient?.split('@').at(-1) ?? '';
}

function countBy<T>(items: T[], keyOf: (item: T) => string): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(items, keyOf)].map(([key, group]) => [key, group.length]));
}
