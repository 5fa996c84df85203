import type { Database } from '@scheduling/postgres';
import { createBatcher } from '@scheduling/runtime';
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
 * Decides whether a leased mail has to wait for a later hour. Undefined: it can be sent now. The mails sent so far are counted without a lock, for all
 * mails that are leased together at once, so concurrent deliveries can exceed a quota by as many mails as they send at once.
 */
export function createQuotaCheck(
  { kysely }: Database<NotificationSchema>,
  quotas: MailQuotas,
  timings: Pick<MailTimings, 'quotaWindowMs' | 'giveUpMs'>,
): (mail: MailRow) => Promise<QuotaDecision | undefined> {
  const readUse = createBatcher<MailRow, QuotaUse | undefined>((mails) => readQuotaUse(kysely, mails, quotas, timings.quotaWindowMs));
  return async (mail) => {
    if (urgentTemplates.includes(mail.template)) return undefined;
    const use = await readUse(mail);
    // Another process holds the mail by now, or the person was erased.
    if (use === undefined) return { outcome: 'postpone', reason: 'lease lost', serverAway: false };
    if (use.isSuperseded) return { outcome: 'drop', reason: 'superseded', serverAway: false };
    const reason = exhaustedQuota(use, quotas);
    if (reason === undefined) return undefined;
    const lastHeld = await readLastHeld(kysely, mail, reason, use.windowEnd);
    return decideOnWait(reason, firstWindowWithRoom(use.windowEnd, lastHeld, quotaOf(reason, quotas), timings.quotaWindowMs), mail.createdAt, timings.giveUpMs);
  };
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

/** Counts no further than the quotas, and the mails of a CRM only once. */
async function readQuotaUse(db: Kysely<NotificationSchema>, mails: MailRow[], quotas: MailQuotas, windowMs: number): Promise<(QuotaUse | undefined)[]> {
  const asked = mails.map((mail) => ({ crm_id: mail.crmId, id: mail.id, lease: mail.lease, recipient_digest: recipientDigest(mail).toString('hex') }));
  const { rows } = await sql<QuotaUse & { lease: string }>`
    WITH quota_window AS (
      SELECT date_bin(length, now(), 'epoch') AS starts_at, date_bin(length, now(), 'epoch') + length AS ends_at
      FROM make_interval(secs => ${windowMs / 1_000}) AS length
    ), asked AS (
      SELECT crm_id, id, lease, decode(recipient_digest, 'hex') AS recipient_digest
      FROM jsonb_to_recordset(${JSON.stringify(asked)}::jsonb) AS asked (crm_id text, id uuid, lease uuid, recipient_digest text)
    ), crm AS MATERIALIZED (
      SELECT crm_id, (
        SELECT count(*) FROM (
          SELECT FROM recent_mail, quota_window WHERE recent_mail.crm_id = each.crm_id AND sent_at >= starts_at LIMIT ${quotas.inTotal}
        ) AS counted
      )::int AS in_total
      FROM (SELECT DISTINCT crm_id FROM asked) AS each
    )
    SELECT
      lease,
      (SELECT count(*) FROM (
        SELECT FROM recent_mail
        WHERE recent_mail.crm_id = mail.crm_id AND recent_mail.recipient_digest = asked.recipient_digest AND sent_at >= starts_at LIMIT ${quotas.toOneRecipient}
      ) AS counted)::int AS to_recipient,
      in_total,
      ends_at AS window_end,
      held AND EXISTS (
        SELECT FROM mail AS later
        WHERE later.crm_id = mail.crm_id AND later.about_id = mail.about_id AND later.version > mail.version
          AND later.state = 'pending' AND later.template = ANY (${urgentTemplates})
      ) AS is_superseded
    FROM asked JOIN mail USING (crm_id, id, lease) JOIN crm USING (crm_id), quota_window`.execute(db);
  const uses = new Map(rows.map(({ lease, ...use }) => [lease, use]));
  return mails.map(({ lease }) => uses.get(lease!));
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
