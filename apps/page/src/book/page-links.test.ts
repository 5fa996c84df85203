import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { pageLinks } from './page-links.ts';
import { keptOf, pageOf } from './page-request.ts';

const providerId = '0b9f6c1e-5a57-4d0e-9a53-3f0f6f6f0a11';

function requestOf(query: string): FastifyRequest {
  return { url: `/book/${providerId}${query}`, params: { provider: providerId }, headers: {} } as FastifyRequest;
}

describe('the invitation of an address', () => {
  const longest = 'a'.repeat(1_000);

  it.each([
    ['', undefined],
    ['?offer=massage', undefined],
    ['?for=eyJh_Z-9', 'eyJh_Z-9'],
    ['?lang=de&for=token', 'token'],
    [`?for=${longest}`, longest],
  ])('%s is %s', (query, invitation) => {
    expect(pageOf(requestOf(query))).toEqual({ providerId, invitation });
  });

  it.each(['?for', '?for=', '?for=a%20b', '?for=a.b', '?for=%00', '?for=%C3%A4', `?for=${longest}a`])(
    '%s is one that works no longer, and not none',
    (query) => {
      expect(pageOf(requestOf(query)).invitation).toBe('-');
      expect(keptOf(requestOf(query)).for).toBe('-');
    },
  );
});

it('all links of a page keep invitation, language and time zone', () => {
  const links = pageLinks('/base', providerId, keptOf(requestOf('?for=token&lang=de&zone=America/New_York&x=1')));
  const wish = { offer: 'massage', with: 'ada' };
  const place = { ...wish, at: 'ada', start: new Date('2031-06-02T08:00:00Z') };
  const all = [
    links.offers,
    links.hold,
    links.week(wish),
    links.week(wish, { date: '2031-06-02', choice: 'c' }),
    links.form('c', place),
    links.done('r'),
  ];
  for (const link of all) expect(link).toMatch(/[?&]lang=de&zone=America%2FNew_York&for=token$/);
});
