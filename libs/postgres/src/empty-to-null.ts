/**
 * Values for nullable columns: an empty text is no value. What is undefined stays so, and Kysely leaves it out: an insert takes the default of
 * the column, and an update keeps its value.
 */
export function emptyToNull<Texts extends Record<string, string | undefined>>(texts: Texts): { [Name in keyof Texts]: Texts[Name] | null } {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, text === '' ? null : text])) as { [Name in keyof Texts]: Texts[Name] | null };
}
