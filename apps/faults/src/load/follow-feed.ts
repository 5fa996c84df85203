import type { WebhookEvent as FeedEvent } from '@scheduling/embedded';
import { setTimeout as delay } from 'node:timers/promises';
import type { CrmClient } from './client.ts';
import type { Journal } from './journal.ts';
import type { Tenant } from './model.ts';

const pollMs = 500;

/**
 * Reads the feed as it grows, like a CRM that never begins anew. Returns what it has read when the signal has aborted,
 * and nothing more follows. What the service knows of an event that was read must never be less than before.
 */
export async function followFeed(
  { client, crmId }: Tenant,
  journal: Journal,
  until: AbortSignal,
): Promise<FeedEvent[]> {
  const events: FeedEvent[] = [];
  let after = 'start';
  for (;;) {
    const isLast = until.aborted;
    const page = await readPage(client, after);
    if (page === undefined) {
      journal.surprises.push(`I12 the feed of ${crmId} no longer had an event that a client had read from it`);
      if (isLast) return events;
      await delay(pollMs);
      continue;
    }
    events.push(...page.events);
    if (page.next === after && isLast) return events;
    if (page.next === after) await delay(pollMs, undefined, { signal: until }).catch(() => undefined);
    after = page.next;
  }
}

/** Everything that is in the feed now. */
export function readFeed(tenant: Tenant, journal: Journal): Promise<FeedEvent[]> {
  return followFeed(tenant, journal, AbortSignal.abort());
}

/** Undefined if the event is not known. */
async function readPage(client: CrmClient, after: string): Promise<{ events: FeedEvent[]; next: string } | undefined> {
  const { status, body, headers } = await client.read('/events', { after, limit: '500' }, [200, 400]);
  if (status === 400) return undefined;
  const [, next = ''] = /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '') ?? [];
  return { events: body as FeedEvent[], next: new URL(next).searchParams.get('after') ?? 'start' };
}
