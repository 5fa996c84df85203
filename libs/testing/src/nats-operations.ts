/**
 * Splits what a NATS client has sent into the operations that are complete, one by one, and what is left: several may
 * arrive in one piece, or one in several.
 */
export function takeNatsOperations(received: Buffer): { operations: Buffer[]; rest: Buffer } {
  const operations: Buffer[] = [];
  let rest = received;
  for (let length = lengthOfFirst(rest); length <= rest.length; length = lengthOfFirst(rest)) {
    operations.push(rest.subarray(0, length));
    rest = rest.subarray(length);
  }
  return { operations, rest };
}

/** Infinity while its first line is not complete. A message follows its line and ends with a line break, too. */
function lengthOfFirst(received: Buffer): number {
  const lineLength = received.indexOf('\r\n') + 2;
  if (lineLength < 2) return Number.POSITIVE_INFINITY;
  const line = String(received.subarray(0, lineLength - 2));
  return /^H?PUB /i.test(line) ? lineLength + Number(line.split(' ').at(-1)) + 2 : lineLength;
}
