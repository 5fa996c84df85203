import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { createSealer, parseSealingKeys } from './seal.ts';
import { newSecret, signatureHeaders } from './sign.ts';

const key = (id: string): string => `${id}:${randomBytes(32).toString('base64')}`;

describe('a sealed secret', () => {
  const [old, current] = [key('2026-11'), key('2026-12')];
  const before = createSealer(parseSealingKeys(old)!);
  const during = createSealer(parseSealingKeys(`${current}, ${old}`)!);
  const after = createSealer(parseSealingKeys(current)!);

  it('is opened with the key that sealed it, also when that is no longer the current one', () => {
    const sealed = before.seal('whsec_abc', 'crm webhook');
    expect(sealed).not.toContain('abc');
    expect(before.open(sealed, 'crm webhook')).toBe('whsec_abc');
    expect(during.open(sealed, 'crm webhook')).toBe('whsec_abc');
    expect(sealed.startsWith(before.prefix)).toBe(true);
    expect(during.seal('whsec_abc', 'crm webhook').startsWith(after.prefix)).toBe(true);
    expect(() => after.open(sealed, 'crm webhook')).toThrow('there is no key 2026-11');
  });

  it('is not opened for another webhook, or if it was changed', () => {
    const sealed = before.seal('whsec_abc', 'crm webhook');
    expect(() => before.open(sealed, 'crm other')).toThrow(/authenticate/);
    const changed = Buffer.from(sealed.split(':')[1]!, 'base64');
    changed[15]! ^= 1;
    expect(() => before.open(`${before.prefix}${changed.toString('base64')}`, 'crm webhook')).toThrow(/authenticate/);
  });

  it('differs each time it is sealed', () => {
    expect(before.seal('whsec_abc', 'crm webhook')).not.toBe(before.seal('whsec_abc', 'crm webhook'));
  });
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
])('sealing keys of another form are refused: %s', (text) => {
  expect(parseSealingKeys(text)).toBeUndefined();
});

describe('a signature', () => {
  const [secret, other] = [newSecret(), newSecret()];
  const body = '{"name":"Ärger 🦊"}';

  it('is verified by the foreign library, with each of the secrets', () => {
    const headers = signatureHeaders([secret, other], { id: 'msg', sentAt: new Date(), body });
    for (const each of [secret, other]) expect(new Webhook(each).verify(body, headers)).toEqual(JSON.parse(body));
    expect(() => new Webhook(newSecret()).verify(body, headers)).toThrow(/signature/i);
    expect(() => new Webhook(secret).verify(body, { ...headers, 'webhook-id': 'other' })).toThrow(/signature/i);
  });

  it('is that of the foreign library', () => {
    const sentAt = new Date();
    expect(signatureHeaders([secret], { id: 'msg', sentAt, body })['webhook-signature']).toBe(
      new Webhook(secret).sign('msg', sentAt, body),
    );
  });
});
