import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import {
  ParticipationChangeCause,
  type ParticipationChanged,
  type ParticipationUndecided,
} from '@scheduling/contracts/events/v1';
import { nameUuid, type ProviderMailTemplate } from '@scheduling/runtime';
import type { ProviderMailRecipient } from '../db/schema.ts';
import { person } from '../mail/mail-of-change.ts';

const { RESERVED, REQUESTED, BOOKED, CANCELED } = ParticipationState;

/** A mail to one of a provider's recipients, as its event says it. */
export interface ProviderNotice {
  crmId: string;
  eventId: string;
  recipient: ProviderMailRecipient;
  template: ProviderMailTemplate;
  aboutId: string;
  version: number;
  participationId: string;
  participationVersion: number;
  /** The person; absent if it says nothing of one. */
  customerId: string | undefined;
  providerId: string;
  actor: string;
  /** The event whose mails come first. */
  previousEventId: string | undefined;
  /** For when the request is of which the provider is reminded. */
  requestedStartsAt?: string;
}

const recipients: ProviderMailRecipient[] = ['PROVIDER', 'CONTACT'];

/**
 * What a provider is told about a change of a participation, each of its recipients separately. Of what happens to a
 * whole appointment it is told once, whichever of its participations is first.
 */
export function providerNoticesOf(change: ParticipationChanged, eventId: string): ProviderNotice[] {
  const template = change.notifyProvider ? providerMailOfChange(change) : undefined;
  if (template === undefined) return [];
  const { crmId, participationId, customerId = participationId, appointmentId, providerId, actor } = change;
  const isOfAppointment = isAboutAppointment(template);
  return recipients.map((recipient) => ({
    crmId,
    eventId: isOfAppointment ? (change.changeId ?? eventId) : eventId,
    recipient,
    template,
    aboutId: nameUuid(isOfAppointment ? appointmentId : participationId, recipient),
    version: isOfAppointment ? change.ordinal : change.version,
    participationId,
    participationVersion: change.version,
    customerId: isOfAppointment ? undefined : customerId,
    providerId,
    actor,
    previousEventId: isOfAppointment ? undefined : change.previousMailEventId,
  }));
}

/** By which a provider is reminded of a request. */
export function providerNoticesOfWaiting(request: ParticipationUndecided, eventId: string): ProviderNotice[] {
  const { crmId, participationId, version, customerId = participationId, providerId } = request;
  const { previousMailEventId: previousEventId, start: requestedStartsAt } = request;
  if (!request.remindProvider) return [];
  return recipients.map((recipient) => ({
    crmId,
    eventId,
    recipient,
    template: 'provider-request-waiting',
    aboutId: nameUuid(participationId, recipient),
    version,
    participationId,
    participationVersion: version,
    customerId,
    providerId,
    actor: 'service',
    previousEventId,
    requestedStartsAt,
  }));
}

/** Undefined if the provider is not told: who has confirmed or declined a request is the provider. */
export function providerMailOfChange({
  cause,
  fromState,
  toState,
  actor,
  decided,
}: Pick<ParticipationChanged, 'cause' | 'fromState' | 'toState' | 'actor' | 'decided'>):
  | ProviderMailTemplate
  | undefined {
  switch (cause) {
    case ParticipationChangeCause.CREATED:
      if (toState === BOOKED) return 'provider-booked';
      return toState === REQUESTED ? 'provider-requested' : undefined;
    case ParticipationChangeCause.UPDATED:
      if (fromState === RESERVED && toState === BOOKED) return 'provider-booked';
      if (toState !== CANCELED) return undefined;
      if (fromState === BOOKED) return 'provider-cancelled';
      return fromState === REQUESTED && actor === person && !decided ? 'provider-request-withdrawn' : undefined;
    case ParticipationChangeCause.MOVED:
      return toState === BOOKED ? 'provider-moved' : 'provider-request-moved';
    case ParticipationChangeCause.APPOINTMENT_CANCELLED:
      return 'provider-appointment-cancelled';
    case ParticipationChangeCause.APPOINTMENT_CHANGED:
      return 'provider-appointment-changed';
    case ParticipationChangeCause.REMOVED:
    case ParticipationChangeCause.UNSPECIFIED:
    case ParticipationChangeCause.UNRECOGNIZED:
      return undefined;
    default:
      return cause satisfies never;
  }
}

/** Whether it says nothing of a person. */
export function isAboutAppointment(template: ProviderMailTemplate): boolean {
  return template === 'provider-appointment-cancelled' || template === 'provider-appointment-changed';
}

/** Whether the provider has to decide it. */
export function isAboutRequest(template: ProviderMailTemplate): boolean {
  return (
    template === 'provider-requested' ||
    template === 'provider-request-moved' ||
    template === 'provider-request-waiting'
  );
}
