/** RFC 5321 4.5.3.1, in characters; interface 8. */
const maxLength = 254;
const maxLocalLength = 64;

/** How many digits the number of a derived address may have. */
export const maxNumberDigits = 9;

/**
 * The given address with a number after its local part (interface 4.5, rule 2), which is shortened if the result would
 * be too long. Undefined if the domain leaves no room for a number.
 */
export function derivedAddress(email: string, number: number): string | undefined {
  const { local, domain } = parts(email);
  const room = Math.min(maxLocalLength, maxLength - 1 - Array.from(domain).length) - String(number).length;
  return room > 0 ? `${Array.from(local).slice(0, room).join('')}${number}@${domain}` : undefined;
}

/**
 * The families of an address and of all addresses derived from it: one, unless its local part is shortened in some of
 * these.
 */
export function addressFamilies(email: string): string[] {
  const derived = Array.from({ length: maxNumberDigits }, (_, index) => derivedAddress(email, 10 ** index)).filter(
    (address) => address !== undefined,
  );
  return [...new Set([email, ...derived].map(addressFamily))];
}

/** The address without digits at the end of its local part. */
function addressFamily(email: string): string {
  const { local, domain } = parts(email);
  return `${local.replace(/\d+$/, '')}@${domain}`;
}

function parts(email: string): { local: string; domain: string } {
  const [local = '', domain = ''] = email.split('@');
  return { local, domain };
}
