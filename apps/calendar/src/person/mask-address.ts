/** As much of an e-mail address as its owner needs to recognise it: the first character and the domain. */
export function maskAddress(address: string): string {
  const domainAt = address.lastIndexOf('@');
  const [first = ''] = address;
  return `${first}***${address.slice(domainAt)}`;
}
