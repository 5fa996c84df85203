import { ReferenceServiceService } from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { Logger } from '@scheduling/runtime';
import { createProviderNames, createService, type RunningService } from '@scheduling/service';
import { webhookCleanUps } from './clean-ups.ts';
import type { Config } from './config.ts';
import { migrationSets } from './db/migrate.ts';
import type { WebhookSchema } from './db/schema.ts';
import { startWebhookDelivery } from './delivery/deliver-events.ts';
import { defaultTimings, type WebhookTimings } from './delivery/timings.ts';
import { createPoster, type PosterOptions } from './endpoint/post.ts';
import { registerEventMetrics } from './feed/event-metrics.ts';
import { startFeed } from './feed/start-feed.ts';
import { hostDeliveryStateService, hostEventService, hostWebhookService } from './grpc.ts';
import { createSealer } from './webhook/seal.ts';
import { startResealing } from './webhook/start-resealing.ts';
import { webhookSubscriptions } from './subscriptions.ts';
import { createTestSender } from './delivery/test-webhook.ts';
import { registerWebhookMetrics } from './delivery/webhook-metrics.ts';

export interface Overrides {
  timings?: Partial<WebhookTimings>;
  /** How endpoints are reached; see `createPoster`. */
  endpoints?: Omit<PosterOptions, 'allowPrivate'>;
}

/** Assembles the service, for the process as well as the tests. */
export function createWebhookService(
  config: Config,
  logger: Logger,
  overrides: Overrides = {},
): Promise<RunningService> {
  return createService<WebhookSchema>({
    name: 'webhook',
    settings: config,
    migrations: migrationSets,
    logger,
    compose: ({ database, broker, metrics, connect, use }) => {
      const dependencies = {
        database,
        providers: createProviderNames(connect(IdentityServiceService, 'identity', config.identityAddress)),
        calendar: connect(ReferenceServiceService, 'calendar', config.calendarAddress),
        customers: connect(CustomerServiceService, 'customer', config.customerAddress),
        poster: createPoster({ allowPrivate: config.allowPrivate, ...overrides.endpoints }),
        sealer: createSealer(config.secretKeys),
        allowPrivate: config.allowPrivate,
      };
      const timings = { ...defaultTimings, ...overrides.timings };
      const { webhookConnections: connections } = config;
      const onResult = registerWebhookMetrics(metrics, database);
      const onMissing = registerEventMetrics(metrics, database);
      const feed = use(startFeed({ database, broker, logger, onMissing }));
      use(startResealing({ database, sealer: dependencies.sealer, logger }));
      use(startWebhookDelivery({ dependencies, connections, timings, onResult, logger }));
      const tests = use(createTestSender(dependencies, logger));
      return {
        hosted: [hostEventService(dependencies), hostWebhookService(dependencies, tests)],
        operators: [hostDeliveryStateService(database)],
        subscriptions: webhookSubscriptions(dependencies, feed),
        cleanUps: webhookCleanUps,
      };
    },
  });
}
