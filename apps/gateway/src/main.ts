import { createLogger, runProcess } from '@scheduling/runtime';
import { readConfig } from './config.ts';
import { createGatewayService } from './service.ts';

await runProcess(() => {
  const config = readConfig(process.env);
  const logger = createLogger({ service: 'gateway', level: config.logLevel });
  return { logger, serve: () => createGatewayService(config, { logger }) };
});
