import { isUuid } from '@scheduling/runtime';

/** Before every id. */
export const lowestId = '00000000-0000-0000-0000-000000000000';

/** Where a page ended: the id of its last customer. Opaque to the caller. */
export function encodeCursor(id: string): string {
  return Buffer.from(id).toString('base64url');
}

/** Undefined for a string that {@link encodeCursor} did not produce. */
export function decodeCursor(cursor: string): string | undefined {
  const id = Buffer.from(cursor, 'base64url').toString();
  return isUuid(id) && encodeCursor(id) === cursor ? id : undefined;
}
