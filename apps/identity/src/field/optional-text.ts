/** An empty text, or none, is no value. */
export function emptyToNull(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text;
}
