/** `uniqueId@platformName` (interface 1): exactly one @ with something on both sides. */
export function isReference(text: string): boolean {
  return /^[^@]+@[^@]+$/.test(text);
}
