import { createLogger, runProcess } from '@scheduling/runtime';
import { readConfig } from './config.ts';
import { createPageService } from './service.ts';

await runProcess(() => {
  const config = readConfig(process.env);
  const logger = createLogger({ service: 'page', level: config.logLevel });
  return { logger, serve: () => createPageService(config, { logger }) };
});
