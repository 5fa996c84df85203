/** Something the user of the command can fix; shown without a stack trace. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
