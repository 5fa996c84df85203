import { createLogger, runProcess } from '@scheduling/runtime';
import { readConfig } from './config.ts';
import { migrateWebhookDatabase } from './db/migrate.ts';
import { createWebhookService } from './service.ts';

await runProcess(() => {
  const config = readConfig(process.env);
  const logger = createLogger({ service: 'webhook', level: config.logLevel });
  return {
    logger,
    serve: () => createWebhookService(config, logger),
    commands: { migrate: () => migrateWebhookDatabase(config.databaseUrl, logger) },
  };
});
