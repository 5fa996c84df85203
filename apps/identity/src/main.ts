import { createLogger, runProcess } from '@scheduling/runtime';
import { readConfig } from './config.ts';
import { migrateIdentityDatabase } from './db/migrate.ts';
import { createIdentityService } from './service.ts';

await runProcess(() => {
  const config = readConfig(process.env);
  const logger = createLogger({ service: 'identity', level: config.logLevel });
  return {
    logger,
    serve: () => createIdentityService(config, logger),
    commands: { migrate: () => migrateIdentityDatabase(config.databaseUrl, logger) },
  };
});
