/** Where a page ended: lists go by start and id. */
export interface PagePosition {
  startsAt: Date;
  id: string;
}

/** Opaque to the caller. */
export function encodeCursor({ startsAt, id }: PagePosition): string {
  return Buffer.from(`${startsAt.toISOString()} ${id}`).toString('base64url');
}

const cursorPattern = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** Undefined for a text that {@link encodeCursor} has not made. */
export function decodeCursor(cursor: string): PagePosition | undefined {
  const [, startsAt, id] = cursorPattern.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (startsAt === undefined || id === undefined || Number.isNaN(Date.parse(startsAt))) return undefined;
  return { startsAt: new Date(startsAt), id };
}
