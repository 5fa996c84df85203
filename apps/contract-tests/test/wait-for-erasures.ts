import { ErasureServiceService } from '@scheduling/contracts/customer/v1';
import { waitUntil } from '@scheduling/embedded';
import { createClient } from '@scheduling/rpc';
import type { StackInfo } from '@scheduling/stack';

/** Waits until every service has confirmed every erasure. */
export async function waitForErasures(stack: StackInfo, timeoutMs: number): Promise<void> {
  using erasures = createClient(ErasureServiceService, 'customer', stack.admin.customer);
  const complete = async (): Promise<boolean> =>
    (await erasures.listErasures({})).erasures.every(({ completedAt }) => completedAt !== undefined);
  await waitUntil(complete, { what: 'all erasures to be complete', timeoutMs, intervalMs: 200 });
}
