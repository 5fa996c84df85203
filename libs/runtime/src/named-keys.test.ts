import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { newNamedKey, parseNamedKeys } from './named-keys.ts';

it('reads keys in their order, with their names', () => {
  expect(parseNamedKeys(`${newNamedKey('b')}, ${newNamedKey('a')}`)?.map(({ id }) => id)).toEqual(['b', 'a']);
});

it.each([
  '',
  'a',
  'a:',
  ':YWJj',
  `a:${randomBytes(31).toString('base64')}`,
  `a:${randomBytes(33).toString('base64')}`,
  `A b:${randomBytes(32).toString('base64')}`,
  `${newNamedKey('a')},${newNamedKey('a')}`,
  `${newNamedKey('a')},`,
])('keys of another form are refused: %s', (text) => {
  expect(parseNamedKeys(text)).toBeUndefined();
});
