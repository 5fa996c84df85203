import { describe, expect, it } from 'vitest';
import { multiLine, singleLine } from './clean-text.ts';

describe('a single-line text', () => {
  it.each([
    ['Anna\r\nBcc: everyone@example.com', 'Anna Bcc: everyone@example.com'],
    ['a\u0000b\u2028c\u0085d\te', 'a b c d e'],
    ['\u202Etxet\u202C \u2066x\u2069', 'txet x'],
    ['  שלום 👩‍👧 ', 'שלום 👩‍👧'],
    ['half \uD83D', 'half \uFFFD'],
    ['=?utf-8?B?QmNjOiB4QHkueg==?=', '= ?utf-8?B?QmNjOiB4QHkueg== ?='],
  ])('becomes harmless: %j', (text, expected) => {
    expect(singleLine(text)).toBe(expected);
  });
});

describe('a multi-line text', () => {
  it('keeps its lines and loses its control characters', () => {
    expect(multiLine('\u0007one\r\ntwo\rthree\u2028four\n\n\n\nfive\u202E\n')).toBe('one\ntwo\nthree\nfour\n\nfive');
  });
});
