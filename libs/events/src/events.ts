import {
  ApiKeyRevoked,
  AppointmentChanged,
  CrmChanged,
  CustomerChanged,
  CustomerErasureConfirmed,
  CustomerErasureRequested,
  EmailVerificationRequested,
  MailFailed,
  ParticipationChanged,
  ProviderChanged,
  UserDeleted,
} from '@scheduling/contracts/events/v1';

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
}

interface Codec<Data> {
  encode(data: Data): { finish(): Uint8Array };
  decode(bytes: Uint8Array): Data;
}

function define<Data>(service: string, name: string, message: string, codec: Codec<Data>): EventDefinition<Data> {
  return {
    name: `${service}-${name}`,
    subject: `scheduling.${service}.v1.${name}`,
    type: `scheduling.events.v1.${message}`,
    encode: (data) => codec.encode(data).finish(),
    decode: (bytes) => codec.decode(bytes),
  };
}

/** Every event of the system, by publishing service. */
export const events = {
  crmChanged: define('identity', 'crm-changed', 'CrmChanged', CrmChanged),
  apiKeyRevoked: define('identity', 'api-key-revoked', 'ApiKeyRevoked', ApiKeyRevoked),
  providerChanged: define('identity', 'provider-changed', 'ProviderChanged', ProviderChanged),
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
  mailFailed: define('notification', 'mail-failed', 'MailFailed', MailFailed),
};

/** The subjects of all events of a service. */
export function subjectsOf(service: string): string {
  return `scheduling.${service}.v1.>`;
}

/** The name of the durable consumer that all replicas of a service share. */
export function consumerName(service: string, definition: EventDefinition<unknown>): string {
  return `${service}-${definition.name}`;
}
