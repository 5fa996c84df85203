import { DomainError, type FieldError } from '@scheduling/errors';

const detail =
  'must be an origin such as https://studio.example: https, a host name, and a port if it is not 443; no path, user or wildcard';

/**
 * Origins of sites, as browsers write them, each once. Rejects with `booking_rules.invalid`, naming those that are
 * none.
 */
export function readEmbeddingOrigins(values: readonly string[]): string[] {
  const origins = values.map(originOf);
  const errors = origins.flatMap((origin, index): FieldError[] =>
    origin === undefined ? [{ pointer: `/embedOn/${index}`, detail }] : [],
  );
  if (errors.length > 0) throw new DomainError('booking_rules.invalid', { errors });
  return [...new Set(origins as string[])];
}

/** A name: browsers do not let a policy name an address, and what else a host may contain ends the policy's directive. */
const hostName = /^[a-z\d-]+(\.[a-z\d-]+)*$/;

function originOf(value: string): string | undefined {
  // The parser of URLs takes much for an origin that nobody means as one, such as `https:studio.example` or a line break within.
  if (!/^https:\/\/[^\s/\\?#@%]+\/?$/i.test(value)) return undefined;
  const url = URL.parse(value);
  return url !== null && hostName.test(url.hostname) && !/(^|\.)\d+$/.test(url.hostname) ? url.origin : undefined;
}
