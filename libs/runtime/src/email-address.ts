const label = '[\\p{L}\\p{N}](?:[\\p{L}\\p{N}\\p{M}-]{0,61}[\\p{L}\\p{N}\\p{M}])?';
const pattern = new RegExp(`^[\\p{L}\\p{N}\\p{M}.!#$%&'*+/=?^_\`{|}~-]{1,64}@${label}(?:\\.${label})*$`, 'u');

/** Some of them are letters or marks to Unicode. Nobody sees them, so an address with one would look like another address. */
const invisible = /\p{Default_Ignorable_Code_Point}/u;

/** The pattern of HTML's e-mail field, with letters of all scripts (RFC 6531). Only a mail can show whether the mailbox exists. */
export function isEmailAddress(text: string): boolean {
  return pattern.test(text) && !invisible.test(text);
}
