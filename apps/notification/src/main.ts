import { createLogger, runProcess } from '@scheduling/runtime';
import { readConfig, readSamplesConfig } from './config.ts';
import { migrateNotificationDatabase } from './db/migrate.ts';
import { sendSamples } from './samples/send-samples.ts';
import { createNotificationService } from './service.ts';

await runProcess(() => (process.argv[2] === 'samples' ? samplesProcess() : serviceProcess()));

function serviceProcess() {
  const config = readConfig(process.env);
  const logger = createLogger({ service: 'notification', level: config.logLevel });
  return {
    logger,
    serve: () => createNotificationService(config, logger),
    commands: { migrate: () => migrateNotificationDatabase(config.databaseUrl, logger) },
  };
}

/** Needs only a mail server. */
function samplesProcess() {
  const config = readSamplesConfig(process.env);
  const logger = createLogger({ service: 'notification', level: 'info' });
  const samples = async (): Promise<void> => logger.info({ mails: await sendSamples(config) }, 'samples sent');
  return { logger, serve: () => Promise.reject(new Error('"samples" is a command')), commands: { samples } };
}
