/** Postgres refuses to compare a uuid with any other text, so an id from outside is looked at first. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
