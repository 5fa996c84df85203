import { isUuid } from '@scheduling/runtime';
import { isPossibleStart } from '../page-cursor.ts';
import { noAppointment, noTimeslot, type SlotPosition } from './cut-slots.ts';

/** Opaque to the caller. */
export function encodePosition({ startsAt, timeslotId, appointmentId }: SlotPosition): string {
  return Buffer.from(`${startsAt} ${timeslotId} ${appointmentId}`).toString('base64url');
}

/** Undefined for a string that {@link encodePosition} did not produce. */
export function decodePosition(cursor: string): SlotPosition | undefined {
  const [time, timeslotId = '', appointmentId = ''] = Buffer.from(cursor, 'base64url').toString().split(' ');
  const position = { startsAt: Number(time), timeslotId, appointmentId };
  const isPosition =
    isPossibleStart(position.startsAt) &&
    (timeslotId === noTimeslot || isUuid(timeslotId)) &&
    (appointmentId === noAppointment || isUuid(appointmentId));
  // Node parses many numbers; only the encoded one is accepted.
  return isPosition && encodePosition(position) === cursor ? position : undefined;
}
