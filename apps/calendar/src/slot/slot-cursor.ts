import { createCursor, idField } from '@scheduling/runtime';
import { isPossibleStart } from '../page-cursor.ts';
import { noAppointment, noTimeslot, type SlotPosition } from './cut-slots.ts';

export const slotCursor = createCursor<SlotPosition>({
  startsAt: { write: String, read: (text) => (isPossibleStart(Number(text)) ? Number(text) : undefined) },
  timeslotId: idField(noTimeslot),
  appointmentId: idField(noAppointment),
});
