import { describe, expect, it } from 'vitest';
import { checkMove, participationStates as states, type ParticipationState, seatsOfMove } from './moves.ts';

const same = 'same';
const unsupported = 'participation.state_unsupported';
const refused = 'participation.move_not_allowed';
const cancelled = 'appointment.cancelled';
const mail = 'moved, mail';
const silent = 'moved, no mail';

/**
 * From each state (row) to each (column), in the order RESERVED, REQUESTED, BOOKED, CANCELED, DELETED (interface 3.1).
 */
const tables: Record<'ACTIVE' | 'CANCELLED', Record<ParticipationState, string[]>> = {
  ACTIVE: {
    RESERVED: [same, unsupported, mail, silent, refused],
    REQUESTED: [unsupported, same, mail, mail, refused],
    BOOKED: [unsupported, unsupported, same, mail, silent],
    CANCELED: [unsupported, unsupported, refused, same, refused],
    DELETED: [unsupported, unsupported, refused, silent, same],
  },
  CANCELLED: {
    RESERVED: [same, unsupported, cancelled, silent, refused],
    REQUESTED: [unsupported, same, cancelled, mail, refused],
    BOOKED: [unsupported, unsupported, same, mail, silent],
    CANCELED: [unsupported, unsupported, cancelled, same, refused],
    DELETED: [unsupported, unsupported, cancelled, silent, same],
  },
};

describe.each(['ACTIVE', 'CANCELLED'] as const)('the moves of an appointment that is %s', (appointment) => {
  it.each(states)('from %s', (from) => {
    const outcomes = states.map((to) => {
      try {
        const move = checkMove(from, to, appointment);
        return move === undefined ? same : move.mail ? mail : silent;
      } catch (error) {
        return (error as { code: string }).code;
      }
    });
    expect(outcomes).toEqual(tables[appointment][from]);
  });
});

it('a move takes a seat when it enters BOOKED or RESERVED, and frees one when it leaves them', () => {
  expect(states.map((from) => states.map((to) => seatsOfMove(from, to)))).toEqual([
    [0, -1, 0, -1, -1],
    [1, 0, 1, 0, 0],
    [0, -1, 0, -1, -1],
    [1, 0, 1, 0, 0],
    [1, 0, 1, 0, 0],
  ]);
});
