import { type EnvironmentReader, faultsOfUrl, urlForm } from '@scheduling/runtime/environment';

/** The servers of one cluster, and the user for all of them. */
export interface NatsAddress {
  /** `host:port`, with brackets around an IPv6 address. */
  servers: string[];
  requiresTls: boolean;
  /** Decoded; empty if there is none. A token is a user without a password. */
  user: string;
  password: string;
}

const protocols = ['nats:', 'tls:'];
const defaultPort = '4222';

/** `NATS_URL`, a text for {@link parseNatsUrl}. */
export function readNatsUrl(read: EnvironmentReader, fallback?: string): string {
  return read.checked('NATS_URL', `a ${urlForm(protocols)}, with one or several servers`, faultsOfNatsUrl, fallback);
}

/**
 * Reads the servers from `nats://user:password@a:4222,b:4222`, in which each may also be a whole URL.
 *
 * @throws Error if there are faults; see {@link faultsOfNatsUrl}
 */
export function parseNatsUrl(text: string): NatsAddress {
  const [fault] = faultsOfNatsUrl(text);
  if (fault !== undefined) throw new Error(`the URL of NATS must ${fault}`);
  const servers = splitServers(text).map((server) => new URL(server));
  const { protocol, username, password } = servers[0]!;
  return {
    servers: servers.map(({ hostname, port }) => `${hostname.toLowerCase()}:${port || defaultPort}`),
    requiresTls: protocol === 'tls:',
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
}

/**
 * What the text must be or have instead: all servers have the same protocol and the same user, which only the first one
 * needs to name. The text is not repeated, because it may contain a password.
 */
export function faultsOfNatsUrl(text: string): string[] {
  if (isAmbiguous(text)) return ['have each server with a user as a whole URL, and "@" in a password as %40'];
  const servers = splitServers(text);
  const faults = [...new Set(servers.flatMap((server) => faultsOfUrl(server, protocols)))];
  if (faults.length > 0) return faults;
  const [first, ...others] = servers.map((server) => new URL(server));
  // What the client would take for the host may be a part of the password.
  if (/[/#?]/.test(text.replaceAll(/[a-z]+:\/\//gi, '').replaceAll(/\/(?=\s*(?:,|$))/g, '')))
    return ['have "/", "#" and "?" in its password percent-encoded, and nothing after the port'];
  if (servers.some((server) => new URL(server).host === '')) return ['have a host for each server'];
  const withUser = others.filter(({ username, password }) => username !== '' || password !== '');
  const isSameUser = withUser.every((it) => it.username === first!.username && it.password === first!.password);
  return [
    ...(others.every(({ protocol }) => protocol === first!.protocol) ? [] : ['have the same protocol for all servers']),
    ...(isSameUser ? [] : ['have the same user and password for all servers, or only for the first one']),
  ];
}

/** Commas in front of a protocol separate servers, and so do those after the user: a password may contain others. */
function splitServers(text: string): string[] {
  const [protocol = ''] = /^[a-z]+:\/\//i.exec(text) ?? [];
  return splitUrls(text).flatMap((url) => {
    const [first = '', ...others] = hostsOf(url).split(/\s*,\s*/);
    return [userOf(url) + first, ...others.map((host) => protocol + host)];
  });
}

function splitUrls(text: string): string[] {
  return text.split(/\s*,\s*(?=[a-z]+:\/\/)/i);
}

/** Everything before the hosts. */
function userOf(url: string): string {
  return url.slice(0, url.lastIndexOf('@') + 1);
}

function hostsOf(url: string): string {
  return url.slice(userOf(url).length);
}

/** `nats://ann:one@a,ann:one@b` has two servers, or one and a password with a comma. */
function isAmbiguous(text: string): boolean {
  return splitUrls(text).some((url) => /@.*,.*@|,.*@.*@/.test(userOf(url)));
}
