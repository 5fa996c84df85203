import { describe, expect, it } from 'vitest';
import type { ClientOptions } from '../src/client-options.ts';
import { createClient } from '../src/create-client.ts';

const right: ClientOptions = { url: 'https://scheduling.example.com', crmId: 'demo', key: 'sk_secret' };

/** As from JavaScript, or from variables of the environment that are not set. */
function create(wrong: Record<string, unknown>): () => unknown {
  return () => createClient({ ...right, ...wrong });
}

const wrong: [setting: keyof ClientOptions, value: unknown, shown?: string][] = [
  ['url', undefined],
  ['url', ''],
  ['url', 'scheduling.example.com'],
  ['url', 'localhost:8080'],
  ['url', 'ftp://scheduling.example.com'],
  ['url', 'https://scheduling.example.com/?crm=demo'],
  ['url', 'https://scheduling.example.com/#demo'],
  ['url', ' https://scheduling.example.com'],
  ['url', 'https://mara:secret@scheduling.example.com', '"https://…@scheduling.example.com"'],
  ['url', new URL('https://scheduling.example.com')],
  ['crmId', undefined],
  ['crmId', null],
  ['crmId', ''],
  ['crmId', '..'],
  ['crmId', 'demo/webhooks'],
  ['crmId', 'Demo'],
  ['crmId', 17],
  ['key', undefined],
  ['key', null, 'object'],
  ['key', '', 'another text'],
  ['key', 'sk_secret\n', 'another text'],
  ['key', 'sk_sécret', 'another text'],
  ['key', ['sk_secret'], 'object'],
  ['retryForMs', '15'],
  ['retryForMs', -1],
  ['retryForMs', Number.NaN],
  ['attemptMs', 0],
  ['attemptMs', Number.NaN],
  ['attemptMs', Infinity],
  ['fetch', null],
];

describe('a client is not created', () => {
  it.each(wrong)('if the option %s is %j', (setting, value, shown) => {
    const given = shown ?? (typeof value === 'string' ? JSON.stringify(value) : String(value));
    expect(create({ [setting]: value })).toThrow(TypeError);
    expect(create({ [setting]: value })).toThrow(`createClient: ${setting} must be `);
    expect(create({ [setting]: value })).toThrow(`; it is ${given}`);
    expect(create({ [setting]: value })).not.toThrow('secret');
  });
});

it.each([
  { url: 'http://127.0.0.1:8080/' },
  { url: 'https://[::1]:8443/behind/a/proxy' },
  { retryForMs: 0 },
  { retryForMs: Infinity },
  { retryForMs: undefined, attemptMs: undefined, fetch: undefined },
])('a client is created with %j', (settings) => {
  expect(create(settings)).not.toThrow();
});
