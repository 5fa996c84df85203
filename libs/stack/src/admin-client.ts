import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { type ClientOptions, createClient, type RpcClient } from '@scheduling/rpc';

export type AdminClient = RpcClient<AdminServiceService>;

/** A client of identity's admin RPCs at `host:port`. */
export function createAdminClient(address: string, options?: ClientOptions): AdminClient {
  return createClient(AdminServiceService, 'identity', address, options);
}
