/** The given address with 1, 2, … up to `count` after its local part (interface 4.5, rule 2). */
export function derivedAddresses(email: string, count: number): string[] {
  const { local, domain } = parts(email);
  return Array.from({ length: count }, (_, index) => `${local}${index + 1}@${domain}`);
}

/** The address without digits at the end of its local part: the same for an address and all addresses derived from it. */
export function addressFamily(email: string): string {
  const { local, domain } = parts(email);
  return `${local.replace(/\d+$/, '')}@${domain}`;
}

function parts(email: string): { local: string; domain: string } {
  const [local = '', domain = ''] = email.split('@');
  return { local, domain };
}
