import { parseNamedKeys } from '@scheduling/runtime';
import { newNamedKey } from '@scheduling/testing';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { createSealer } from './seal.ts';
import { newSecret, signatureHeaders } from './sign.ts';

describe('a sealed secret', () => {
  const [old, current] = [newNamedKey('2026-11'), newNamedKey('2026-12')];
  const before = createSealer(parseNamedKeys(old)!);
  const during = createSealer(parseNamedKeys(`${current}, ${old}`)!);
  const after = createSealer(parseNamedKeys(current)!);

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
