const label = '[\\p{L}\\p{N}](?:[\\p{L}\\p{N}\\p{M}-]{0,61}[\\p{L}\\p{N}\\p{M}])?';
const pattern = new RegExp(`^[\\p{L}\\p{N}\\p{M}.!#$%&'*+/=?^_\`{|}~-]{1,64}@${label}(?:\\.${label})*$`, 'u');

/** The pattern of HTML's e-mail field, with letters of all scripts (RFC 6531). Only a mail can show whether the mailbox exists. */
export function isEmailAddress(text: string): boolean {
  return pattern.test(text);
}
