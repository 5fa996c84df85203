import type { CalendarMethod } from '@scheduling/calendar-file';
import type { MessagingSchema } from '@scheduling/messaging';
import type { IdempotencySchema } from '@scheduling/postgres';
import type { ProviderMailTemplate } from '@scheduling/runtime';
import type { ColumnType, Generated } from 'kysely';

export interface NotificationSchema extends MessagingSchema, IdempotencySchema {
  mail: MailTable;
  unwrittenMail: UnwrittenMailTable;
  providerNotice: ProviderNoticeTable;
  providerMailCount: ProviderMailCountTable;
  recentMail: RecentMailTable;
  sandboxMail: SandboxMailTable;
  eventOrganizer: EventOrganizerTable;
  erasedCustomer: ErasedCustomerTable;
  erasedUser: ErasedUserTable;
  erasedProvider: ErasedProviderTable;
  addressErasure: AddressErasureTable;
}

export interface MailAddress {
  name: string;
  address: string;
}

/** An iTIP message sent with a mail. */
export interface MailCalendar {
  method: CalendarMethod;
  text: string;
}

/** What is passed to the mail server. Personal data: it is cleared as soon as the mail is finished. */
export interface MailContent {
  from: MailAddress;
  replyTo?: MailAddress | undefined;
  to: MailAddress;
  /** BCP 47 tag of the texts. */
  language: string;
  subject: string;
  text: string;
  html: string;
  /** One at most: clients act on one only. */
  calendars: MailCalendar[];
}

export interface MailTable {
  crmId: string;
  id: Generated<string>;
  /** Together with `about_id` and template it identifies the mail: a redelivered event creates no second one. */
  eventId: string;
  /**
   * The participation, verification, pending booking or erasure that the mail is about. Mails about one thing are sent
   * in the order of their versions.
   */
  aboutId: string;
  version: number;
  template: string;
  /** The recipient, if the person is a customer; in a mail to a provider, the person whom it is about. */
  customerId: string | null;
  /** The recipient, if the person is a user. */
  userId: string | null;
  /** Whose customer the recipient is, or to whom the mail goes. Null in other mails to a user. */
  providerId: string | null;
  /**
   * Set if this mail holds the last personal data of an erased person: the erasure is confirmed when it is finished.
   */
  erasureId: string | null;
  /** Since when its person is erased: it is being sent, and deleted when that is over. Null in all other mails. */
  erasedAt: Date | null;
  /** Who caused the change that the mail is about, as events say it. Null in other mails. */
  actor: string | null;
  /**
   * The version of the participation whose time, place and title it says: they are read when it is written. Null:
   * `version`.
   */
  toldVersion: number | null;
  /** What it does to the person's calendar. Null if nothing. */
  calendarMethod: CalendarMethod | null;
  /** It reaches nobody, but is kept for the CRM to read. */
  sandbox: Generated<boolean>;
  /** The first mail of which this is a copy that a CRM has requested. Its row may have been deleted by now. */
  resendOf: string | null;
  requestId: string;
  /** The span that stored the mail (W3C Trace Context), when it is traced. */
  traceparent: string | null;
  state: Generated<'pending' | 'sent' | 'failed'>;
  content: ColumnType<MailContent | null, string, null>;
  /** The key of the address (`address_key`), for the limits per recipient and per domain; cleared with the content. */
  recipient: ColumnType<string | null, string, null>;
  /** How many attempts reached the mail server. */
  attempts: Generated<number>;
  /** One attempt ended after the whole mail was handed over: the server may have it. */
  uncertain: Generated<boolean>;
  dueAt: Generated<Date>;
  /** From this time on it is no longer sent. */
  expiresAt: Date | null;
  /** Fencing token of the delivery that holds the mail until `due_at`. */
  lease: string | null;
  lastError: string | null;
  /** Waits for an hour in which a quota has room. */
  held: Generated<boolean>;
  createdAt: Generated<Date>;
  finishedAt: Date | null;
}

/**
 * What a mail about a change of a participation needs to be written, until that is done: CRMs take turns. Nothing in it
 * is personal; name and address are asked of their owner then.
 */
export interface UnwrittenMailTable {
  crmId: string;
  /** That of the mail, too. */
  id: Generated<string>;
  eventId: string;
  /** The participation. */
  aboutId: string;
  version: number;
  template: string;
  /** As in a mail. */
  customerId: string;
  providerId: string | null;
  actor: string;
  calendarMethod: CalendarMethod | null;
  requestId: string;
  traceparent: string | null;
  /** Always: what is written is no longer here. */
  state: Generated<'pending'>;
  /** The event of the previous change of the participation with a mail, which comes first. Null if there is none. */
  previousEventId: string | null;
  /** In a reminder of a booking, the start of which it reminds. Null in other mails. */
  startsAt: Date | null;
  /** The same of a request that nobody has decided. */
  requestedStartsAt: Date | null;
  /** As in a mail: what is not written by then is not needed any more. */
  expiresAt: Date | null;
  /** How many times it could not be written. */
  attempts: Generated<number>;
  /** How many of them were not because something did not answer. */
  failures: Generated<number>;
  dueAt: Generated<Date>;
  lease: string | null;
  createdAt: Generated<Date>;
}

/** To which of a provider's recipients a mail goes: its own address or its owner's, or the contact of the appointment. */
export type ProviderMailRecipient = 'PROVIDER' | 'CONTACT';

/**
 * What a mail to a provider needs to be written, until that is done, or what a list of them has as an entry. Nothing in
 * it is personal.
 */
export interface ProviderNoticeTable {
  crmId: string;
  /** That of the mail, too. */
  id: Generated<string>;
  eventId: string;
  recipient: ProviderMailRecipient;
  template: ProviderMailTemplate;
  /**
   * What the mails to this recipient about one participation, or about one whole appointment, share: they are sent in
   * the order of the versions. Of a list, its recipient and its hour, or its day.
   */
  aboutId: string;
  version: number;
  /** The participation, or some of the appointment: the first one that still exists is asked for. None for a list. */
  participationIds: Generated<string[]>;
  /** Of the first one, at the change. */
  participationVersion: Generated<number>;
  /** The person, as in a mail. Null if it says nothing of a person. */
  customerId: string | null;
  providerId: string;
  actor: string;
  requestId: string;
  traceparent: string | null;
  /** `listed`: the recipient was not told by a mail of its own, but is by a list. */
  state: Generated<'pending' | 'listed'>;
  /** The list of which it is an entry, and the mail of that list. */
  listId: string | null;
  /** As in an unwritten mail. */
  previousEventId: string | null;
  requestedStartsAt: Date | null;
  /** Of a list: whose it is, as identity names the recipient. Null for others. */
  recipientId: string | null;
  /** Of the list of a day, and its entries: which day, YYYY-MM-DD. Null for others. */
  day: string | null;
  /** Of the list of a day: when it is over. Null for others. */
  expiresAt: Date | null;
  /** As in an unwritten mail. */
  attempts: Generated<number>;
  failures: Generated<number>;
  dueAt: Generated<Date>;
  lease: string | null;
  createdAt: Generated<Date>;
}

/** How many mails about bookings a recipient of a provider has got in an hour. */
export interface ProviderMailCountTable {
  crmId: string;
  /** SHA-256 of the CRM and the key of the address. */
  recipientDigest: Buffer;
  /** When it is over. */
  until: Date;
  mails: number;
}

/** The mails sent in this hour, for the quotas. Deleted with the mail, so with its customer, too. */
export interface RecentMailTable {
  crmId: string;
  mailId: string;
  /** SHA-256 of the CRM and the key of the address. */
  recipientDigest: Buffer;
  sentAt: Generated<Date>;
}

/** A mail of a sandbox, as it would have been sent. Personal data: it is deleted with its mail, or after 7 days. */
export interface SandboxMailTable {
  crmId: string;
  mailId: string;
  /** The key of the address (`address_key`). */
  recipient: string;
  content: MailContent;
  sentAt: Generated<Date>;
}

/**
 * The organizer of the event of a participation in calendars, since its first mail: a calendar may ignore what comes
 * from another one. The address of the provider then, or of the sender.
 */
export interface EventOrganizerTable {
  crmId: string;
  participationId: string;
  /** Null if an earlier version has stored it: the provider of the mails about the participation. */
  providerId: string | null;
  address: string;
  /** 30 days after the end of the appointment, as the last mail says it. */
  keepUntil: Date;
}

/** Customers whose data must no longer be stored. The ids alone reveal nothing about them. */
export interface ErasedCustomerTable {
  crmId: string;
  customerId: string;
  erasedAt: Generated<Date>;
}

/** The same for users. */
export interface ErasedUserTable {
  crmId: string;
  userId: string;
  erasedAt: Generated<Date>;
}

/** Providers that were deleted: no mail of theirs may be stored any more. */
export interface ErasedProviderTable {
  crmId: string;
  providerId: string;
  erasedAt: Generated<Date>;
}

/** How many times addresses of a CRM have been erased. */
export interface AddressErasureTable {
  crmId: string;
  erasures: number;
}
