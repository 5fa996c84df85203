import { toTimeJson } from '@scheduling/runtime';

/** A place in an open appointment, or one in which an appointment is made by booking it. */
export interface Slot {
  /** In epoch milliseconds. */
  startsAt: number;
  endsAt: number;
  /** Null for an open appointment that is not a slot of a timeslot. */
  timeslotReference: string | null;
  /** Everything else, as slot-details.sql writes it. */
  details: string;
}

/** A slot as an object of the REST interface. */
export function writeSlot({ startsAt, endsAt, timeslotReference, details }: Slot): string {
  const [start, end] = [toTimeJson(new Date(startsAt)), toTimeJson(new Date(endsAt))];
  // A JSON object continues with the fields of another.
  return `${JSON.stringify({ start, end, timeslotReference }).slice(0, -1)},${details.slice(1)}`;
}
