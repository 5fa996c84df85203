import { DomainError } from '@scheduling/errors';
import { transactOnce } from '@scheduling/postgres';
import { currentActor, type Logger, toTimeJson } from '@scheduling/runtime';
import { randomUUIDv7 } from 'node:crypto';
import type { WebhookSchema } from '../db/schema.ts';
import { recordTest } from '../delivery/record-result.ts';
import { sendEvent } from '../delivery/send-event.ts';
import type { WebhookDependencies } from '../dependencies.ts';
import type { EventJson } from '../references/describe-events.ts';
import { requireWebhook, type WebhookKey, type WebhookRow } from './webhook.ts';

/** Sends events that did not happen. */
export interface TestSender extends AsyncDisposable {
  /** Returns the id of the event at once; what came of it is among the attempts. Rejects with `webhook.not_found` or `webhook.busy`. */
  send(key: WebhookKey): Promise<string>;
}

/** How many are sent at the same time, because an endpoint may take 10 s. */
const maxRunning = 20;

/** A test is not in the feed, is sent once, and changes neither the position nor the state of the webhook. */
export function createTestSender(dependencies: WebhookDependencies, logger: Logger): TestSender {
  const { database } = dependencies;
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  const sendTest = async (webhook: WebhookRow, event: EventJson): Promise<void> => {
    try {
      await recordTest(database, webhook, { event, result: await sendEvent(dependencies, webhook, event, stopping.signal) });
    } catch (error) {
      logger.warn({ err: error, id: webhook.id }, 'a test of a webhook failed');
    }
  };
  return {
    send: async (key) => {
      const { webhook, eventId } = await transactOnce<WebhookSchema, { webhook: WebhookRow | undefined; eventId: string }>(database, key.crmId, {
        work: async (tx) => {
          const found = await requireWebhook(tx, key);
          if (running.size >= maxRunning) throw new DomainError('webhook.busy');
          return { webhook: found, eventId: randomUUIDv7() };
        },
        keep: (test) => ({ resourceIds: [test.eventId], created: true }),
        replay: async (_tx, { resourceIds }) => ({ webhook: undefined, eventId: resourceIds[0]! }),
      });
      if (webhook !== undefined) {
        const sending = sendTest(webhook, testEvent(webhook, eventId)).finally(() => running.delete(sending));
        running.add(sending);
      }
      return eventId;
    },
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

function testEvent({ id: webhookId, reference }: WebhookRow, id: string): EventJson {
  const nothing = { appointmentReference: null, customerReference: null, state: null, previousState: null, version: null, start: null, expiresAt: null };
  return {
    id,
    type: 'webhook.test',
    timestamp: toTimeJson(new Date()),
    actor: currentActor(),
    providerReference: null,
    data: { id: webhookId, reference, ...nothing },
  };
}
