import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { parseNamedKeys } from './named-keys.ts';

const key = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;

it('reads keys in their order, with their names', () => {
  expect(parseNamedKeys(`${key('b')}, ${key('a')}`)?.map(({ id }) => id)).toEqual(['b', 'a']);
});

it.each([
  '',
  'a',
  'a:',
  ':YWJj',
  `a:${randomBytes(31).toString('base64')}`,
  `a:${randomBytes(33).toString('base64')}`,
  `A b:${randomBytes(32).toString('base64')}`,
  `${key('a')},${key('a')}`,
  `${key('a')},`,
])('keys of another form are refused: %s', (text) => {
  expect(parseNamedKeys(text)).toBeUndefined();
});
