import type { CalendarMethod } from '@scheduling/calendar-file';
import { callFunction, type Database } from '@scheduling/postgres';
import { currentContext, currentTraceparent, type MailTemplate, newRequestId } from '@scheduling/runtime';
import type { Transaction } from 'kysely';
import type { MailContent, NotificationSchema } from '../db/schema.ts';
import { maxWaitingAboutOne, urgentTemplates } from './mail-table.ts';

export interface MailIntent {
  crmId: string;
  eventId: string;
  aboutId: string;
  version: number;
  template: MailTemplate;
  /** The version of the participation whose time and place it says, if that is not `version`. */
  toldVersion?: number | undefined;
  /**
   * The recipient, if the person is a customer; of a participant who was embedded in an appointment, the id of the
   * participation.
   */
  customerId?: string | undefined;
  /** The recipient, if the person is a user. */
  userId?: string | undefined;
  /** Whose customer the recipient is, or to whom the mail goes; undefined in other mails to a user. */
  providerId?: string | undefined;
  /** Who caused the change of the participation that it is about, as events say it. */
  actor?: string | undefined;
  /** What it does to the person's calendar, if anything. */
  calendarMethod?: CalendarMethod | undefined;
  /** Who is the organizer of the event that it puts into the calendar, and when that ends. */
  organizer?: { address: string; eventEnd: Date } | undefined;
  /** The first mail of which this is a copy. */
  resendOf?: string | undefined;
  /** When it is no longer worth sending. */
  expiresAt?: Date | undefined;
  content: MailContent;
  /** Whether its CRM is a sandbox, whose mails reach nobody. */
  sandbox: boolean;
}

/** The last mail of an erased person: it is sent until it expires, and the erasure is confirmed when it is finished. */
export interface LastMailIntent extends MailIntent {
  customerId: string;
  erasureId: string;
  expiresAt: Date;
}

/**
 * Stores the intent to send; the delivery does the rest. A repeated intent has no effect, nor does a mail to a person,
 * or of a provider, whose data was erased while it was being written. If too many about the same thing wait, it
 * supersedes some of those between the first and the newest ones.
 */
export async function storeMail(
  tx: Transaction<NotificationSchema>,
  intent: MailIntent | LastMailIntent,
): Promise<void> {
  await storeNewMail(tx, intent);
}

/** The same, and returns the id of the mail; null if it had no effect. */
export async function storeNewMail(
  tx: Transaction<NotificationSchema>,
  intent: MailIntent | LastMailIntent,
): Promise<string | null> {
  return callFunction<string | null>(tx, {
    name: 'store_mail',
    request: requestOf(intent),
    locks: `${intent.crmId} ${intent.customerId ?? intent.userId ?? intent.aboutId}`,
  });
}

/** What the SQL functions that store a mail need to know of it, and of the request that caused it. */
export function requestOf(intent: MailIntent | LastMailIntent) {
  const limits = { maxWaiting: maxWaitingAboutOne, urgentTemplates };
  return {
    ...intent,
    ...limits,
    requestId: currentContext()?.requestId ?? newRequestId(),
    traceparent: currentTraceparent(),
  };
}

/** Whether the mail of an event was stored before. */
export async function isStored(
  { kysely }: Database<NotificationSchema>,
  crmId: string,
  eventId: string,
): Promise<boolean> {
  const row = await kysely
    .selectFrom('mail')
    .select('id')
    .where('crmId', '=', crmId)
    .where('eventId', '=', eventId)
    .executeTakeFirst();
  return row !== undefined;
}
