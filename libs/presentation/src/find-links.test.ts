import { describe, expect, it } from 'vitest';
import { withoutHosts } from './find-links.ts';

describe('a name', () => {
  it.each(['Dr.Müller', 'J.R.R. Tolkien', 'Ada Lovelace, Ph.D.', 'Prof.Dr. Ève O’Neill', 'Praxis e.V.', '山田 太郎'])(
    'stays as it is: %s',
    (name) => expect(withoutHosts(name)).toBe(name),
  );

  it.each([
    'https://evil.example/win',
    'www.evil.example',
    'evil.com',
    'EVIL.XYZ',
    'evil。com',
    '192.0.2.7',
    'evil.de/win?x=1',
    'ftp://evil',
  ])('is without what leads to a host: %s', (link) => expect(withoutHosts(`Win ${link} now`)).toBe('Win now'));
});
