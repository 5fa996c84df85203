import { findBareLinks, prefixedLink } from '@scheduling/presentation';
import type { AppointmentFacts } from './describe-appointment.ts';

/**
 * An appointment as mails about its end show it: without addresses of calls and pages in its title and place, because
 * clients turn them into links, and nobody should join what is gone.
 */
export function withoutLinks(appointment: AppointmentFacts): AppointmentFacts {
  const { description, address } = appointment;
  return {
    ...appointment,
    description: description && removeLinks(description),
    address:
      address?.kind?.$case === 'text' ? { kind: { $case: 'text', value: removeLinks(address.kind.value) } } : address,
  };
}

/**
 * Removes links from each line, with the punctuation that led to them. A host alone, such as `studio24.de`, leads to no
 * call and may be a name.
 */
export function removeLinks(text: string): string {
  return text
    .split(/\r\n|[\r\n\u0085\u2028\u2029]/)
    .map(removeFromLine)
    .filter(Boolean)
    .join('\n');
}

function removeFromLine(line: string): string {
  const withoutPrefixed = line.replaceAll(prefixedLink, '');
  const rest = bareLinksOf(withoutPrefixed).reduce((text, link) => text.replace(link, ''), withoutPrefixed);
  return rest === line
    ? line
    : rest
        .replaceAll(/[\s:,;|\p{Dash}]+(?=[)\]])/gu, '')
        .replaceAll(/\(\s*\)|\[\s*\]|<\s*>/g, '')
        .replaceAll(/\s+/g, ' ')
        .replace(/[\s:,;|>\p{Dash}]+$/u, '')
        .trim();
}

/** Links without a scheme, such as `meet.example.com/abc`. */
function bareLinksOf(line: string): string[] {
  return findBareLinks(line).filter((link) => /[/?#]./.test(link));
}
