import { describe, expect, it } from 'vitest';
import { addressKey, isEmailAddress } from './email-address.ts';

describe('an e-mail address', () => {
  it.each(['a@b', 'a.b+c@d.example', 'jürgen@exämple.test'])('%j is valid', (text) =>
    expect(isEmailAddress(text)).toBe(true),
  );

  it.each([
    '',
    'a',
    '@b',
    'a@',
    'a b@c',
    'a@b c',
    'a@b@c',
    'a@-b',
    '"a@b"@c',
    'a\u0007@b',
    'a@b\n',
    'a\u200B@b',
    'a\u034F@b',
    'a\uFE0F@b',
    'a\u3164@b',
    'a@b\uFE0Fc',
  ])('%j is invalid', (text) => {
    expect(isEmailAddress(text)).toBe(false);
  });
});

describe('the key of an address', () => {
  it.each([
    ['Ann@Example.com', 'ann@example.com'],
    ['ann@Bücher.example', 'ann@xn--bcher-kva.example'],
    ['ann@XN--BCHER-KVA.example', 'ann@xn--bcher-kva.example'],
    ['ann@bu\u0308cher.example', 'ann@xn--bcher-kva.example'],
    ['ann@straße.xn--bcher-kva.example', 'ann@xn--strae-oqa.xn--bcher-kva.example'],
    ['Ju\u0308rgen@strasse.example', 'jürgen@strasse.example'],
    ['an\uFE0Fn@b\u034F.example', 'ann@b.example'],
    ['xn--bcher-kva@b.example', 'xn--bcher-kva@b.example'],
    ['ann@1.2', 'ann@1.2'],
    ['ann@bücher.1', 'ann@bücher.1'],
    ['ann@xn--.example', 'ann@xn--.example'],
  ])('of %j is %j', (address, key) => expect(addressKey(address)).toBe(key));
});
