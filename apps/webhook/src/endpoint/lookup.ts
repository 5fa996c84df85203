import { lookup as lookupAddresses, Resolver } from 'node:dns/promises';

/** The addresses of a name. It rejects or returns none if there are none, and may give up when the signal aborts. */
export type Lookup = (host: string, signal: AbortSignal) => Promise<string[]>;

/** A name server that does not answer takes 6 s: asked twice, the second time it has 4 s. A request has 10 s in all. */
const resolverOptions = { timeout: 2_000, tries: 2 };

/** For each family. A name may have thousands, and each would be tried. */
const maxAddresses = 4;

/**
 * Asks the name servers in /etc/resolv.conf, those of the cluster in Kubernetes; `servers` replaces them in tests.
 *
 * It does not use getaddrinfo (`dns.lookup`), of which a process runs only two at a time. Measured with a name server
 * that does not answer: each took 10 s, and one for `localhost` behind eight of them more than 25 s. Strangers' names
 * would delay the connections to our own servers (files and cryptography, however, took no longer). These queries run
 * side by side and can be cancelled. Search domains and /etc/hosts do not apply, which no public name needs. A resolver
 * for each name takes 0.1 ms, and notices when /etc/resolv.conf has changed.
 */
export function createDnsLookup(servers?: string[]): Lookup {
  return async (host, signal) => {
    const resolver = new Resolver(resolverOptions);
    if (servers !== undefined) resolver.setServers(servers);
    signal.addEventListener('abort', () => resolver.cancel(), { once: true });
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value.slice(0, maxAddresses) : []));
  };
}

/** Asks the operating system, for development: it also knows `localhost` and the names in /etc/hosts. */
export const systemLookup: Lookup = async (host) => {
  const addresses = await lookupAddresses(host, { all: true });
  return addresses.map(({ address }) => address);
};
