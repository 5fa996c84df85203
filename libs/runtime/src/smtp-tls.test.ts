import { describe, expect, it } from 'vitest';
import { requiresTls, withTlsRule } from './smtp-tls.ts';

describe('TLS to the mail server', () => {
  it.each([
    'smtp://user:password@mail.example.com:587',
    'smtp://10.0.0.5:25',
    'smtp://localhost.example.com',
    'smtp://127.0.0.1.example.com',
    'smtp://0.0.0.0:25',
    'smtp://[::2]:25',
    'smtp:///',
    'smtps://127.0.0.1:465?requireTLS=false',
    'smtp://127.0.0.1:25?requireTLS=true',
    'smtp://127.0.0.1:25?requireTLS',
    'smtp://mail.example.com?requireTLS=no',
    'smtp://mail.example.com?requiretls=false',
    'smtp://mail.example.com?ignoreTLS=true&requireTLS=true',
  ])('is required for %s', (url) => {
    expect(requiresTls(url)).toBe(true);
  });

  it.each([
    'smtp://localhost:1025',
    'smtp://LOCALHOST:1025',
    'smtp://127.0.0.1:1025',
    'smtp://127.1.2.3:1025',
    'smtp://[::1]:1025',
    'smtp://inbox:1025?requireTLS=false',
    'smtp://inbox:1025?ignoreTLS=true',
  ])('is not required for %s', (url) => {
    expect(requiresTls(url)).toBe(false);
  });

  it('is stated in the URL, whose other parts are kept', () => {
    expect(withTlsRule('smtp://us%40er:pass%25word@mail.example.com:587?tls.servername=mail.example')).toBe(
      'smtp://us%40er:pass%25word@mail.example.com:587?tls.servername=mail.example&requireTLS=true',
    );
    expect(withTlsRule('smtp://localhost:1025?requireTLS')).toBe('smtp://localhost:1025?requireTLS=true');
    expect(withTlsRule('smtp://localhost:1025')).toBe('smtp://localhost:1025?requireTLS=false');
    expect(withTlsRule('smtps://mail.example.com')).toBe('smtps://mail.example.com');
  });
});
