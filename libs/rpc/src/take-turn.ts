import { DomainError } from '@scheduling/errors';
import { type FairQueue, QueueFull, type WaitOptions } from '@scheduling/runtime';
import { nestedHeader } from './headers.ts';

/** Of a call that uses a connection to the database. */
export const callWeight = 16;
/** Of a call that shares one. */
export const lightWeight = 1;
/** Of a message of a stream, which contains many things: of one tenant's, one is made at a time. */
export const messageWeight = 48;

/**
 * Waits for a turn of the tenant that a request is about. Calls within calls do not wait: two services whose tenants'
 * turns are all taken by calls to each other would wait forever. Rejects with `service.unavailable`.
 */
export async function takeTurn(
  turns: FairQueue | undefined,
  call: { request: unknown; header(name: string): string | undefined },
  { weight, ...waiting }: WaitOptions & { weight: number },
): Promise<Disposable> {
  const { crmId = '' } = call.request as { crmId?: string };
  if (turns === undefined || crmId === '' || call.header(nestedHeader) !== undefined) return notBounded;
  try {
    return await turns.enter(crmId, weight, waiting);
  } catch (error) {
    throw error instanceof QueueFull
      ? new DomainError('service.unavailable', { text: 'Too many calls for one CRM are in progress.', cause: error })
      : error;
  }
}

const notBounded: Disposable = { [Symbol.dispose]: () => undefined };
