import { type Database, readFunction } from '@scheduling/postgres';
import { createBatcher, inSpan, providerMailTemplates } from '@scheduling/runtime';
import type { Kysely } from 'kysely';
import { LRUCache } from 'lru-cache';
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
  | { outcome: 'postpone'; reason: 'not its turn'; serverAway: false };

interface QuotaUse {
  toRecipient: number;
  /** Null if it was not counted, because the last count left room for this mail. */
  inTotal: number | null;
  windowEnd: Date;
  /**
   * The mail was held, and a later urgent one about the same booking is pending, or a later urgent one is being sent. Or
   * it is a reminder, and a later mail waits.
   */
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

/** How many more mails of a CRM can be sent before they are counted again. */
type RoomOfCrms = LRUCache<string, { mails: number }>;

/**
 * A CRM's mails are counted again after this, and after a tenth of what its quota left room for: other processes send
 * mails of this CRM, too.
 */
const countedForMs = 1_000;
const countedForPart = 0.1;
const maxCountedCrms = 10_000;

/**
 * Decides whether a leased mail has to wait for a later hour, or must not be sent at all. Undefined: it can be sent
 * now. The mails sent so far are counted without a lock, so concurrent deliveries can exceed a quota by as many mails
 * as they send at once, and more than ten processes by a tenth of what was left for each further one.
 */
export function createQuotaCheck(
  { kysely }: Database<NotificationSchema>,
  quotas: MailQuotas,
  timings: Pick<MailTimings, 'quotaWindowMs' | 'giveUpMs'>,
): (mail: MailRow) => Promise<QuotaDecision | undefined> {
  const roomOfCrms: RoomOfCrms = new LRUCache({ max: maxCountedCrms, ttl: countedForMs });
  const readUse = createBatcher<MailRow, QuotaUse | undefined>((mails) =>
    readQuotaUse(kysely, mails, { quotas, windowMs: timings.quotaWindowMs, roomOfCrms }),
  );
  return async (mail) => {
    const use = await inSpan('check quotas', { kind: 'INTERNAL' }, () => readUse(mail));
    // Another process holds the mail by now, or sends an earlier one about the same booking, or the person or the
    // provider was erased.
    if (use === undefined) return { outcome: 'postpone', reason: 'not its turn', serverAway: false };
    if (neverWaits(mail)) return undefined;
    if (use.isSuperseded) return { outcome: 'drop', reason: 'superseded', serverAway: false };
    const own = quotasOf(mail, quotas);
    const reason = exhaustedQuota(use, own);
    if (reason === undefined) return undefined;
    const lastHeld = await readLastHeld(kysely, mail, reason, use.windowEnd);
    return decideOnWait(
      reason,
      firstWindowWithRoom(use.windowEnd, lastHeld, quotaOf(reason, own), timings.quotaWindowMs),
      mail.createdAt,
      timings.giveUpMs,
    );
  };
}

/**
 * Those to a provider have a quota for each recipient that was counted when they were written. They get half of what the
 * CRM can send, so that customers are told first.
 */
function quotasOf(mail: MailRow, { toOneRecipient, inTotal }: MailQuotas): MailQuotas {
  return isToProvider(mail) ? { toOneRecipient: 0, inTotal: Math.ceil(inTotal / 2) } : { toOneRecipient, inTotal };
}

/** Whether it tells a provider about its bookings. */
export function isToProvider({ template }: Pick<MailRow, 'template'>): boolean {
  return (providerMailTemplates as readonly string[]).includes(template);
}

/** A copy waits, whatever it says: a CRM can request any number of them. */
function neverWaits({ template, resendOf }: MailRow): boolean {
  return resendOf === null && urgentTemplates.includes(template);
}

export function exhaustedQuota(
  { toRecipient, inTotal }: Pick<QuotaUse, 'toRecipient' | 'inTotal'>,
  quotas: MailQuotas,
): QuotaReason | undefined {
  if (quotas.toOneRecipient > 0 && toRecipient >= quotas.toOneRecipient) return 'recipient-quota';
  return quotas.inTotal > 0 && (inTotal ?? 0) >= quotas.inTotal ? 'crm-quota' : undefined;
}

function quotaOf(reason: QuotaReason, quotas: MailQuotas): number {
  return reason === 'recipient-quota' ? quotas.toOneRecipient : quotas.inTotal;
}

/**
 * Each window gets as many waiting mails as can be sent in it: if all waited for the next one, most would be held
 * again, every hour.
 */
export function firstWindowWithRoom(
  windowEnd: Date,
  lastHeld: LastHeld | undefined,
  quota: number,
  windowMs: number,
): Wait {
  if (lastHeld === undefined) return { until: windowEnd, room: quota };
  if (lastHeld.count < quota) return { until: lastHeld.dueAt, room: quota - lastHeld.count };
  return { until: new Date(lastHeld.dueAt.getTime() + windowMs), room: quota };
}

export function decideOnWait(
  reason: QuotaReason,
  { until, room }: Wait,
  createdAt: Date,
  giveUpMs: number,
): QuotaDecision {
  const storedBefore = new Date(until.getTime() - giveUpMs);
  if (createdAt < storedBefore) return { outcome: 'drop', storedBefore, reason, serverAway: false };
  return { outcome: 'hold', until, room, reason, serverAway: false };
}

async function readQuotaUse(
  db: Kysely<NotificationSchema>,
  mails: MailRow[],
  { quotas, windowMs, roomOfCrms }: { quotas: MailQuotas; windowMs: number; roomOfCrms: RoomOfCrms },
): Promise<(QuotaUse | undefined)[]> {
  const asked = mails.map((mail) => ({
    crmId: mail.crmId,
    id: mail.id,
    lease: mail.lease,
    recipientDigest: countedDigest(mail).toString('hex'),
  }));
  const countedCrms = [...new Set(mails.filter(({ crmId }) => !takeRoom(roomOfCrms, crmId)).map(({ crmId }) => crmId))];
  const request = { ...quotas, windowSeconds: windowMs / 1_000, urgentTemplates, mails: asked, countedCrms };
  const rows = await readFunction<QuotaUse & { crmId: string; lease: string }>(db, { name: 'read_quota_use', request });
  for (const { crmId, inTotal } of rows) {
    if (inTotal !== null) roomOfCrms.set(crmId, { mails: Math.floor((quotas.inTotal - inTotal) * countedForPart) });
  }
  const uses = new Map(rows.map((use) => [use.lease, use]));
  return mails.map(({ lease }) => uses.get(lease!));
}

/** False if the mails of the CRM have to be counted first. */
function takeRoom(roomOfCrms: RoomOfCrms, crmId: string): boolean {
  const room = roomOfCrms.get(crmId);
  if (room === undefined || room.mails <= 0) return false;
  room.mails -= 1;
  return true;
}

function readLastHeld(
  db: Kysely<NotificationSchema>,
  { crmId, recipient, template }: MailRow,
  reason: QuotaReason,
  windowEnd: Date,
): Promise<LastHeld | undefined> {
  return db
    .selectFrom('mail')
    .select((select) => ['dueAt', select.fn.countAll<number>().as('count')])
    .where('crmId', '=', crmId)
    .where('state', '=', 'pending')
    .where('held', '=', true)
    .where('dueAt', '>=', windowEnd)
    .$if(isToProvider({ template }), (query) => query.where('template', 'in', providerMailTemplates))
    .$if(reason === 'recipient-quota', (query) => query.where('recipient', '=', recipient))
    .groupBy('dueAt')
    .orderBy('dueAt', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Under which a mail is counted: those to a provider are not among those to a person with the same address. */
export function countedDigest(mail: Pick<MailRow, 'crmId' | 'recipient' | 'template'>): Buffer {
  return isToProvider(mail)
    ? recipientDigest({ ...mail, recipient: `provider ${mail.recipient}` })
    : recipientDigest(mail);
}

/**
 * Identifies a recipient among those of a CRM, so that the same person cannot be recognised in two of them. Still
 * personal data.
 */
export function recipientDigest({ crmId, recipient }: Pick<MailRow, 'crmId' | 'recipient'>): Buffer {
  return createHash('sha256').update(`${crmId} ${recipient}`).digest();
}
