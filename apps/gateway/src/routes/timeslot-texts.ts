import type { Timeslot } from '@scheduling/contracts/calendar/v1';
import type { JsonTexts } from './json-stream.ts';

export interface TimeslotsPart {
  timeslots: Timeslot[];
  /** Whether the first timeslot is the one with which the previous part ended. */
  continued?: boolean;
  /** Absent in the last part. */
  continuation?: string | undefined;
}

/** Asks for the part that the previous one named. */
export type ReadPart = (continuation: string) => Promise<TimeslotsPart>;

/** The parts of an answer, of which the first has arrived; each of the others is asked for when it is needed. */
export async function* partsFrom(first: TimeslotsPart, readPart: ReadPart): AsyncGenerator<TimeslotsPart, undefined> {
  let part = first;
  yield part;
  while (part.continuation !== undefined) {
    part = await readPart(part.continuation);
    yield part;
  }
  return undefined;
}

/** Returns a timeslot as JSON that ends with an empty array of appointments. */
export type TimeslotJson = (timeslot: Timeslot) => string;

/**
 * Timeslots, separated by commas, with what is sent before and after them. The appointments of one may come in several
 * parts.
 */
export async function* timeslotTexts(
  parts: AsyncIterable<TimeslotsPart>,
  toJson: TimeslotJson,
  around: { before: string; after: string },
): JsonTexts {
  let text = around.before;
  let last: { hasAppointments: boolean } | undefined;
  for await (const { timeslots, continued, continuation } of parts) {
    for (const [index, timeslot] of timeslots.entries()) {
      const appointments = timeslot.appointmentsJson.toString();
      if (index > 0 || continued !== true || last === undefined) {
        text += (last === undefined ? '' : `${endOfTimeslot},`) + toJson(timeslot).slice(0, -endOfTimeslot.length);
        last = { hasAppointments: false };
      }
      if (appointments === '') continue;
      text += (last.hasAppointments ? ',' : '') + appointments;
      last.hasAppointments = true;
    }
    if (continuation === undefined || text === '') continue;
    yield text;
    text = '';
  }
  return text + (last === undefined ? '' : endOfTimeslot) + around.after;
}

const endOfTimeslot = ']}';
