import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { type ClientOptions, createClient, type RpcClient } from '@scheduling/rpc';

export type AdminClient = RpcClient<AdminServiceService>;

/** A service that has just started on a busy machine is waited for. */
const timeoutMs = 30_000;

/** A client of identity's admin RPCs at `host:port`. */
export function createAdminClient(address: string, options?: ClientOptions): AdminClient {
  return createClient(AdminServiceService, 'identity', address, { timeoutMs, ...options });
}
