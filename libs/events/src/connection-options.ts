import {
  type Authenticator,
  credsAuthenticator,
  nkeyAuthenticator,
  type NodeConnectionOptions,
} from '@nats-io/transport-node';
import { readFileSync } from 'node:fs';
import type { NatsSettings } from './nats-settings.ts';
import { parseNatsUrl } from './nats-url.ts';
import { inboxPrefix } from './nats-users.ts';

/**
 * How to connect to NATS: to any of the servers, in random order. With `tls://` or files for TLS a server that does not offer TLS is refused; otherwise TLS is
 * used if the server offers it.
 *
 * @param name the name of the connection, and of the user for whose permissions the inbox is chosen
 */
export function connectionOptions(
  { url, credentialsFile, tlsFiles }: NatsSettings,
  name: string,
): NodeConnectionOptions {
  const { servers, requiresTls, user, password } = parseNatsUrl(url);
  return {
    servers,
    name,
    inboxPrefix: inboxPrefix(name),
    // Otherwise every request captures a stack, which takes longer than to send it.
    noAsyncTraces: true,
    ...(user !== '' && loginOf(user, password)),
    ...(credentialsFile !== undefined && { authenticator: fileAuthenticator(credentialsFile) }),
    ...((requiresTls || tlsFiles !== undefined) && { tls: tlsFiles ?? {} }),
  };
}

/** As NATS clients write it, a token is a user without a password. */
function loginOf(user: string, password: string): NodeConnectionOptions {
  return password === '' ? { token: user } : { user, pass: password };
}

/** The file is read for every connection, so it may be replaced while the process runs. */
function fileAuthenticator(file: string): Authenticator {
  return (nonce) => {
    const content = readFileSync(file);
    const isCredentials = content.includes('-----BEGIN');
    return isCredentials
      ? credsAuthenticator(content)(nonce)
      : nkeyAuthenticator(Buffer.from(content.toString().trim()))(nonce);
  };
}
