import type { AppointmentRecord } from './appointment/appointment.ts';
import type { Location } from './db/schema.ts';
import type { TimeslotRow } from './timeslot/timeslot.ts';

/** A reader converts a message of this length in a few milliseconds; the limit of a gRPC message is 4 MiB. */
export const maxCharacters = 250_000;
/** The size of a timeslot, appointment or participation without its texts. */
const frameCharacters = 300;

/** About how much an appointment takes in a message, in characters. */
export function appointmentLength({ row, participations }: AppointmentRecord): number {
  const own = frameCharacters + textLength(row.description, row.notes) + locationLength(row.address);
  return participations.reduce(
    (sum, participation) => sum + frameCharacters + textLength(participation.name, participation.email, participation.note, ...participation.messages),
    own,
  );
}

/** The same for a timeslot without its appointments. */
export function timeslotLength({ reference, resourceReference, address }: TimeslotRow): number {
  return frameCharacters + textLength(reference, resourceReference) + locationLength(address);
}

function locationLength(address: Location | null): number {
  return address === null ? 0 : JSON.stringify(address).length;
}

function textLength(...texts: (string | null)[]): number {
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}
