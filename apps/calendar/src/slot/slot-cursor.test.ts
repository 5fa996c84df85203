import { describe, expect, it } from 'vitest';
import { noAppointment, noTimeslot } from './cut-slots.ts';
import { slotCursor } from './slot-cursor.ts';

const id = '0199d6a5-7c1e-7abc-8def-0123456789ab';
const startsAt = Date.parse('2031-05-01T07:00:00Z');

describe('the cursor of a list of slots', () => {
  it.each([
    { startsAt, timeslotId: id, appointmentId: noAppointment },
    { startsAt, timeslotId: noTimeslot, appointmentId: id },
    { startsAt, timeslotId: id, appointmentId: id },
  ])('decodes to the position it was encoded from', (position) => {
    expect(slotCursor.decode(slotCursor.encode(position))).toEqual(position);
  });

  it.each(
    ['', 'x', `0x1 ${id} `, `1e3 ${id} `, `NaN ${id} `, ` ${id} `, `1 ${id} ~`, `1  ${id}`, `1 ${id} ${id} ${id}`].map(
      (text) => Buffer.from(text).toString('base64url'),
    ),
  )('%j is not valid', (text) => {
    expect(slotCursor.decode(text)).toBeUndefined();
  });

  it.each([8.64e15, -8.64e15, Date.UTC(10_000, 0), Date.UTC(1899, 0)])(
    'at %i is not valid, because nothing can start then',
    (time) => {
      expect(
        slotCursor.decode(slotCursor.encode({ startsAt: time, timeslotId: id, appointmentId: noAppointment })),
      ).toBeUndefined();
    },
  );
});
