import { createLogger, type Logger } from '@scheduling/runtime';

/** Quiet, unless TEST_LOG_LEVEL says otherwise. */
export function testLogger(service: string): Logger {
  return createLogger({ service, level: process.env['TEST_LOG_LEVEL'] ?? 'fatal' });
}
