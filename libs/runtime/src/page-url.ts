import type { EnvironmentReader } from './environment.ts';

/**
 * The public base URL of the pages for persons, without a trailing slash.
 *
 * @param readPublicUrl that of the gateway, under which the pages are without a URL of their own
 */
export function readPageUrl(read: EnvironmentReader, readPublicUrl: () => string): string {
  return (read.url('PAGE_URL', ['http:', 'https:'], '') || readPublicUrl()).replace(/\/+$/, '');
}
