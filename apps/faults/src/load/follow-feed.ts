import type { WebhookEvent as FeedEvent } from '@scheduling/embedded';
import { setTimeout as delay } from 'node:timers/promises';
import type { CrmClient } from './client.ts';

const pollMs = 500;

/**
 * Reads the feed as it grows, like a CRM that never begins anew. Returns what it has read when the signal has aborted,
 * and nothing more follows.
 */
export async function followFeed(client: CrmClient, until: AbortSignal): Promise<FeedEvent[]> {
  const events: FeedEvent[] = [];
  let after = 'start';
  for (;;) {
    const isLast = until.aborted;
    const page = await readPage(client, after);
    events.push(...page.events);
    if (page.next === after && isLast) return events;
    if (page.next === after) await delay(pollMs, undefined, { signal: until }).catch(() => undefined);
    after = page.next;
  }
}

/** Everything that is in the feed now. */
export function readFeed(client: CrmClient): Promise<FeedEvent[]> {
  return followFeed(client, AbortSignal.abort());
}

async function readPage(client: CrmClient, after: string): Promise<{ events: FeedEvent[]; next: string }> {
  const { body, headers } = await client.read('/events', { after, limit: '500' });
  const [, next = ''] = /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '') ?? [];
  return { events: body as FeedEvent[], next: new URL(next).searchParams.get('after') ?? 'start' };
}
