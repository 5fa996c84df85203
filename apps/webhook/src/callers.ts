import type { Service } from '@scheduling/runtime';

/**
 * The services that may call each method, by the names in their certificates; the diagram in docs/architecture.md shows
 * the same calls.
 */
export const callers = {
  EventService: {
    listEvents: ['gateway'],
  },
  WebhookService: {
    createWebhook: ['gateway'],
    getWebhook: ['gateway'],
    listWebhooks: ['gateway'],
    updateWebhook: ['gateway'],
    deleteWebhook: ['gateway'],
    rotateSecret: ['gateway'],
    testWebhook: ['gateway'],
    listAttempts: ['gateway'],
  },
} satisfies Record<string, Record<string, Service[]>>;
