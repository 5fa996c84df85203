import type { Logger } from '@scheduling/runtime';
import { createService, type RunningService } from '@scheduling/service';
import { hostAdminService } from './admin-grpc.ts';
import { identityCleanUps } from './clean-ups.ts';
import type { Config } from './config.ts';
import { migrationSets } from './db/migrate.ts';
import type { IdentitySchema } from './db/schema.ts';
import { hostIdentityService, hostPublicProviderService } from './grpc.ts';

/** Assembles the service, for the process as well as the tests. */
export function createIdentityService(config: Config, logger: Logger): Promise<RunningService> {
  return createService<IdentitySchema>({
    name: 'identity',
    settings: config,
    migrations: migrationSets,
    logger,
    compose: ({ database, broker }) => {
      const dependencies = { database, logger };
      return {
        hosted: [hostIdentityService(dependencies), hostPublicProviderService(dependencies)],
        operators: [hostAdminService(dependencies, broker)],
        cleanUps: identityCleanUps,
      };
    },
  });
}
