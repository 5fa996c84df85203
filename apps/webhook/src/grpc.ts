import {
  DeliveryStateServiceService,
  EventServiceService,
  type Webhook as WebhookMessage,
  WebhookServiceService,
} from '@scheduling/contracts/webhook/v1';
import type { Database } from '@scheduling/postgres';
import { type HostedService, hostOperatorService, hostService, withoutNulls } from '@scheduling/rpc';
import { callers } from './callers.ts';
import type { WebhookSchema } from './db/schema.ts';
import type { WebhookDependencies } from './dependencies.ts';
import { readWaitingEvents } from './feed/event-metrics.ts';
import { listEvents } from './feed/list-events.ts';
import { createWebhook } from './webhook/create-webhook.ts';
import { deleteWebhook } from './webhook/delete-webhook.ts';
import { getWebhook, listWebhooks } from './webhook/get-webhook.ts';
import { listAttempts } from './delivery/list-attempts.ts';
import { rotateSecret } from './webhook/rotate-secret.ts';
import type { TestSender } from './delivery/test-webhook.ts';
import { updateWebhook } from './webhook/update-webhook.ts';
import { readWebhooksByState } from './delivery/webhook-metrics.ts';
import type { Webhook } from './webhook/webhook.ts';

/** Maps protobuf messages to the use cases and back. */
export function hostEventService(dependencies: WebhookDependencies): HostedService {
  return hostService(EventServiceService, callers.EventService, {
    listEvents: async (request) => {
      const { events, nextAfter } = await listEvents(dependencies, request);
      return { json: Buffer.from(events.map((event) => JSON.stringify(event)).join(',')), nextAfter };
    },
  });
}

export function hostWebhookService(dependencies: WebhookDependencies, tests: TestSender): HostedService {
  return hostService(WebhookServiceService, callers.WebhookService, {
    createWebhook: async (request) => {
      const { webhook, ...created } = await createWebhook(dependencies, request);
      return { webhook: toMessage(webhook), ...created };
    },
    getWebhook: async (request) => ({ webhook: toMessage(await getWebhook(dependencies, request)) }),
    listWebhooks: async (request) => ({ webhooks: (await listWebhooks(dependencies, request)).map(toMessage) }),
    updateWebhook: async ({ types, ignoreActors, enabled: isEnabled, ...change }) => {
      const webhook = await updateWebhook(dependencies, {
        ...change,
        types: types?.values,
        ignoreActors: ignoreActors?.values,
        isEnabled,
      });
      return { webhook: toMessage(webhook) };
    },
    deleteWebhook: async (request) => {
      await deleteWebhook(dependencies, request);
      return {};
    },
    rotateSecret: async (request) => {
      const { webhook, secret } = await rotateSecret(dependencies, request);
      return { webhook: toMessage(webhook), secret: secret ?? '' };
    },
    testWebhook: async (request) => ({ eventId: await tests.send(request) }),
    listAttempts: async (request) => {
      const { attempts, nextCursor } = await listAttempts(dependencies, request);
      return { attempts: attempts.map(withoutNulls), nextCursor };
    },
  });
}

export function hostDeliveryStateService(database: Database<WebhookSchema>): HostedService {
  return hostOperatorService(DeliveryStateServiceService, {
    getDeliveryState: async () => {
      const [waiting, webhooks] = await Promise.all([readWaitingEvents(database), readWebhooksByState(database)]);
      return { waitingEvents: waiting.count, longestWaitSeconds: waiting.seconds, webhooks };
    },
  });
}

function toMessage({ isEnabled: enabled, ...webhook }: Webhook): WebhookMessage {
  return { ...webhook, enabled };
}
