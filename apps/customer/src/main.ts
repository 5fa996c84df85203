import { createLogger, runProcess } from '@scheduling/runtime';
import { readConfig } from './config.ts';
import { migrateCustomerDatabase } from './db/migrate.ts';
import { createCustomerService } from './service.ts';

await runProcess(() => {
  const config = readConfig(process.env);
  const logger = createLogger({ service: 'customer', level: config.logLevel });
  return {
    logger,
    serve: () => createCustomerService(config, logger),
    commands: { migrate: () => migrateCustomerDatabase(config.databaseUrl, logger) },
  };
});
