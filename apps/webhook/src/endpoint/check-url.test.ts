import { describe, expect, test } from 'vitest';
import { checkUrl } from './check-url.ts';

const inProduction = { allowPrivate: false };
const inDevelopment = { allowPrivate: true };

describe('the URL of an endpoint', () => {
  test.for([
    'https://example.com',
    'https://example.com/',
    'HTTPS://EXAMPLE.COM/Path',
    'https://example.com./hook',
    'https://example.com:443/hook?crm=1&key=%20',
    'https://example.com:1024/',
    'https://example.com:65535/',
    'https://bücher.example/ü',
    'https://localhost.example.com/',
    'https://notlocalhost/',
    'https://mylocal.example/',
    'https://internal.example/',
    'https://8.8.8.8/',
    'https://0x08080808/',
    'https://[2606:4700::1111]/',
    'https://[::ffff:8.8.8.8]/',
  ])('%s is permitted', (url) => {
    expect(checkUrl(url, inProduction)).toBeUndefined();
    expect(checkUrl(url, inDevelopment)).toBeUndefined();
  });

  test.for([
    '',
    'example.com',
    'example.com:443',
    'https:',
    'https://',
    'https:///path',
    'https:\\\\example.com',
    'https:example.com',
    'https:/example.com',
    'https://?query',
    ' https://example.com',
    'https://example.com ',
    'https://example.com/\n',
    'https://exam\tple.com/',
    'https://exa mple.com/',
    'https://[::1/',
    'https://[fe80::1%25eth0]/',
    'https://1.2.3.4.5/',
    'https://256.1.1.1/',
    'https://example.com:65536/',
    'ftp://example.com/',
    'wss://example.com/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'data:,x',
    'unix:/run/docker.sock',
  ])('%j is no https URL', (url) => {
    expect(checkUrl(url, inProduction)).toBe('must be an https URL');
    expect(checkUrl(url, inDevelopment)).toBe('must be an http or https URL');
  });

  test.for([
    ['https://user@example.com/', 'must not contain a user name or a password'],
    ['https://:password@example.com/', 'must not contain a user name or a password'],
    ['https://example.com@10.0.0.1/', 'must not contain a user name or a password'],
    ['https://example.com/#', 'must not contain a fragment'],
    ['https://example.com/?a#b', 'must not contain a fragment'],
    ['https://./', 'must have a host'],
    [`https://example.com/${'a'.repeat(2_029)}`, 'must not be longer than 2048 characters'],
  ] as const)('%s %s, in development, too', ([url, detail]) => {
    expect(checkUrl(url, inProduction)).toBe(detail);
    expect(checkUrl(url, inDevelopment)).toBe(detail);
  });

  test('may have 2,048 characters', () => {
    expect(checkUrl(`https://example.com/${'a'.repeat(2_028)}`, inProduction)).toBeUndefined();
  });

  test.for([
    ['http://example.com/', 'must be an https URL'],
    ['https://example.com:0/', 'must have port 443, or a port from 1024'],
    ['https://example.com:22/', 'must have port 443, or a port from 1024'],
    ['https://example.com:80/', 'must have port 443, or a port from 1024'],
    ['https://example.com:1023/', 'must have port 443, or a port from 1024'],
    ...[
      'localhost',
      'LOCALHOST',
      'localhost.',
      'a.localhost',
      'a.localhost.',
      'printer.local',
      'api.default.svc.cluster.local',
      'metadata.google.internal',
      'metadata.google.internal.',
      '%6cocalhost',
      'ｌocalhost',
    ].map((host) => [`https://${host}/`, 'must have a public host'] as const),
    ...[
      '127.0.0.1',
      '127.0.0.1.',
      '127.1',
      '0x7f.1',
      '0x7f000001',
      '2130706433',
      '017700000001',
      '0177.0.0.1',
      '①27.0.0.1',
      '127。0。0。1',
      '%31%32%37.0.0.1',
      '0',
      '10.0.0.1',
      '169.254.169.254',
      '[::]',
      '[::1]',
      '[0:0:0:0:0:0:0:1]',
      '[::127.0.0.1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[::ffff:a00:1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
      '[fd00::1]',
      '[fe80::1]',
    ].map((host) => [`https://${host}/`, 'must have a public host'] as const),
  ] as const)('%s %s, except in development', ([url, detail]) => {
    expect(checkUrl(url, inProduction)).toBe(detail);
    expect(checkUrl(url, inDevelopment)).toBeUndefined();
  });
});
