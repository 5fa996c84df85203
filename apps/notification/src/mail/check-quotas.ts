import type { Database } from '@scheduling/postgres';
import { type Kysely, sql } from 'kysely';
import { createHash } from 'node:crypto';
import type { NotificationSchema } from '../db/schema.ts';
import { type MailRow, urgentTemplates } from './mail-table.ts';
import type { MailTimings } from './timings.ts';

/** How many mails a CRM may send in an hour by the clock, 11:00 to 12:00; 0: any number. */
export interface MailQuotas {
  toOneRecipient: number;
  inTotal: number;
}

export type QuotaReason = 'recipient-quota' | 'crm-quota';

/** Why a mail is not sent now. `serverAway` is false: this says nothing about the mail server. */
export type QuotaDecision =
  /** `room`: how many can wait until then, with this one. */
  | { outcome: 'hold'; until: Date; room: number; reason: QuotaReason; serverAway: false }
  /** `storedBefore`: the same goes for mails that were. */
  | { outcome: 'drop'; storedBefore: Date; reason: QuotaReason; serverAway: false }
  | { outcome: 'drop'; reason: 'superseded'; serverAway: false }
  | { outcome: 'postpone'; reason: 'lease lost'; serverAway: false };

interface QuotaUse {
  toRecipient: number;
  inTotal: number;
  windowEnd: Date;
  /** The mail was held, and a later urgent one about the same booking is pending. */
  isSuperseded: boolean;
}

/** Until a window, in which so many more mails can be sent. */
interface Wait {
  until: Date;
  room: number;
}

/** The mails that wait for the same quota the longest. */
interface LastHeld {
  dueAt: Date;
  count: number;
}

/**
 * Decides whether a leased mail has to wait for a later hour. Undefined: it can be sent now. The mails sent so far are counted without a lock,
 * so concurrent deliveries can exceed a quota by as many mails as they send at once.
 */
export async function checkQuotas({ kysely }: Database<NotificationSchema>, mail: MailRow, quotas: MailQuotas, timings: MailTimings): Promise<QuotaDecision | undefined> {
  if (urgentTemplates.includes(mail.template)) return undefined;
  const use = await readQuotaUse(kysely, mail, quotas, timings.quotaWindowMs);
  // Another process holds the mail by now, or the person was erased.
  if (use === undefined) return { outcome: 'postpone', reason: 'lease lost', serverAway: false };
  if (use.isSuperseded) return { outcome: 'drop', reason: 'superseded', serverAway: false };
  const reason = exhaustedQuota(use, quotas);
  if (reason === undefined) return undefined;
  const wait = firstWindowWithRoom(use.windowEnd, await readLastHeld(kysely, mail, reason, use.windowEnd), quotaOf(reason, quotas), timings.quotaWindowMs);
  return decideOnWait(reason, wait, mail.createdAt, timings.giveUpMs);
}

export function exhaustedQuota({ toRecipient, inTotal }: Pick<QuotaUse, 'toRecipient' | 'inTotal'>, quotas: MailQuotas): QuotaReason | undefined {
  if (quotas.toOneRecipient > 0 && toRecipient >= quotas.toOneRecipient) return 'recipient-quota';
  return quotas.inTotal > 0 && inTotal >= quotas.inTotal ? 'crm-quota' : undefined;
}

function quotaOf(reason: QuotaReason, quotas: MailQuotas): number {
  return reason === 'recipient-quota' ? quotas.toOneRecipient : quotas.inTotal;
}

/** Each window gets as many waiting mails as can be sent in it: if all waited for the next one, most would be held again, every hour. */
export function firstWindowWithRoom(windowEnd: Date, lastHeld: LastHeld | undefined, quota: number, windowMs: number): Wait {
  if (lastHeld === undefined) return { until: windowEnd, room: quota };
  if (lastHeld.count < quota) return { until: lastHeld.dueAt, room: quota - lastHeld.count };
  return { until: new Date(lastHeld.dueAt.getTime() + windowMs), room: quota };
}

export function decideOnWait(reason: QuotaReason, { until, room }: Wait, createdAt: Date, giveUpMs: number): QuotaDecision {
  const storedBefore = new Date(until.getTime() - giveUpMs);
  if (createdAt < storedBefore) return { outcome: 'drop', storedBefore, reason, serverAway: false };
  return { outcome: 'hold', until, room, reason, serverAway: false };
}

/** Counts no further than the quotas. */
async function readQuotaUse(db: Kysely<NotificationSchema>, mail: MailRow, quotas: MailQuotas, windowMs: number): Promise<QuotaUse | undefined> {
  const { rows } = await sql<QuotaUse>`
    WITH quota_window AS (
      SELECT date_bin(length, now(), 'epoch') AS starts_at, date_bin(length, now(), 'epoch') + length AS ends_at
      FROM make_interval(secs => ${windowMs / 1_000}) AS length
    ), recent AS NOT MATERIALIZED (
      SELECT recipient_digest FROM recent_mail, quota_window WHERE crm_id = ${mail.crmId} AND sent_at >= starts_at
    )
    SELECT
      (SELECT count(*) FROM (SELECT FROM recent WHERE recipient_digest = ${recipientDigest(mail)} LIMIT ${quotas.toOneRecipient}) AS counted)::int AS to_recipient,
      (SELECT count(*) FROM (SELECT FROM recent LIMIT ${quotas.inTotal}) AS counted)::int AS in_total,
      ends_at AS window_end,
      held AND EXISTS (
        SELECT FROM mail AS later
        WHERE later.crm_id = mail.crm_id AND later.about_id = mail.about_id AND later.version > mail.version
          AND later.state = 'pending' AND later.template = ANY (${urgentTemplates})
      ) AS is_superseded
    FROM mail, quota_window
    WHERE crm_id = ${mail.crmId} AND id = ${mail.id} AND lease = ${mail.lease}`.execute(db);
  return rows[0];
}

function readLastHeld(db: Kysely<NotificationSchema>, { crmId, recipient }: MailRow, reason: QuotaReason, windowEnd: Date): Promise<LastHeld | undefined> {
  return db
    .selectFrom('mail')
    .select((select) => ['dueAt', select.fn.countAll<number>().as('count')])
    .where('crmId', '=', crmId)
    .where('state', '=', 'pending')
    .where('held', '=', true)
    .where('dueAt', '>=', windowEnd)
    .$if(reason === 'recipient-quota', (query) => query.where('recipient', '=', recipient))
    .groupBy('dueAt')
    .orderBy('dueAt', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Identifies a recipient among those of a CRM, so that the same person cannot be recognised in two of them. Still personal data. */
export function recipientDigest({ crmId, recipient }: Pick<MailRow, 'crmId' | 'recipient'>): Buffer {
  return createHash('sha256').update(`${crmId} ${recipient}`).digest();
}
