/** The given address with a number after its local part (interface 4.5, rule 2). */
export function derivedAddress(email: string, number: number): string {
  const { local, domain } = parts(email);
  return `${local}${number}@${domain}`;
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
