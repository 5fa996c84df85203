import { ReferenceServiceService } from '@scheduling/contracts/calendar/v1';
import { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { Logger } from '@scheduling/runtime';
import { createService, type RunningService } from '@scheduling/service';
import type { Config } from './config.ts';
import { migrationSets } from './db/migrate.ts';
import type { WebhookSchema } from './db/schema.ts';
import { registerEventMetrics } from './feed/event-metrics.ts';
import { startEventCleanUp } from './feed/start-event-clean-up.ts';
import { startSequencer } from './feed/start-sequencer.ts';
import { hostEventService } from './grpc.ts';
import { createProviderNames } from './references/provider-names.ts';
import { webhookSubscriptions } from './subscriptions.ts';

/** Assembles the service, for the process as well as the tests. */
export function createWebhookService(config: Config, logger: Logger): Promise<RunningService> {
  return createService<WebhookSchema>({
    name: 'webhook',
    settings: config,
    migrations: migrationSets,
    logger,
    compose: ({ database, metrics, connect, use }) => {
      const dependencies = {
        database,
        identity: connect(IdentityServiceService, 'identity', config.identityAddress),
        providerNames: createProviderNames(),
        calendar: connect(ReferenceServiceService, 'calendar', config.calendarAddress),
        customers: connect(CustomerServiceService, 'customer', config.customerAddress),
      };
      registerEventMetrics(metrics, database);
      use(startSequencer({ database, logger }));
      use(startEventCleanUp({ database, logger }));
      return { hosted: [hostEventService(dependencies)], subscriptions: webhookSubscriptions() };
    },
  });
}
