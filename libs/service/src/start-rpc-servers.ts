import type { HostedService } from '@scheduling/rpc';
import { type RpcServerOptions, startRpcServer } from '@scheduling/rpc/server';
import type { ServiceSettings } from './settings.ts';

export interface RpcServersOptions extends Omit<RpcServerOptions, 'host' | 'port'> {
  settings: Pick<ServiceSettings, 'listenHost' | 'grpcPort' | 'adminListenHost' | 'adminPort'>;
  operatorServices: HostedService[];
}

export interface RpcServers extends AsyncDisposable {
  grpcPort: number;
  adminPort: number;
}

/**
 * Serves the other services on one port and operators on another one, so that what reaches the first cannot do what
 * operators can. Calls of operators wait neither for their turn nor for `ready`.
 */
export async function startRpcServers({
  settings,
  services,
  operatorServices,
  turns,
  ready,
  ...common
}: RpcServersOptions): Promise<RpcServers> {
  await using starting = new AsyncDisposableStack();
  const admin = starting.use(
    await startRpcServer({
      ...common,
      host: settings.adminListenHost,
      port: settings.adminPort,
      services: operatorServices,
    }),
  );
  const main = await startRpcServer({
    ...common,
    host: settings.listenHost,
    port: settings.grpcPort,
    services,
    ...(turns && { turns }),
    ...(ready && { ready }),
  });
  starting.move();
  return {
    grpcPort: main.port,
    adminPort: admin.port,
    // At the same time: each may take almost as long as the whole stop.
    [Symbol.asyncDispose]: async () =>
      void (await Promise.all([main[Symbol.asyncDispose](), admin[Symbol.asyncDispose]()])),
  };
}
