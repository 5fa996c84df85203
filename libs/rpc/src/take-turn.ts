import { DomainError } from '@scheduling/errors';
import { type FairQueue, QueueFull, type WaitOptions } from '@scheduling/runtime';
import { nestedHeader } from './headers.ts';
import type { Turn, TurnOf } from './hosted-service.ts';

/** Of a call that uses a connection to the database. */
export const callWeight = 16;
/** Of a call that shares one. */
export const lightWeight = 1;
/** Of a message of a stream, which contains many things: of one tenant's, one is made at a time. */
export const messageWeight = 48;

/** Of a tenant's share, for the calls of pages: however many visitors these have, most of it is the tenant's own. */
export const partOfPages = 1 / 4;

/** The turn of the CRM that a request names. */
export function turnOfCrm({ crmId = '' }: { crmId?: string }): Turn | undefined {
  return crmId === '' ? undefined : { owner: crmId };
}

/**
 * Waits for the turn of those for whom a call is made. Calls within calls do not wait: two services whose tenants'
 * turns are all taken by calls to each other would wait forever. Rejects with `service.unavailable`.
 */
export async function takeTurn(
  turns: FairQueue | undefined,
  call: { request: unknown; header(name: string): string | undefined },
  { weight, turnOf, ...waiting }: WaitOptions & { weight: number; turnOf: TurnOf },
): Promise<Disposable> {
  if (turns === undefined || call.header(nestedHeader) !== undefined) return notBounded;
  const turn = turnOf(call.request as never);
  if (turn === undefined) return notBounded;
  try {
    return await turns.enter(turn.owner, weight, { ...waiting, part: turn.part });
  } catch (error) {
    throw error instanceof QueueFull
      ? new DomainError('service.unavailable', { text: 'Too many calls for one CRM are in progress.', cause: error })
      : error;
  }
}

const notBounded: Disposable = { [Symbol.dispose]: () => undefined };
