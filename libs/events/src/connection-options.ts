import type { NodeConnectionOptions } from '@nats-io/transport-node';
import { inboxPrefix } from './nats-users.ts';

/**
 * How to connect to a NATS_URL, which may contain a user and a password, percent-encoded. With `tls://` a server that does not offer TLS is refused;
 * with `nats://` TLS is used if the server offers it.
 *
 * @param name the name of the connection, and of the user for whose permissions the inbox is chosen
 */
export function connectionOptions(natsUrl: string, name: string): NodeConnectionOptions {
  const { protocol, username, password, host } = new URL(natsUrl);
  return {
    servers: host,
    name,
    inboxPrefix: inboxPrefix(name),
    // Otherwise every request captures a stack, which takes longer than to send it.
    noAsyncTraces: true,
    ...(username === '' ? {} : { user: decodeURIComponent(username), pass: decodeURIComponent(password) }),
    ...(protocol === 'tls:' ? { tls: {} } : {}),
  };
}
