/**
 * What two texts have in common that differ only in case, in any script. Made here and not by Postgres, whose lower() depends on the locale of
 * its server. Lower case and not case folding: `ß` and `ss` stay different addresses.
 */
export function caseInsensitiveKey(text: string): string {
  // Lower case can take the composed form apart again (İ).
  return text.normalize('NFC').toLowerCase().normalize('NFC');
}
