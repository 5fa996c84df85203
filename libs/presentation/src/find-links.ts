import { LinkifyIt } from 'linkify-it';

/** Any scheme with a host, those of calls without one, and `www.`, up to the punctuation after the link. */
export const prefixedLink =
  /(?:[a-z][a-z0-9+.-]*:\/\/|\bwww\.|\b(?:callto|facetime|facetime-audio|msteams|sips?|skype):)\S+?(?=[)\]>"',;.]*(?:\s|$))/gi;

/**
 * It knows the domains of countries and the oldest others; these are further ones that services for calls have, and
 * those who send spam.
 */
const linkify = new LinkifyIt({ fuzzyLink: true, fuzzyEmail: false, fuzzyIP: true }).tlds(
  'app chat click club cloud dev icu link live meet online shop site store team top video vip website world xyz'.split(
    ' ',
  ),
  true,
);

/** Links without a scheme, such as `meet.example.com/abc`, and hosts alone. */
export function findBareLinks(text: string): string[] {
  return (linkify.match(text) ?? []).map(({ raw }) => raw);
}

/** A name without anything that mail programs turn into a link, also if it is a host alone. */
export function withoutHosts(name: string): string {
  // The dots of other scripts separate the labels of a host, too.
  const rest = name.replaceAll(/[\u3002\uFF0E\uFF61]/g, '.').replaceAll(prefixedLink, ' ');
  return findBareLinks(rest)
    .reduce((text, link) => text.replace(link, ' '), rest)
    .replaceAll(/\s+/g, ' ')
    .trim();
}
