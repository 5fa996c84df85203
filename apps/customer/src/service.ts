import { CustomerCopyServiceService, CustomerRemovalServiceService } from '@scheduling/contracts/calendar/v1';
import { IdentityServiceService } from '@scheduling/contracts/identity/v1';
import type { Logger } from '@scheduling/runtime';
import { createProviderNames, createService, type RunningService } from '@scheduling/service';
import { customerCleanUps } from './clean-ups.ts';
import type { Config } from './config.ts';
import { startProvisionalSweeper } from './customer/start-provisional-sweeper.ts';
import { migrationSets } from './db/migrate.ts';
import type { CustomerSchema } from './db/schema.ts';
import { startErasureDriver } from './erasure/drive-erasures.ts';
import { createErasureMetrics } from './erasure/erasure-metrics.ts';
import { hostCustomerService, hostErasureNoticeService, hostErasureService } from './grpc.ts';
import { customerSubscriptions } from './subscriptions.ts';

/** Assembles the service, for the process as well as the tests. */
export function createCustomerService(config: Config, logger: Logger): Promise<RunningService> {
  return createService<CustomerSchema>({
    name: 'customer',
    settings: config,
    migrations: migrationSets,
    logger,
    compose: ({ database, broker, metrics, connect, use }) => {
      const identity = connect(IdentityServiceService, 'identity', config.identityAddress);
      const dependencies = {
        database,
        identity,
        providers: createProviderNames(identity),
        removals: connect(CustomerRemovalServiceService, 'calendar', config.calendarAddress),
        copies: connect(CustomerCopyServiceService, 'calendar', config.calendarAddress),
      };
      createErasureMetrics(metrics, database);
      use(startProvisionalSweeper(dependencies, logger));
      const driver = use(startErasureDriver(dependencies, logger));
      return {
        hosted: [hostCustomerService(dependencies, driver), hostErasureNoticeService(dependencies)],
        operators: [hostErasureService(dependencies, broker)],
        subscriptions: customerSubscriptions(),
        cleanUps: customerCleanUps,
      };
    },
  });
}
