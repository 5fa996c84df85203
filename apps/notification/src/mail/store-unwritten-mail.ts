import type { EffectCall } from '@scheduling/messaging';
import { currentContext, currentTraceparent, newRequestId } from '@scheduling/runtime';
import type { MailOfChange } from './mail-of-change.ts';
import { maxWaitingAboutOne, urgentTemplates } from './mail-table.ts';

/** A mail about a participation, as its event says it. */
export interface UnwrittenMail {
  crmId: string;
  eventId: string;
  participationId: string;
  version: number;
  mail: MailOfChange;
  /** Undefined if the participant was embedded in an appointment. */
  customerId: string | undefined;
  providerId: string;
  actor: string;
  /** The event whose mail comes first. */
  previousEventId?: string | undefined;
  /** Of a reminder: the start of the booking or request, and when nobody needs it any more. */
  reminder?: (({ startsAt: string } | { requestedStartsAt: string }) & { expiresAt: string }) | undefined;
}

/**
 * Stores that a mail is to be written. A repeated one has no effect, nor does one to an erased person. If too many
 * about the same participation wait, it supersedes some of those between the first and the newest ones.
 */
export function storeUnwrittenMail({
  crmId,
  eventId,
  participationId,
  version,
  mail,
  customerId = participationId,
  providerId,
  actor,
  previousEventId,
  reminder,
}: UnwrittenMail): EffectCall {
  const subject = {
    crmId,
    eventId,
    aboutId: participationId,
    version,
    template: mail.template,
    calendarMethod: mail.calendar,
    customerId,
    providerId,
    actor,
    previousEventId,
    ...reminder,
  };
  const request = { ...subject, ...traceOf(), maxWaiting: maxWaitingAboutOne, urgentTemplates };
  return { name: 'store_unwritten_mail', request };
}

/** The request that caused a mail. */
export function traceOf(): { requestId: string; traceparent: string | undefined } {
  return { requestId: currentContext()?.requestId ?? newRequestId(), traceparent: currentTraceparent() };
}
