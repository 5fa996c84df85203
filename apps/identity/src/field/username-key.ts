/** What nobody sees: characters without a shape of their own, such as U+200B, U+00AD and the controls of the writing direction. */
const invisible = /\p{Default_Ignorable_Code_Point}/gu;
/** The braille pattern without dots looks like a space, and Unicode does not count it as one. */
const space = /[\s\u2800]+/g;

/**
 * The same for all usernames that a person sees as the same: in any case, in any of their forms in Unicode (NFKC), whatever is invisible, and however long
 * and of whatever kind their spaces are. Computed here and not in Postgres, whose lower() depends on the server's locale. Lower case and not case
 * folding: `ß` and `ss` stay different. So do letters of different scripts that look alike.
 */
export function usernameKey(username: string): string {
  const visible = username.normalize('NFKC').replace(invisible, '').replace(space, ' ').trim();
  // Lower-casing can decompose a composed character again (İ).
  return visible.normalize('NFKC').toLowerCase().normalize('NFKC');
}
