/** The types of events, as they are named in the interface. */
export const eventTypes = [
  'participation.created',
  'participation.changed',
  'participation.moved',
  'participation.removed',
  'appointment.created',
  'appointment.changed',
  'appointment.cancelled',
  'appointment.deleted',
  'customer.created',
  'customer.changed',
  'customer.deleted',
  'mail.failed',
  'webhook.disabled',
] as const;
export type EventType = (typeof eventTypes)[number];

export function isEventType(text: string): text is EventType {
  return (eventTypes as readonly string[]).includes(text);
}
