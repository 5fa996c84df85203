import type { TimeslotRow } from './timeslot/timeslot.ts';

/** A reader converts a message of this length in a few milliseconds; the limit of a gRPC message is 4 MiB. */
export const maxCharacters = 250_000;
/** The size of a timeslot without its texts. */
const frameCharacters = 300;

/** About how much a timeslot takes in a message without its appointments, in characters. */
export function timeslotLength({ reference, resourceReference, address }: TimeslotRow): number {
  return frameCharacters + reference.length + resourceReference.length + (address === null ? 0 : JSON.stringify(address).length);
}
