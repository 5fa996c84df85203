/** The BCP 47 tag in its canonical spelling (`de-AT`), undefined if it is not one. */
export function parseLanguageTag(text: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(text)[0];
  } catch {
    return undefined;
  }
}
