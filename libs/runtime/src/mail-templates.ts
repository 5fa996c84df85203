/** The kinds of mail about a participation, by what happened (interface 6.3). */
export const participationMailTemplates = [
  'booking-confirmed',
  'request-received',
  'request-confirmed',
  'request-declined',
  'request-withdrawn',
  'booking-moved',
  'appointment-changed',
  'request-changed',
  'booking-cancelled',
  'appointment-cancelled',
  'booking-reminder',
  'request-unconfirmed',
] as const;
export type ParticipationMailTemplate = (typeof participationMailTemplates)[number];

/** The kinds of mail to a provider about its bookings, by what happened (interface 6.5). */
export const providerMailTemplates = [
  'provider-booked',
  'provider-requested',
  'provider-moved',
  'provider-request-moved',
  'provider-cancelled',
  'provider-request-withdrawn',
  'provider-request-waiting',
  'provider-appointment-changed',
  'provider-appointment-cancelled',
  'provider-list',
  'provider-day',
] as const;
export type ProviderMailTemplate = (typeof providerMailTemplates)[number];

/** The kinds of mail to somebody who has booked on a page, when that is not a booking yet (interface 6.3). */
export const pageMailTemplates = ['booking-verification', 'booking-limit'] as const;
export type PageMailTemplate = (typeof pageMailTemplates)[number];

/** All kinds of mail. */
export const mailTemplates = [
  ...participationMailTemplates,
  ...providerMailTemplates,
  ...pageMailTemplates,
  'removed-by-deletion',
  'email-verification',
] as const;
export type MailTemplate = (typeof mailTemplates)[number];
