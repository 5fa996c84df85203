import { startKeySweeper } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import { createService, type RunningService } from '@scheduling/service';
import { hostAdminService } from './admin-grpc.ts';
import type { Config } from './config.ts';
import { migrationSets } from './db/migrate.ts';
import type { IdentitySchema } from './db/schema.ts';
import { hostIdentityService } from './grpc.ts';
import { startMailboxCleanUp } from './verification/start-mailbox-clean-up.ts';

/** Assembles the service, for the process as well as the tests. */
export function createIdentityService(config: Config, logger: Logger): Promise<RunningService> {
  return createService<IdentitySchema>({
    name: 'identity',
    settings: config,
    migrations: migrationSets,
    logger,
    compose: ({ database, broker, use }) => {
      use(startKeySweeper({ database, logger }));
      use(startMailboxCleanUp({ database, logger }));
      const dependencies = { database, logger };
      return { hosted: [hostIdentityService(dependencies)], operators: [hostAdminService(dependencies, broker)] };
    },
  });
}
