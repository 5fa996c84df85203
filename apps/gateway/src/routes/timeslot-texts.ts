import type { Appointment, ListTimeslotsResponse, Timeslot } from '@scheduling/contracts/calendar/v1';
import { DomainError } from '@scheduling/errors';
import type { JsonTexts } from './json-stream.ts';

export type TimeslotsPart = Pick<ListTimeslotsResponse, 'timeslots' | 'continued' | 'continuation'>;

/** Asks for the part that the previous one named. */
export type ReadPart = (continuation: string) => Promise<TimeslotsPart>;

/** The parts of an answer, of which the first has arrived; each of the others is asked for when it is needed. */
export async function* partsFrom(first: TimeslotsPart, readPart: ReadPart): AsyncGenerator<TimeslotsPart, undefined> {
  let part = first;
  yield part;
  while (part.continuation !== undefined) {
    part = await readPart(part.continuation);
    // During a rollout: a calendar of the previous version answers with all of it, from the beginning.
    if (part.continued === undefined)
      throw new DomainError('service.unavailable', { text: 'calendar does not know parts' });
    yield part;
  }
  return undefined;
}

/** Both return JSON; that of a timeslot ends with its appointments. */
export interface ToJson {
  timeslot: (timeslot: Timeslot) => string;
  appointment: (appointment: Appointment) => string;
}

/**
 * Timeslots, separated by commas, with what is sent before and after them. The appointments of one may come in several
 * parts.
 */
export async function* timeslotTexts(
  parts: AsyncIterable<TimeslotsPart>,
  toJson: ToJson,
  around: { before: string; after: string },
): JsonTexts {
  let text = around.before;
  let last: { hasAppointments: boolean } | undefined;
  for await (const { timeslots, continued, continuation } of parts) {
    for (const [index, timeslot] of timeslots.entries()) {
      // A calendar of the previous version answers without `appointmentsJson`.
      const appointments =
        timeslot.appointmentsJson?.toString() ?? timeslot.appointments.map(toJson.appointment).join(',');
      if (index > 0 || continued !== true || last === undefined) {
        text +=
          (last === undefined ? '' : `${endOfTimeslot},`) +
          toJson.timeslot({ ...timeslot, appointments: [] }).slice(0, -endOfTimeslot.length);
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
