import { describe, expect, it } from 'vitest';
import { decodeCursor, encodeCursor } from './page-cursor.ts';

describe('a cursor', () => {
  it('decodes to the position it was encoded from', () => {
    const position = { startsAt: new Date('2026-06-01T10:00:00Z'), id: '0199d6a5-7c1e-7abc-8def-0123456789ab' };
    expect(decodeCursor(encodeCursor(position))).toEqual(position);
  });

  it.each(['', 'x', 'null', Buffer.from('2026-13-01T10:00:00.000Z 0199d6a5-7c1e-7abc-8def-0123456789ab').toString('base64url')])(
    '%j is not valid',
    (text) => {
      expect(decodeCursor(text)).toBeUndefined();
    },
  );
});
