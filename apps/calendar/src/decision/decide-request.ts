import { originJson } from '@scheduling/messaging';
import type { CalendarDependencies } from '../dependencies.ts';
import { settle } from '../participation/settle.ts';
import { checkMessageLength, translateMissing } from '../person/change-own-booking.ts';
import { readRequestAgain, type RequestedBooking, requireRequestedBooking } from './requested-booking.ts';

export interface RequestDecision {
  token: string;
  /** Otherwise it is declined. */
  confirm: boolean;
  /** To the person. */
  message?: string | undefined;
  /** That of the request when it was shown. */
  shown: string;
}

/**
 * Confirms or declines a request for its provider; see decide-request.sql. Rejects with `link.not_found`,
 * `link.not_allowed` if it does not wait any more, `link.too_late` once the appointment has begun, `link.changed` if
 * the appointment says something else than was shown, `participation.capacity_exhausted`, `participation.invalid` for a message that is too long, or
 * `participation.busy`.
 */
export async function decideRequest(
  dependencies: CalendarDependencies,
  { token, confirm, message, shown }: RequestDecision,
): Promise<RequestedBooking> {
  checkMessageLength(message);
  const booking = await requireRequestedBooking(dependencies, token);
  const { crmId, providerReference, participationId, appointmentReference, recipient } = booking;
  const request = {
    participationId,
    state: confirm ? 'BOOKED' : 'CANCELED',
    message,
    shown,
    recipientId: recipient.id,
    origin: originJson(),
  };
  const work = settle(dependencies, {
    provider: { crmId, providerReference },
    call: () => ({ name: 'decide_request', request, locks: appointmentReference }),
    busy: 'participation.busy',
  });
  await dependencies.bookings.countRefusal(crmId, work).catch(translateMissing);
  return readRequestAgain(dependencies, booking);
}
