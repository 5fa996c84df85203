import { expect, test } from 'vitest';
import { parseRetryAfter } from './retry-after.ts';

test.for([
  [undefined, undefined],
  ['0', 0],
  ['120', 120],
  ['999999999', 999_999_999],
  ['1000000000', undefined],
  ['', undefined],
  ['-1', undefined],
  ['1.5', undefined],
  ['0x10', undefined],
  ['1e3', undefined],
  ['soon', undefined],
  ['Tue, 01 Dec 2026 12:00:30 GMT', 30],
  ['Tue, 01 Dec 2026 11:59:59 GMT', 0],
  ['Tue, 01 Dec 2026 12:00:30 CET', undefined],
  ['Tue, 41 Dec 2026 12:00:30 GMT', undefined],
  ['2026-12-01T12:00:30Z', undefined],
] as const)('Retry-After %j means %j seconds', ([value, seconds]) => {
  expect(parseRetryAfter(value, new Date('2026-12-01T12:00:00Z'))).toBe(seconds);
});

test('the seconds until a date are rounded up', () => {
  expect(parseRetryAfter('Tue, 01 Dec 2026 12:00:30 GMT', new Date('2026-12-01T12:00:00.001Z'))).toBe(30);
});
