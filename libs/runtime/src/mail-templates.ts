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
] as const;
export type ParticipationMailTemplate = (typeof participationMailTemplates)[number];

/** All kinds of mail. */
export const mailTemplates = [...participationMailTemplates, 'removed-by-deletion', 'email-verification'] as const;
export type MailTemplate = (typeof mailTemplates)[number];
