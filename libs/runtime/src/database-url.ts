import { accessSync, constants, statSync } from 'node:fs';
import { type EnvironmentReader, faultsOfUrl, urlForm } from './environment.ts';

const protocols = ['postgres:', 'postgresql:'];
const documentation = 'docs/operations.md#postgres-with-a-standby';

/** Parameters that pg honours, and that are the operator's to set. */
const fileParameters = ['sslrootcert', 'sslcert', 'sslkey'];
const allowedParameters = new Set(['host', 'ssl', 'sslmode', ...fileParameters, 'sslnegotiation', 'uselibpqcompat']);
const allowedNames = [...allowedParameters].join(', ');

/** What pg understands; of any other value it says nothing, or fails at the first connection. */
const values: Record<string, string[]> = {
  ssl: ['true', '1', '0'],
  sslmode: ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'],
  sslnegotiation: ['postgres', 'direct'],
  uselibpqcompat: ['true', 'false'],
};

/** Those that pg takes from the URL instead of what it is given by the code. */
const replacing = new Set([
  'application_name',
  'client_encoding',
  'fallback_application_name',
  'idle_in_transaction_session_timeout',
  'lock_timeout',
  'options',
  'query_timeout',
  'replication',
  'statement_timeout',
]);
const replacingAddress = new Set(['password', 'port', 'user']);

/**
 * The URL of a database. pg connects to one host, ignores most parameters of libpq, and takes others as settings of its
 * client, all without a word: what it cannot do, or what would change the service, is refused.
 *
 * @param name `DATABASE_URL`, or another variable of this form
 */
export function readDatabaseUrl(read: EnvironmentReader, name: string, fallback?: string): string {
  return read.checked(name, `a ${urlForm(protocols)}, with one host`, faultsOfDatabaseUrl, fallback);
}

function faultsOfDatabaseUrl(raw: string): string[] {
  if (namesSeveralHosts(raw))
    return [`name one host: that of a Service or proxy that follows the primary (${documentation})`];
  const faults = faultsOfUrl(raw, protocols);
  if (faults.length > 0) return faults;
  const { hash, host, search, searchParams } = new URL(raw);
  // What pg takes for the host may be a part of the password.
  if (hash !== '' || search.includes('@')) return ['have "#", "?" and "/" in its password percent-encoded'];
  if (host === '' && !searchParams.has('host')) return ['name a host'];
  return faultsOfParameters(searchParams);
}

/** A comma may also be part of the user or the password. */
function namesSeveralHosts(raw: string): boolean {
  const [, authority = ''] = /^postgres(?:ql)?:\/\/([^/?#]*)/i.exec(raw) ?? [];
  return authority.slice(authority.lastIndexOf('@') + 1).includes(',');
}

function faultsOfParameters(parameters: URLSearchParams): string[] {
  const refused = [...new Set(parameters.keys())].filter((name) => !allowedParameters.has(name));
  // A question mark in a password makes the rest of it look like a parameter.
  const isNamed = refused.every((name) => /^\w+$/.test(name));
  if (!isNamed) return [`have no parameters but ${allowedNames}`];
  return [
    ...refused.map(faultOfParameter),
    ...faultsOfSocket(parameters),
    ...faultsOfFiles(parameters),
    ...faultsOfTls(parameters),
  ];
}

function faultOfParameter(name: string): string {
  return `not have the parameter ${name}, which ${reasonAgainst(name)}`;
}

function reasonAgainst(name: string): string {
  if (replacing.has(name)) return 'would replace what the service sets by itself';
  if (replacingAddress.has(name)) return 'would replace what is before the question mark';
  if (name === 'target_session_attrs') {
    const remedy = `its host must lead to the primary (${documentation})`;
    return `has no effect: the service itself notices a read-only server, and connects again; ${remedy}`;
  }
  return `has no effect: allowed are ${allowedNames}`;
}

function faultsOfSocket(parameters: URLSearchParams): string[] {
  const isSocket = parameters.getAll('host').every((host) => /^\/[^,]*$/.test(host));
  return isSocket ? [] : ['have its host before the question mark; the parameter host is the folder of a Unix socket'];
}

function faultsOfFiles(parameters: URLSearchParams): string[] {
  return fileParameters
    .filter((name) => !parameters.getAll(name).every(isReadable))
    .map((name) => `name a file that can be read in the parameter ${name}`);
}

function faultsOfTls(parameters: URLSearchParams): string[] {
  const faults = Object.entries(values)
    .filter(([name, allowed]) => !parameters.getAll(name).every((value) => allowed.includes(value)))
    .map(([name, allowed]) => `have one of ${allowed.join(', ')} in the parameter ${name}`);
  const has = (name: string, value: string): boolean => parameters.getAll(name).at(-1) === value;
  const isLikeLibpq = has('uselibpqcompat', 'true');
  if (isLikeLibpq && has('sslmode', 'no-verify'))
    faults.push('not have sslmode=no-verify with uselibpqcompat=true, where it has no effect');
  if (isLikeLibpq && has('sslmode', 'verify-ca') && !parameters.has('sslrootcert'))
    faults.push('have the parameter sslrootcert, which sslmode=verify-ca needs with uselibpqcompat=true');
  const isOff = has('sslmode', 'disable') || (has('ssl', '0') && !parameters.has('sslmode'));
  if (has('sslnegotiation', 'direct') && isOff) faults.push('not have sslnegotiation=direct without TLS');
  return faults;
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
