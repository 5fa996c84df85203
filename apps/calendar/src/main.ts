import { createLogger, runProcess } from '@scheduling/runtime';
import { readConfig } from './config.ts';
import { migrateCalendarDatabase } from './db/migrate.ts';
import { createCalendarService } from './service.ts';

await runProcess(() => {
  const config = readConfig(process.env);
  const logger = createLogger({ service: 'calendar', level: config.logLevel });
  return {
    logger,
    serve: () => createCalendarService(config, logger),
    commands: { migrate: () => migrateCalendarDatabase(config.databaseUrl, logger) },
  };
});
