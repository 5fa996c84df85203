import { describe, expect, it } from 'vitest';
import { isEmailAddress } from './email-address.ts';

describe('an e-mail address', () => {
  it.each(['a@b', 'a.b+c@d.example', 'jürgen@exämple.test'])('%j is valid', (text) => expect(isEmailAddress(text)).toBe(true));

  it.each(['', 'a', '@b', 'a@', 'a b@c', 'a@b c', 'a@b@c', 'a@-b', '"a@b"@c', 'a\u0007@b', 'a@b\n', 'a\u200B@b', 'a\u034F@b', 'a\uFE0F@b', 'a\u3164@b', 'a@b\uFE0Fc'])('%j is invalid', (text) => {
    expect(isEmailAddress(text)).toBe(false);
  });
});
