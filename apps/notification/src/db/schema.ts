import type { CalendarMethod } from '../calendar/write-calendar.ts';
import type { MessagingSchema } from '@scheduling/messaging';
import type { ColumnType, Generated } from 'kysely';

export interface NotificationSchema extends MessagingSchema {
  mail: MailTable;
  erasedCustomer: ErasedCustomerTable;
}

export interface MailAddress {
  name: string;
  address: string;
}

/** An iTIP message that goes with a mail. */
export interface MailCalendar {
  method: CalendarMethod;
  text: string;
}

/** What is handed to the mail server. Personal data: it is blanked as soon as the mail is finished. */
export interface MailContent {
  from: MailAddress;
  replyTo?: MailAddress | undefined;
  to: MailAddress;
  /** BCP 47 tag of the texts. */
  language: string;
  subject: string;
  text: string;
  html: string;
  calendars: MailCalendar[];
}

export interface MailTable {
  crmId: string;
  id: Generated<string>;
  /** With `about_id` and template the mail's identity: an event that comes twice makes no second mail. */
  eventId: string;
  /** The participation, verification or erasure that the mail is about. Mails about one thing leave in the order of their versions. */
  aboutId: string;
  version: number;
  template: string;
  /** Whose mail it is, when the person is a customer. */
  customerId: string | null;
  /** This mail is the last thing that keeps personal data of an erased person: the erasure is confirmed when it is finished. */
  erasureId: string | null;
  requestId: string;
  /** The span that stored the mail (W3C Trace Context), when it is traced. */
  traceparent: string | null;
  state: Generated<'pending' | 'sent' | 'failed'>;
  content: ColumnType<MailContent | null, string, null>;
  /** The address, in lower case, for the limits on one recipient and one domain; blanked with the content. */
  recipient: ColumnType<string | null, string, null>;
  /** How often the mail server dealt with it. */
  attempts: Generated<number>;
  /** One attempt ended after the whole mail was handed over: the server may have it. */
  uncertain: Generated<boolean>;
  dueAt: Generated<Date>;
  /** From then on nothing is sent any more. */
  expiresAt: Date | null;
  /** Fencing token of the delivery that holds the mail until `due_at`. */
  lease: string | null;
  lastError: string | null;
  createdAt: Generated<Date>;
  finishedAt: Date | null;
}

/** Persons whose data must not be stored any more. The ids alone say nothing of them. */
export interface ErasedCustomerTable {
  crmId: string;
  customerId: string;
  erasedAt: Generated<Date>;
}
