/** Postgres rejects comparing a uuid with other text, so an external id is checked first. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

/** Before every other id. */
export const lowestId = '00000000-0000-0000-0000-000000000000';
