import type { ChannelOptions, Client } from '@grpc/grpc-js';

/** The connections to the replicas of a service, and the means to give them up. */
export interface Channel extends Disposable {
  /** With the present connections. What was begun with earlier ones may still end. */
  readonly client: Client;
  /** When these were opened, on the clock of `performance`: the clock of the machine may be set back. */
  readonly openedMs: number;
  /** Opens new connections, unless that has been done since this client was the present one. */
  replace(client: Client): void;
}

/**
 * gRPC by itself keeps using a connection until the operating system reports that it is dead, which takes a quarter of
 * an hour, and waits for two minutes for one to an address where nobody answers. Its keepalive would notice the former,
 * but grpc-js 1.14.7 also sends it on connections that are closing, and takes what follows for the death of the other
 * side: whatever is in progress on them would fail, a minute after they were opened and with every server that stops.
 * So whoever waits in vain replaces the connections. The name is resolved again.
 *
 * @param open with additional options
 */
export function createChannel(open: (options: ChannelOptions) => Client): Channel {
  let generation = 0;
  // Clients with the same options share connections.
  const openNext = (): Client => open({ 'scheduling.generation': generation++ });
  let client = openNext();
  let openedMs = performance.now();
  return {
    get client() {
      return client;
    },
    get openedMs() {
      return openedMs;
    },
    replace: (replaced) => {
      if (replaced !== client) return;
      client = openNext();
      openedMs = performance.now();
      replaced.close();
    },
    [Symbol.dispose]: () => client.close(),
  };
}
