import { describe, expect, it } from 'vitest';
import { pageCursor } from './page-cursor.ts';

describe('a cursor', () => {
  it('decodes to the position it was encoded from', () => {
    const position = { startsAt: new Date('2026-06-01T10:00:00Z'), id: '0199d6a5-7c1e-7abc-8def-0123456789ab' };
    expect(pageCursor.decode(pageCursor.encode(position))).toEqual(position);
  });

  it.each([
    '',
    'x',
    'null',
    Buffer.from('2026-13-01T10:00:00.000Z 0199d6a5-7c1e-7abc-8def-0123456789ab').toString('base64url'),
  ])('%j is not valid', (text) => {
    expect(pageCursor.decode(text)).toBeUndefined();
  });

  it.each([
    '+275760-09-13T00:00:00.000Z',
    '+010000-01-01T00:00:00.000Z',
    '1899-12-30T23:59:59.999Z',
    '0000-01-01T00:00:00.000Z',
    '-000001-12-31T00:00:00.000Z',
    '-271821-04-20T00:00:00.000Z',
  ])('at %s is not valid, because nothing can start then', (time) => {
    expect(
      pageCursor.decode(pageCursor.encode({ startsAt: new Date(time), id: '0199d6a5-7c1e-7abc-8def-0123456789ab' })),
    ).toBeUndefined();
  });
});
