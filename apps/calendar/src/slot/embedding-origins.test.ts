import type { DomainError } from '@scheduling/errors';
import { describe, expect, it } from 'vitest';
import { readEmbeddingOrigins } from './embedding-origins.ts';

describe('the sites that may show a booking page', () => {
  it.each([
    ['https://studio.example', 'https://studio.example'],
    ['HTTPS://Www.Studio.Example/', 'https://www.studio.example'],
    ['https://studio.example:443', 'https://studio.example'],
    ['https://studio.example:8443/', 'https://studio.example:8443'],
    ['https://blüte.example', 'https://xn--blte-1ra.example'],
    ['https://localhost:3000', 'https://localhost:3000'],
  ])('are origins: %s', (value, origin) => {
    expect(readEmbeddingOrigins([value])).toEqual([origin]);
  });

  it('are stored once each, in their order', () => {
    expect(readEmbeddingOrigins(['https://b.example', 'https://a.example/', 'https://B.example:443'])).toEqual([
      'https://b.example',
      'https://a.example',
    ]);
    expect(readEmbeddingOrigins([])).toEqual([]);
  });

  it.each([
    '',
    'studio.example',
    'http://studio.example',
    'http://localhost:3000',
    'http://127.0.0.1:3000',
    'https://',
    'https:studio.example',
    'https:///studio.example',
    'https://studio.example/book',
    'https://studio.example//',
    'https://studio.example?',
    'https://studio.example/#top',
    'https://user@studio.example',
    'https://user:secret@studio.example',
    'https://*.studio.example',
    'https://*',
    'https://studio.example:*',
    'https://studio.example:99999',
    'https://studio.example.',
    'https://studio..example',
    'https://127.0.0.1',
    'https://2130706433',
    'https://[::1]',
    "https://studio.example;script-src'unsafe-inline'",
    'https://studio.example;frame-ancestors',
    'https://a.example,b.example',
    "https://'self'",
    'https://studio.example https://other.example',
    ' https://studio.example',
    'https://studio.example\n',
    'https://stu\tdio.example',
    'https://studio%2eexample',
    'https://studio\\.example',
    "'self'",
    '*',
    'https:',
    'data:text/html,',
    'blob:https://studio.example/1',
  ])('are nothing else: %j', (value) => {
    expect(() => readEmbeddingOrigins(['https://studio.example', value])).toThrow(
      expect.objectContaining<Partial<DomainError>>({
        code: 'booking_rules.invalid',
        errors: [{ pointer: '/embedOn/1', detail: expect.stringContaining('https') as string }],
      }),
    );
  });
});
