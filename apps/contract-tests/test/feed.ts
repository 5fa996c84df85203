import { waitUntil, type WebhookEvent } from '@scheduling/embedded';
import { expect } from 'vitest';
import { type Answer, nextQuery } from '@scheduling/test-stack/client';
import type { TestCrm } from '@scheduling/test-stack/crm';

export type FeedEvent = WebhookEvent;

/** One page of the feed, and the query of the next one. */
export async function readFeedPage(
  crm: TestCrm,
  query: Record<string, string>,
): Promise<{ events: FeedEvent[]; next: Record<string, string> }> {
  const answer: Answer<FeedEvent[]> = await crm.get<FeedEvent[]>('/events', { query });
  expect(answer.status, answer.text).toBe(200);
  return { events: answer.body, next: nextQuery(answer)! };
}

/**
 * Everything that is in the feed now, read as a client does: it follows the link until that names the same page again.
 */
export async function readFeed(crm: TestCrm, query: Record<string, string> = {}): Promise<FeedEvent[]> {
  const events: FeedEvent[] = [];
  for (let [position, isEnd]: [Record<string, string>, boolean] = [query, false]; !isEnd;) {
    const page = await readFeedPage(crm, position);
    events.push(...page.events);
    isEnd = page.next['after'] === position['after'];
    position = page.next;
  }
  return events;
}

/** The feed once there are this many events in it. */
export async function waitForFeed(
  crm: TestCrm,
  count: number,
  query: Record<string, string> = {},
): Promise<FeedEvent[]> {
  return waitUntil(
    async () => {
      const events = await readFeed(crm, query);
      return events.length >= count && events;
    },
    { what: `${count} events`, timeoutMs: 30_000 },
  );
}
