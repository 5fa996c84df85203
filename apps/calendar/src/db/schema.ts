import type { MessagingSchema } from '@scheduling/messaging';
import type { IdempotencySchema } from '@scheduling/postgres';
import type { ColumnType, Generated } from 'kysely';

export interface CalendarSchema extends MessagingSchema, IdempotencySchema {
  provider: ProviderTable;
  closedProvider: ClosedProviderTable;
  customer: CustomerTable;
  timeslot: TimeslotTable;
  resourceHours: ResourceHoursTable;
  resourceBlock: ResourceBlockTable;
  appointment: AppointmentTable;
  participation: ParticipationTable;
  participationMessage: ParticipationMessageTable;
  participationDecision: ParticipationDecisionTable;
  participationPrevious: ParticipationPreviousTable;
  removedParticipation: RemovedParticipationTable;
  bookingRules: BookingRulesTable;
  invitation: InvitationTable;
  invitationBooking: InvitationBookingTable;
  pendingBooking: PendingBookingTable;
  verificationMail: VerificationMailTable;
  sandboxClock: SandboxClockTable;
  reminderMark: ReminderMarkTable;
  dailyListMark: DailyListMarkTable;
  calendarSubscription: CalendarSubscriptionTable;
  shownAppointment: ShownAppointmentTable;
}

/** Calendar's copy of identity's providers. */
export interface ProviderTable {
  crmId: string;
  id: string;
  reference: string;
  timeZone: string;
  version: number;
}

/** A provider that is being deleted, or was: no copy of this version is stored. For a minute, or until identity is back. */
export interface ClosedProviderTable {
  crmId: string;
  id: string;
  version: number;
  /** The booking rules that it had, if the deletion is not completed. */
  rules: unknown;
  closedAt: Generated<Date>;
}

/**
 * Calendar's copy of the customer service's customers. The id of an erased one remains, so that a late copy cannot
 * bring the person back.
 */
export interface CustomerTable {
  crmId: string;
  id: string;
  providerId: string | null;
  reference: string | null;
  userName: string | null;
  email: string | null;
  mobile: string | null;
  language: string | null;
  version: number;
  /** An older copy is not stored: the reference may have changed with this version. */
  requiredVersion: Generated<number>;
  /**
   * Whether nobody else can have the reference: the customer service has it forgotten here before it changes it.
   * Otherwise it is only shown.
   */
  referenceKnown: Generated<boolean>;
  refreshedAt: Generated<Date>;
  erasedAt: Date | null;
}

export interface PostalAddress {
  city?: string | undefined;
  countryCode?: string | undefined;
  street?: string | undefined;
  number?: string | undefined;
  zip?: string | undefined;
}

/** An address, or a free text such as a link to a video call. */
export type Location = PostalAddress | string;

/** pg would send a string as it is, which is not JSON, so locations are serialised first. */
type LocationColumn = ColumnType<Location | null, string | null, string | null>;

export interface TimeslotTable {
  crmId: string;
  id: Generated<string>;
  providerId: string;
  reference: string;
  resourceReference: string;
  startsAt: Date;
  endsAt: Date;
  /** In minutes. */
  raster: number;
  defaultCapacity: number;
  defaultAcceptBookings: boolean;
  address: LocationColumn;
  /** In minutes: how far appointments that bookings make in it keep from others. */
  bufferBefore: Generated<number>;
  bufferAfter: Generated<number>;
  state: 'CREATED' | 'BOOKABLE';
  /**
   * Of the request that created it: distinguishes a retry from another request with the same reference. Of one that was
   * made from hours: of what was made.
   */
  contentDigest: Buffer;
  /**
   * Null: the CRM created it. MADE from hours; HIDDEN, because they do not have it any more and it has appointments;
   * CHANGED by the CRM, whose it is since.
   */
  fromHours: Generated<'MADE' | 'HIDDEN' | 'CHANGED' | null>;
}

/** When a resource is open: timeslots are made from it. */
export interface ResourceHoursTable {
  crmId: string;
  providerId: string;
  resourceReference: string;
  content: ColumnType<Hours, string, string>;
  /** Another one each time that they are set. */
  revision: string;
  /** The zone in which timeslots have been made. Empty: they are to be made anew. */
  timeZone: string;
  /** The days for which that was done last, YYYY-MM-DD, both inclusive. */
  madeFrom: string;
  madeUntil: string;
  /** When there is more to make, by the real time. */
  dueAt: Date;
}

/** A period in which nothing of a resource can be booked. */
export interface ResourceBlockTable {
  crmId: string;
  id: string;
  providerId: string;
  reference: string;
  resourceReference: string;
  startsAt: Date;
  endsAt: Date;
  note: string | null;
}

export type AppointmentState = 'ACTIVE' | 'CANCELLED';

export interface AppointmentTable {
  crmId: string;
  id: Generated<string>;
  providerId: string;
  reference: string;
  seriesId: string | null;
  resourceReference: string;
  productReference: string;
  contactReference: string | null;
  description: string | null;
  notes: string | null;
  address: LocationColumn;
  /** numeric: pg returns it as a string, which keeps every digit. */
  priceValue: ColumnType<string | null, number | null, number | null>;
  priceCurrency: string | null;
  startsAt: Date;
  endsAt: Date;
  capacity: number;
  /** Participations that are BOOKED or RESERVED, changed only while holding a lock on this row. */
  taken: number;
  acceptBookings: boolean;
  /** What the CRM notes of it. Null: nothing. */
  metadata: Record<string, string> | null;
  /** Those of the timeslot in which a booking made it, as they were then; otherwise 0. */
  bufferBefore: Generated<number>;
  bufferAfter: Generated<number>;
  state: Generated<AppointmentState>;
  /** As in {@link TimeslotTable}. */
  contentDigest: Buffer;
  /** What becomes of it when nobody takes part any more. Null: nothing, because it was not made by a booking. */
  whenEmpty: Generated<'REMOVED' | 'CANCELLED' | null>;
  /** None of its participations leads to a person. Triggers remove the mark, whoever writes. */
  anonymised: Generated<boolean>;
  /** Counts its creation and its updates. */
  revision: Generated<number>;
  /** Counts the events about it and its participations, changed only while holding a lock on this row. */
  eventCount: Generated<number>;
}

/** See states.sql. */
export type ParticipationState = 'RESERVED' | 'REQUESTED' | 'BOOKED' | 'CANCELED' | 'DELETED';

export interface ParticipationTable {
  crmId: string;
  id: string;
  appointmentId: string;
  /** Null for one that was embedded in the creation of its appointment and has its own contact data. */
  customerId: string | null;
  reference: string;
  name: string | null;
  email: string | null;
  mobile: string | null;
  note: string | null;
  state: ParticipationState;
  /** Never rejected for lack of capacity: created with `ignoreCapacity`, or together with the appointment. */
  exempt: boolean;
  /** Set if and only if RESERVED; from this time on the row counts as deleted. */
  reservedUntil: Date | null;
  version: Generated<number>;
  /**
   * The event of the last change about which there is a mail; null if there was none. The next such event names it,
   * because mails are sent in their order.
   */
  mailEventId: string | null;
  /** Whether there is a mail that puts it into its person's calendar. */
  invited: Generated<boolean>;
  /** When it was created or last changed, by the database's clock: set by Postgres, whoever writes. */
  changedAt: Generated<Date>;
  /** When the person said that they will be there, at its present time and place. */
  attendanceConfirmedAt: Date | null;
  /** Since when it is for its time and in its state; null: since it was changed last. */
  arrangedAt: Date | null;
  /** How often the person has moved it. */
  movesByPerson: Generated<number>;
  /** The last version in which its time, place or title changed without a mail to the person; null: none. */
  untoldVersion: number | null;
  /** What the CRM notes of it. Null: nothing. Removed by Postgres when it is anonymised, whoever writes. */
  metadata: Record<string, string> | null;
  /** Only of one that is BOOKED: the person did not come. Removed as metadata is. */
  noShow: Generated<boolean>;
  /** The last version that a mail can be about, if only what the CRM notes has changed since; null: see states.sql. */
  mailableVersion: number | null;
}

/** The text that a caller sent with one version of a participation. */
export interface ParticipationMessageTable {
  crmId: string;
  participationId: string;
  version: number;
  text: string;
}

/** By whose link a request was decided. It goes with its participation. */
export interface ParticipationDecisionTable {
  crmId: string;
  participationId: string;
  confirmed: boolean;
  /** A user, or the provider: as identity names the recipient of the link. */
  recipientId: string;
  decidedAt: Date;
}

/** What the appointment of a participation was before the change that made the version, if there is a mail about that. */
export interface ParticipationPreviousTable {
  crmId: string;
  participationId: string;
  version: number;
  startsAt: Date;
  endsAt: Date;
  description: string | null;
  address: LocationColumn;
}

/**
 * A participation that was removed because its customer was erased: kept until every service has been notified of the
 * erasure.
 */
export interface RemovedParticipationTable {
  crmId: string;
  customerId: string;
  participationId: string;
  appointmentId: string;
  version: number;
  invited: Generated<boolean>;
}

/** How a provider can be booked; no row: by the defaults. */
export interface BookingRulesTable {
  crmId: string;
  providerId: string;
  /** In minutes. */
  minimumNotice: number;
  /** In days; null: no limit. */
  horizon: number | null;
  /** In minutes. */
  changeNotice: number;
  confirmation: 'BOOKED' | 'REQUESTED';
  page: boolean;
  /** In minutes before the start. */
  reminders: number[];
  notifyProvider: boolean;
  maxPerPerson: number;
  /** Whether mails have the person's link; null: if there is a page. */
  selfService: boolean | null;
  offers: ColumnType<Offer[], string, string>;
  /** The hour at which the provider gets the list of the day; null: never. */
  dailyList: number | null;
  askMobile: Generated<'NO' | 'OPTIONAL' | 'REQUIRED'>;
  /** Whether what is booked on the page has to be confirmed by a mail. */
  verifyEmail: Generated<boolean>;
  /** Origins of the sites that may show the page in a frame. */
  embedOn: Generated<string[]>;
  /** Who can book on the page. */
  access: Generated<'PUBLIC' | 'INVITED'>;
}

/** A customer can book a product on the provider's page, without saying who they are. */
export interface InvitationTable {
  crmId: string;
  /** A UUIDv7. */
  id: string;
  providerId: string;
  customerId: string;
  /** Of an offer. */
  productReference: string;
  bookings: number;
  /** How many of its bookings have been anonymised, and are not among its InvitationBookingTable. */
  anonymised: Generated<number>;
  /** By the CRM's clock, as createdAt. */
  expiresAt: Date;
  createdAt: Date;
}

/** What was booked by an invitation, whatever has become of it. */
export interface InvitationBookingTable {
  crmId: string;
  participationId: string;
  invitationId: string;
}

/** What somebody wants to book on a page, until whoever has the address confirms it. */
export interface PendingBookingTable {
  crmId: string;
  /** A UUIDv7. */
  id: string;
  providerId: string;
  /** On the page. */
  choice: string;
  /** The key of the offer. */
  offer: string;
  /** Its name. */
  description: string;
  resourceReference: string;
  startsAt: Date;
  endsAt: Date;
  address: Location | null;
  priceValue: number | null;
  priceCurrency: string | null;
  name: string;
  email: string;
  mobile: string | null;
  note: string | null;
  /** Language tag. */
  language: string;
  /** By the real time. */
  expiresAt: Date;
  /** For whom it was booked; null: it was not. */
  customerId: string | null;
}

/** A mail to an address that nobody has confirmed. */
export interface VerificationMailTable {
  crmId: string;
  pendingBookingId: string;
  /** See store-pending-booking.sql. */
  addressDigest: Buffer;
  sentAt: Generated<Date>;
}

/** What can be booked on the provider's page. */
export interface Offer {
  productReference: string;
  name: string;
  /** In minutes. */
  duration: number;
  price?: { value: number; currency: string } | undefined;
  resources: { resourceReference: string; name: string }[];
}

/** When a resource is open (interface 14), by the clock on the wall in the provider's time zone. */
export interface Hours {
  weekly: WeeklyWindow[];
  /** Each replaces the weekly windows of its days. Of several with the same day, the last one counts. */
  exceptions: HoursException[];
  /** Dates, YYYY-MM-DD, both inclusive. */
  validFrom: string | null;
  validUntil: string | null;
  /** For how many days timeslots are made, with the present one. */
  aheadDays: number;
}

export interface HoursWindow {
  /** HH:MM. */
  from: string;
  /** HH:MM, or 24:00. Not after `from`: on the next day. */
  to: string;
  /** In minutes. */
  raster: number;
  defaultCapacity: number;
  defaultAcceptBookings: boolean;
  address: Location | null;
  /** In minutes. Absent in hours that were stored before windows had them: 0. */
  bufferBefore?: number;
  bufferAfter?: number;
}

export interface WeeklyWindow extends HoursWindow {
  /** "1" (Monday) to "7" (Sunday). */
  weekdays: string[];
}

export interface HoursException {
  /** Dates, YYYY-MM-DD, both inclusive. */
  from: string;
  to: string;
  /** None: closed. */
  windows: HoursWindow[];
  note: string | null;
}

/** How far the clock of a sandbox is ahead of the database's; negative: behind. */
export interface SandboxClockTable {
  crmId: string;
  aheadMs: number;
  /** The real time at which it was set to where it is. */
  setAt: Generated<Date>;
}

/**
 * How far the reminders of a provider have been written. A trigger on the rules keeps one for each length in them; a
 * new one begins at the present time.
 */
export interface ReminderMarkTable {
  crmId: string;
  providerId: string;
  /** Before the start. */
  minutes: number;
  /** By the clock of the CRM: what was due before has been written, or is not written any more. */
  until: Date;
}

/** Of a provider that gets the list of the day, or has got one. */
export interface DailyListMarkTable {
  crmId: string;
  providerId: string;
  /** When the hour was set, by the clock of the CRM. */
  setAt: Date;
  /** The day of the last list, YYYY-MM-DD, also if it was not sent because there were no appointments. */
  listedOn: string | null;
}

/** What the events of a subscription tell of those who take part: how many, who, and how to reach them. */
export type CalendarDetails = 'NONE' | 'NAMES' | 'CONTACT';

/** The URL under which calendar programs read the appointments of a provider. */
export interface CalendarSubscriptionTable {
  crmId: string;
  id: string;
  providerId: string;
  reference: string;
  /** Only appointments of this resource, or contact. */
  resourceReference: string | null;
  contactReference: string | null;
  details: CalendarDetails;
  /** SHA-256. */
  secretHash: Buffer;
  createdAt: Generated<Date>;
  /** Of what the events were made of when they were read last, keyed with the secret; null: never. */
  digest: Buffer | null;
  /** Since when it is what it is: rises with every change, by at least a second. */
  changedAt: Date | null;
  /** Of the counters of the appointments when that was read: see read-calendar.sql. */
  fingerprint: string | null;
  /** When that was read, by the database's clock. */
  comparedAt: Date | null;
}

/** The event of an appointment in a subscription, as it was read last. */
export interface ShownAppointmentTable {
  crmId: string;
  subscriptionId: string;
  appointmentId: string;
  /** Of its text, keyed with the secret. */
  digest: Buffer;
  /** As that of the subscription. */
  changedAt: Date;
}
