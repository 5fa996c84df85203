import type { Timeslot } from '@scheduling/contracts/calendar/v1';
import { describe, expect, it } from 'vitest';
import { type TimeslotsPart, timeslotTexts } from './timeslot-texts.ts';

function newTimeslot(reference: string, ...appointments: string[]): Timeslot {
  return {
    json: Buffer.from(JSON.stringify({ reference })),
    appointmentsJson: Buffer.from(appointments.map((appointment) => JSON.stringify(appointment)).join(',')),
  };
}

async function textsOf(...timeslots: [continued: boolean, ...Timeslot[]][]): Promise<string[]> {
  async function* parts(): AsyncGenerator<TimeslotsPart> {
    for (const [index, [continued, ...part]] of timeslots.entries())
      yield { timeslots: part, continued, continuation: index === timeslots.length - 1 ? undefined : 'x' };
  }
  const chunks = timeslotTexts(parts(), { before: '[', after: ']' });
  const texts: string[] = [];
  for (;;) {
    const { value, done } = await chunks.next();
    texts.push(value);
    if (done) return texts;
  }
}

describe('the text of timeslots that arrive in parts', () => {
  it('is one text for one part', async () => {
    expect(await textsOf([false])).toEqual(['[]']);
    const whole = '[{"reference":"a","appointments":["1","2"]},{"reference":"b","appointments":[]}]';
    expect(await textsOf([false, newTimeslot('a', '1', '2'), newTimeslot('b')])).toEqual([whole]);
  });

  it('has the appointments of a timeslot that is continued in the same array', async () => {
    expect(
      await textsOf(
        [false, newTimeslot('a'), newTimeslot('b', '1')],
        [true, newTimeslot('b', '2')],
        [true, newTimeslot('b', '3'), newTimeslot('c', '4')],
      ),
    ).toEqual([
      '[{"reference":"a","appointments":[]},{"reference":"b","appointments":["1"',
      ',"2"',
      ',"3"]},{"reference":"c","appointments":["4"]}]',
    ]);
  });

  it('skips a part of which everything has been deleted, and begins a timeslot whose predecessor has', async () => {
    expect(
      await textsOf(
        [false, newTimeslot('a')],
        [true, newTimeslot('a')],
        [true, newTimeslot('a', '1')],
        [false],
        [false, newTimeslot('b', '2')],
      ),
    ).toEqual(['[{"reference":"a","appointments":[', '"1"', ']},{"reference":"b","appointments":["2"]}]']);
  });
});
