import { expect, it } from 'vitest';
import { mayBeDropped, type WaitingMail } from './waiting-mails.ts';

/** One change every 10 ms, and when the mails about them came. */
function mailsThatCame(...arrivals: number[]): WaitingMail[] {
  return arrivals.map((arrivedMs, index) => ({
    operation: { startedMs: index * 10, endedMs: index * 10 + 5 },
    arrivedMs,
  }));
}

const never = Number.NEGATIVE_INFINITY;

it('permits to drop a mail between the first one that waited and the newest four', () => {
  const mails = mailsThatCame(100, never, 101, 102, 103, 104);
  expect(mailsThatMayBeDropped(mails)).toEqual([1]);
});

it('permits to drop none if five waited, or if the first one had come before the newest', () => {
  expect(mailsThatMayBeDropped(mailsThatCame(100, 101, 102, 103, 104))).toEqual([]);
  expect(mailsThatMayBeDropped(mailsThatCame(45, never, 101, 102, 103, 104))).toEqual([]);
  expect(mailsThatMayBeDropped(mailsThatCame(never, never, 101, 102, 103, 104))).toEqual([]);
});

it('takes a mail that waited later as the first one', () => {
  expect(mailsThatMayBeDropped(mailsThatCame(5, 100, never, 101, 102, 103, 104))).toEqual([2]);
});

function mailsThatMayBeDropped(mails: readonly WaitingMail[]): number[] {
  return [...mails.keys()].filter((index) => mayBeDropped(mails[index]!.operation, mails));
}
