/** The BCP 47 tag in its usual spelling (`de-AT`), undefined when it is none. */
export function parseLanguageTag(text: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(text)[0];
  } catch {
    return undefined;
  }
}
