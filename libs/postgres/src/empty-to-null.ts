/**
 * Values for nullable columns: an empty string becomes null. Undefined stays undefined, and Kysely omits it: an insert
 * uses the default of the column, and an update keeps its value.
 */
export function emptyToNull<Texts extends Record<string, string | undefined>>(
  texts: Texts,
): { [Name in keyof Texts]: Texts[Name] | null } {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, text === '' ? null : text])) as {
    [Name in keyof Texts]: Texts[Name] | null;
  };
}
