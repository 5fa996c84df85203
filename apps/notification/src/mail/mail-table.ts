import type { LeasedRow, LeasedTable } from '@scheduling/delivery';
import { consumerName, events, retentionMs } from '@scheduling/events';
import { type MailTemplate, participationMailTemplates } from '@scheduling/runtime';
import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { MailTable, UnwrittenMailTable } from '../db/schema.ts';
import { participationMailKinds, stateOfReminder } from './mail-of-change.ts';

export type MailRow = Selectable<MailTable> & LeasedRow;
export type UnwrittenMailRow = Selectable<UnwrittenMailTable> & LeasedRow;

/** The kinds of mail that are about no change: the one about the last change comes first. */
const reminderTemplates: readonly string[] = [
  ...Object.keys(stateOfReminder),
  'provider-request-waiting' satisfies MailTemplate,
];

/** The kinds of mail that never wait for a quota. */
export const urgentTemplates: readonly string[] = [
  ...participationMailTemplates.filter((template) => participationMailKinds[template].isUrgent),
  'removed-by-deletion' satisfies MailTemplate,
];

/** How many mails about one thing wait, not counting urgent ones: the first, and the newest. */
export const maxWaitingAboutOne = 5;

/**
 * The mails of a CRM to one recipient are sent one at a time, and those about one thing in the order of its versions. A
 * mail that waits for a quota does not keep an urgent one waiting: that one is sent first, and then supersedes it.
 */
export const mailTable: LeasedTable = {
  name: 'mail',
  expires: true,
  lane: sql<string>`item.crm_id || ' ' || item.recipient`,
  host: sql<string>`split_part(item.recipient, '@', -1)`,
  isBlocked: sql<boolean>`${firstEarlier(sql`true`)} IS NOT NULL
    AND NOT (item.template = ANY (${urgentTemplates}) AND ${isAfterHeld()} IS NOT NULL AND ${firstEarlier(sql`true`, sql`AND earlier.lease IS NOT NULL`)} IS NULL)`,
  // The others wait for the first one, too.
  blockedUntil: firstEarlier(sql<Date>`CASE WHEN earlier.lease IS NULL THEN earlier.due_at END`),
};

/** After so many failures to write a mail, an operator has to see why. */
export const suspiciousFailures = 10;

/** The consumer whose events mails are about. */
const consumer = consumerName('notification', events.participationChanged);

/**
 * How long a mail waits for the event about which the one before it is. It is delivered again until it was processed or
 * put aside, and published again if NATS has lost it, so it does not come only if a database was restored from a
 * backup.
 */
const longestWait = sql`interval '1 hour'`;

/**
 * The mails about one thing are written in the order of its versions, also if their events arrive in another one, and
 * each after the one before it was sent: what waits for a quota, or for a mail server, need not be written, and is not
 * once a later one supersedes it. An urgent one is written while an earlier mail waits for a quota, because it is sent
 * first then. If an earlier mail waits for anything else, the ones before the urgent one are written, and then the
 * urgent one, because its content must not be lost: the participation may be deleted meanwhile. One that cannot be
 * written for some time does not keep the later ones waiting any more.
 */
export const unwrittenMailTable: LeasedTable = {
  name: 'unwritten_mail',
  expires: false,
  lane: sql<string>`item.crm_id || ' ' || item.about_id`,
  // What they share is the limit for their CRM.
  host: sql<string>`item.crm_id`,
  isBlocked: sql<boolean>`${isEventMissing()} OR CASE WHEN item.template = ANY (${urgentTemplates})
    THEN ${isUnwrittenEarlier()} AND ${isAfterHeld()} IS NULL
    ELSE ${isUnwrittenEarlier()} OR ${firstEarlier(sql`true`)} IS NOT NULL AND NOT (${isBeforeUrgent()} AND ${isAfterHeld()} IS NULL) END`,
  blockedUntil: firstEarlier(sql<Date>`CASE WHEN earlier.lease IS NULL THEN earlier.due_at END`),
};

/** Whether the event before its own has not been processed yet, but can still come. */
export function isEventMissing(): RawBuilder<boolean> {
  return sql`(item.previous_event_id IS NOT NULL
    AND item.created_at > now() - ${longestWait}
    AND uuid_extract_timestamp(item.previous_event_id) > now() - ${sql.lit(`${retentionMs} milliseconds`)}::interval
    AND NOT EXISTS (SELECT FROM inbox WHERE consumer = ${consumer} AND event_id = item.previous_event_id)
    AND NOT EXISTS (SELECT FROM dead_letter WHERE consumer = ${consumer} AND event_id = item.previous_event_id))`;
}

/** In the order of the versions. */
export function isEarlier(): RawBuilder<boolean> {
  return sql`earlier.version <= item.version AND (
    earlier.version < item.version OR item.template = ANY (${reminderTemplates}) AND earlier.template <> ALL (${reminderTemplates}))`;
}

function isUnwrittenEarlier(): RawBuilder<boolean> {
  return sql`EXISTS (
    SELECT FROM unwritten_mail AS earlier WHERE earlier.crm_id = item.crm_id AND earlier.about_id = item.about_id AND ${isEarlier()}
       AND earlier.failures < ${suspiciousFailures}
  )`;
}

function isBeforeUrgent(): RawBuilder<boolean> {
  return sql`EXISTS (
    SELECT FROM unwritten_mail AS later
     WHERE later.crm_id = item.crm_id AND later.about_id = item.about_id AND later.version > item.version AND later.template = ANY (${urgentTemplates})
  )`;
}

/** Null if no earlier mail waits for a quota. */
function isAfterHeld(): RawBuilder<boolean | null> {
  return firstEarlier(sql<boolean>`true`, sql`AND earlier.held AND earlier.lease IS NULL`);
}

/**
 * Something of the first pending mail about the same thing that comes before it, in the order of the index `mail_order`.
 */
function firstEarlier<Value>(
  value: RawBuilder<Value>,
  condition: RawBuilder<unknown> = sql``,
): RawBuilder<Value | null> {
  return sql`(
    SELECT ${value} FROM mail AS earlier
     WHERE earlier.crm_id = item.crm_id AND earlier.about_id = item.about_id AND ${isEarlier()} AND earlier.state = 'pending' ${condition}
     ORDER BY earlier.version
     LIMIT 1
  )`;
}
