/**
 * The same for all texts that differ only in case, in any script. Computed here and not in Postgres, whose lower()
 * depends on the server's locale. Lower case and not case folding: `ß` and `ss` stay different addresses.
 */
export function caseInsensitiveKey(text: string): string {
  // Lower-casing can decompose a composed character again (İ).
  return text.normalize('NFC').toLowerCase().normalize('NFC');
}
