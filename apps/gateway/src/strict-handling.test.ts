import { expect, it } from 'vitest';
import { prefersStrictHandling } from './strict-handling.ts';

it.each([
  'handling=strict',
  'Handling = Strict',
  'handling="strict"',
  'respond-async, wait=10, handling=strict',
  'handling=strict; foo=bar',
])('strict handling is preferred by %s', (header) => {
  expect(prefersStrictHandling(header)).toBe(true);
});

it.each([
  '',
  'handling',
  'handling=lenient',
  'handling=lenient, handling=strict',
  'strict',
  'wait=10; handling=strict',
  'nothandling=strict',
])('a client does without it by sending "%s"', (header) => {
  expect(prefersStrictHandling(header)).toBe(false);
});
