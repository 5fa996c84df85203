/** A reader converts a message of this length in a few milliseconds; the limit of a gRPC message is 4 MiB. */
export const maxCharacters = 250_000;
