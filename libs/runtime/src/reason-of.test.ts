import { expect, it } from 'vitest';
import { reasonOf } from './reason-of.ts';

it('includes the reason for every address that was tried', () => {
  expect(
    reasonOf(
      new AggregateError([new Error('connect ECONNREFUSED ::1:25'), new Error('connect ECONNREFUSED 127.0.0.1:25')]),
    ),
  ).toBe('connect ECONNREFUSED ::1:25; connect ECONNREFUSED 127.0.0.1:25');
});

it.each([
  [new Error('no response'), 'no response'],
  ['self-signed certificate', 'self-signed certificate'],
])('is the message of %s', (error, reason) => {
  expect(reasonOf(error)).toBe(reason);
});
