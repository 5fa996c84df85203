import type { Timeslot } from '@scheduling/contracts/calendar/v1';
import type { JsonTexts } from './json-stream.ts';
import type { Wrapper } from './wrap-json.ts';

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

/** Timeslots in a wrapper, separated by commas. The appointments of one may come in several parts. */
export async function* timeslotTexts(parts: AsyncIterable<TimeslotsPart>, { before, after }: Wrapper): JsonTexts {
  let text = before;
  let last: { hasAppointments: boolean } | undefined;
  for await (const { timeslots, continued, continuation } of parts) {
    for (const [index, { json, appointmentsJson }] of timeslots.entries()) {
      const appointments = appointmentsJson.toString();
      if (index > 0 || continued !== true || last === undefined) {
        text += (last === undefined ? '' : `${endOfTimeslot},`) + beginningOf(json);
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
  return text + (last === undefined ? '' : endOfTimeslot) + after;
}

/** Of a timeslot, up to its appointments. */
function beginningOf(json: Buffer): string {
  return `${json.toString().slice(0, -1)},"appointments":[`;
}

const endOfTimeslot = ']}';
