import type { AppointmentRecord } from './appointment/appointment.ts';
import { appointmentLength, maxCharacters } from './message-length.ts';

/** Splits a list so that each part fits into one gRPC message; an empty list is one part. */
export function splitForMessages(appointments: AppointmentRecord[]): AppointmentRecord[][] {
  const parts: AppointmentRecord[][] = [[]];
  let characters = 0;
  for (const appointment of appointments) {
    const length = appointmentLength(appointment);
    if (characters > 0 && characters + length > maxCharacters) {
      parts.push([]);
      characters = 0;
    }
    parts.at(-1)!.push(appointment);
    characters += length;
  }
  return parts;
}
