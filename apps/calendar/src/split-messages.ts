import type { AppointmentRecord } from './appointment/appointment.ts';

/** A reader converts a message of this length in a few milliseconds; the limit of a gRPC message is 4 MiB. */
const maxCharacters = 250_000;
/** The size of an appointment or participation without its texts. */
const frameCharacters = 300;

/** Splits a list so that each part fits into one gRPC message; an empty list is one part. */
export function splitForMessages(appointments: AppointmentRecord[]): AppointmentRecord[][] {
  const parts: AppointmentRecord[][] = [[]];
  let characters = 0;
  for (const appointment of appointments) {
    const length = lengthOf(appointment);
    if (characters > 0 && characters + length > maxCharacters) {
      parts.push([]);
      characters = 0;
    }
    parts.at(-1)!.push(appointment);
    characters += length;
  }
  return parts;
}

function lengthOf({ row, participations }: AppointmentRecord): number {
  const own = frameCharacters + textLength(row.description, row.notes) + (row.address === null ? 0 : JSON.stringify(row.address).length);
  return participations.reduce(
    (sum, participation) => sum + frameCharacters + textLength(participation.name, participation.email, participation.note, ...participation.messages),
    own,
  );
}

function textLength(...texts: (string | null)[]): number {
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}
