import type { Metadata } from '@grpc/grpc-js';
import { DomainError } from '@scheduling/errors';
import { type FairQueue, QueueFull, type WaitOptions } from '@scheduling/runtime';

/** Marks calls that a service makes while it serves another one. */
export const nestedHeader = 'x-nested';

/**
 * Waits for a turn of the tenant that a request is about. Calls within calls do not wait: two services whose tenants' turns are all taken by calls to
 * each other would wait forever. Rejects with `service.unavailable`.
 */
export async function takeTurn(
  turns: FairQueue | undefined,
  call: { request: unknown; metadata: Metadata },
  { weight, ...waiting }: WaitOptions & { weight: number },
): Promise<Disposable> {
  const { crmId = '' } = call.request as { crmId?: string };
  if (turns === undefined || crmId === '' || call.metadata.get(nestedHeader).length > 0) return notBounded;
  try {
    return await turns.enter(crmId, weight, waiting);
  } catch (error) {
    throw error instanceof QueueFull ? new DomainError('service.unavailable', { text: 'Too many calls for one CRM are in progress.', cause: error }) : error;
  }
}

const notBounded: Disposable = { [Symbol.dispose]: () => undefined };
