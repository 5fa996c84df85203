import { DomainError } from '@scheduling/errors';
import { transactOnce } from '@scheduling/postgres';
import { currentActor, type Logger } from '@scheduling/runtime';
import type { WebhookSchema } from '../db/schema.ts';
import { recordTest } from './record-result.ts';
import { sendEvent } from './send-event.ts';
import type { WebhookDependencies } from '../dependencies.ts';
import type { EventJson } from '../feed/describe-events.ts';
import { startTest } from './start-test.ts';
import { requireWebhook, type WebhookKey, type WebhookRow } from '../webhook/webhook.ts';

/** Sends events that did not happen. */
export interface TestSender extends AsyncDisposable {
  /**
   * Returns the id of the event at once; what came of it is among the attempts. Rejects with `webhook.not_found`,
   * `webhook.tests_limited` or `webhook.busy`.
   */
  send(key: WebhookKey): Promise<string>;
}

/** How many this process sends at the same time, those of at least 20 CRMs. */
const maxRunning = 100;

/** A test is not in the feed, is sent once, and changes neither the position nor the state of the webhook. */
export function createTestSender(dependencies: WebhookDependencies, logger: Logger): TestSender {
  const { database } = dependencies;
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  const sendTest = async (webhook: WebhookRow, test: { event: EventJson; sentAt: Date }): Promise<void> => {
    try {
      await recordTest(database, webhook, {
        event: test.event,
        result: await sendEvent(dependencies, webhook, test, stopping.signal),
      });
    } catch (error) {
      logger.warn({ err: error, id: webhook.id }, 'a test of a webhook failed');
    }
  };
  return {
    send: async (key) => {
      const { found, eventId } = await transactOnce<
        WebhookSchema,
        { found: { webhook: WebhookRow; sentAt: Date } | undefined; eventId: string }
      >(database, key.crmId, {
        work: async (tx) => {
          const webhook = await requireWebhook(tx, key);
          if (running.size >= maxRunning) throw new DomainError('webhook.busy');
          const { eventId, sentAt } = await startTest(tx, key.crmId);
          return { found: { webhook, sentAt }, eventId };
        },
        keep: (test) => ({ resourceIds: [test.eventId], created: true }),
        replay: async (_tx, { resourceIds }) => ({ found: undefined, eventId: resourceIds[0]! }),
      });
      if (found !== undefined) {
        const { webhook, sentAt } = found;
        const sending = sendTest(webhook, { event: testEvent(webhook, eventId, sentAt), sentAt }).finally(() =>
          running.delete(sending),
        );
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

function testEvent({ id: webhookId, reference }: WebhookRow, id: string, sentAt: Date): EventJson {
  const nothing = {
    appointmentId: null,
    appointmentReference: null,
    previousAppointmentId: null,
    customerReference: null,
    state: null,
    previousState: null,
    version: null,
    capacity: null,
    ignoreCapacity: null,
    start: null,
    expiresAt: null,
  };
  return {
    id,
    type: 'webhook.test',
    timestamp: sentAt.toISOString(),
    actor: currentActor(),
    providerReference: null,
    data: { id: webhookId, reference, ...nothing },
  };
}
