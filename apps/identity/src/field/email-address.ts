/** Something on both sides of an @. Whether mail arrives there only a mail can tell. */
export function isEmailAddress(text: string): boolean {
  return /^\S+@[^\s@]+$/.test(text);
}

/** The given address with 1, 2, … up to `count` behind its local part (interface 4.5, rule 2). */
export function derivedAddresses(email: string, count: number): string[] {
  const { local, domain } = parts(email);
  return Array.from({ length: count }, (_, index) => `${local}${index + 1}@${domain}`);
}

/** The address without digits at the end of its local part: the same for an address and all that are derived from it. */
export function addressFamily(email: string): string {
  const { local, domain } = parts(email);
  return `${local.replace(/\d+$/, '')}@${domain}`;
}

/** A quoted local part may hold an @ itself, so the last one counts. */
function parts(email: string): { local: string; domain: string } {
  const at = email.lastIndexOf('@');
  return { local: email.slice(0, at), domain: email.slice(at + 1) };
}
