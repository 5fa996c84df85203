import {
  ApiKeyRevoked,
  AppointmentChanged,
  BookingVerificationRequested,
  CrmChanged,
  CustomerChanged,
  CustomerErasureConfirmed,
  CustomerErasureRequested,
  DailyListDue,
  EmailVerificationRequested,
  MailFailed,
  ParticipationChanged,
  ParticipationReminderDue,
  ParticipationUndecided,
  ProviderChanged,
  ProviderDeleted,
  UserDeleted,
} from '@scheduling/contracts/events/v1';
import { type DatabaseService, databaseServices } from '@scheduling/runtime';

/** The data of an event as JSON: the fields by their names in TypeScript, bytes in base64. What is null or missing is empty. */
export type EventJson = Record<string, unknown>;

/** A kind of event: its subject, and how its data is encoded and decoded. */
export interface EventDefinition<Data> {
  /** `<service>-<event>`: the last part of its consumers' names. */
  name: string;
  /** `scheduling.<service>.v1.<name>`. */
  subject: string;
  /** Full name of the protobuf message. */
  type: string;
  encode(data: Data): Uint8Array;
  decode(bytes: Uint8Array): Data;
  toJson(data: Data): EventJson;
  /** Leaves out fields that this version does not know. */
  fromJson(json: EventJson): Data;
}

interface Codec<Data> {
  encode(data: Data): { finish(): Uint8Array };
  decode(bytes: Uint8Array): Data;
  fromPartial(data: Partial<Data>): Data;
}

function define<Data extends object>(
  service: DatabaseService,
  name: string,
  message: string,
  codec: Codec<Data>,
): EventDefinition<Data> {
  const ofBytes = Object.entries(codec.fromPartial({})).flatMap(([field, empty]) =>
    empty instanceof Uint8Array ? [field] : [],
  );
  const convertBytes = (data: object, convert: (value: never) => unknown): EventJson => {
    const fields = data as Record<string, never>;
    const given = ofBytes.filter((field) => (fields[field] ?? undefined) !== undefined);
    return { ...fields, ...Object.fromEntries(given.map((field) => [field, convert(fields[field]!)])) };
  };
  return {
    name: `${service}-${name}`,
    subject: `scheduling.${service}.v1.${name}`,
    type: `scheduling.events.v1.${message}`,
    encode: (data) => codec.encode(data).finish(),
    decode: (encoded) => codec.decode(encoded),
    toJson: (data) => convertBytes(data, (value: Uint8Array) => Buffer.from(value).toString('base64')),
    fromJson: (json) =>
      codec.fromPartial(convertBytes(json, (value: string) => Buffer.from(value, 'base64')) as Partial<Data>),
  };
}

/** Every event of the system, by publishing service. */
export const events = {
  crmChanged: define('identity', 'crm-changed', 'CrmChanged', CrmChanged),
  apiKeyRevoked: define('identity', 'api-key-revoked', 'ApiKeyRevoked', ApiKeyRevoked),
  providerChanged: define('identity', 'provider-changed', 'ProviderChanged', ProviderChanged),
  providerDeleted: define('identity', 'provider-deleted', 'ProviderDeleted', ProviderDeleted),
  emailVerificationRequested: define(
    'identity',
    'email-verification-requested',
    'EmailVerificationRequested',
    EmailVerificationRequested,
  ),
  userDeleted: define('identity', 'user-deleted', 'UserDeleted', UserDeleted),
  customerChanged: define('customer', 'customer-changed', 'CustomerChanged', CustomerChanged),
  customerErasureRequested: define(
    'customer',
    'customer-erasure-requested',
    'CustomerErasureRequested',
    CustomerErasureRequested,
  ),
  calendarErasureConfirmed: define(
    'calendar',
    'customer-erasure-confirmed',
    'CustomerErasureConfirmed',
    CustomerErasureConfirmed,
  ),
  notificationErasureConfirmed: define(
    'notification',
    'customer-erasure-confirmed',
    'CustomerErasureConfirmed',
    CustomerErasureConfirmed,
  ),
  participationChanged: define('calendar', 'participation-changed', 'ParticipationChanged', ParticipationChanged),
  /**
   * The same without `notify`. It has a subject of its own, so that notification does not receive what it would only
   * discard.
   */
  participationChangedSilently: define(
    'calendar',
    'participation-changed-silently',
    'ParticipationChanged',
    ParticipationChanged,
  ),
  appointmentChanged: define('calendar', 'appointment-changed', 'AppointmentChanged', AppointmentChanged),
  participationReminderDue: define(
    'calendar',
    'participation-reminder-due',
    'ParticipationReminderDue',
    ParticipationReminderDue,
  ),
  participationUndecided: define(
    'calendar',
    'participation-undecided',
    'ParticipationUndecided',
    ParticipationUndecided,
  ),
  mailFailed: define('notification', 'mail-failed', 'MailFailed', MailFailed),
  dailyListDue: define('calendar', 'daily-list-due', 'DailyListDue', DailyListDue),
  bookingVerificationRequested: define(
    'calendar',
    'booking-verification-requested',
    'BookingVerificationRequested',
    BookingVerificationRequested,
  ),
};

export type EventName = keyof typeof events;
export type EventData<Name extends EventName> = ReturnType<(typeof events)[Name]['decode']>;

/** The events that each service handles: its `subscriptions.ts` has a handler for each, and its NATS user may consume them. */
const consumed = {
  identity: [],
  calendar: ['providerChanged', 'customerChanged', 'customerErasureRequested'],
  customer: ['calendarErasureConfirmed', 'notificationErasureConfirmed'],
  notification: [
    'participationChanged',
    'participationReminderDue',
    'participationUndecided',
    'emailVerificationRequested',
    'userDeleted',
    'providerDeleted',
    'customerErasureRequested',
    'dailyListDue',
    'bookingVerificationRequested',
  ],
  webhook: [
    'participationChanged',
    'participationChangedSilently',
    'appointmentChanged',
    'customerChanged',
    'mailFailed',
    'providerDeleted',
  ],
} as const satisfies Record<DatabaseService, readonly EventName[]>;

export type ConsumedEvent<Service extends DatabaseService> = (typeof consumed)[Service][number];
/** A consumer's name begins with the name of its service. */
export type ConsumingService = {
  [Service in DatabaseService]: [ConsumedEvent<Service>] extends [never] ? never : Service;
}[DatabaseService];

export const consumingServices = databaseServices.filter(
  (service): service is ConsumingService => consumed[service].length > 0,
);

export function consumedEvents(service: DatabaseService): EventDefinition<unknown>[] {
  return consumed[service].map((name) => events[name]);
}

/**
 * What CRMs are told, by the type that they see, and when (interface 6.2). Webhook derives it from the events that it
 * consumes.
 */
export const crmEventTypes = {
  'participation.created': 'Booked, requested or reserved, alone or together with its appointment.',
  'participation.changed':
    'Another state, also because the appointment was cancelled; or the time, place or title of the appointment changed.',
  'participation.moved': 'To another appointment.',
  'participation.removed':
    'It no longer exists: the reservation expired, its customer was deleted, or its appointment was.',
  'appointment.created': 'By itself, in a series, or by a booking of a slot.',
  'appointment.changed':
    'An update changed something of it. What concerns those who take part is also an event of each participation.',
  'appointment.cancelled':
    'Also by itself, when the last participation of an appointment that a booking made is cancelled.',
  'appointment.deleted': 'Also by itself, when the last reservation of an appointment that a booking made expires.',
  'customer.created': 'By a request, or by the booking that brought it.',
  'customer.changed': 'Something of it, also its reference.',
  'customer.deleted': 'Its personal data is erased.',
  'mail.failed': 'A mail was given up. `data.id` is that of the participation, if it was about one.',
  'webhook.disabled':
    'Events could not be delivered to a webhook, and no more are sent. Not if the CRM disabled it itself.',
} as const;
export type CrmEventType = keyof typeof crmEventTypes;

export function isCrmEventType(text: string): text is CrmEventType {
  return Object.hasOwn(crmEventTypes, text);
}

/** What is wrong with a text that is not one of them. */
export const notACrmEventType = `is not an event type: one of ${Object.keys(crmEventTypes).join(', ')}`;

const bySubject = new Map(Object.values(events).map((definition) => [definition.subject, definition]));

/** The kind of event with this subject, whose data is not known; undefined if this version does not know it. */
export function eventOf(subject: string): EventDefinition<unknown> | undefined {
  return bySubject.get(subject);
}

/** The subjects of all events of a service. */
export function subjectsOf(service: string): string {
  return `scheduling.${service}.v1.>`;
}

/** The name of the durable consumer that all replicas of a service share. */
export function consumerName(service: string, definition: EventDefinition<unknown>): string {
  return `${service}-${definition.name}`;
}
