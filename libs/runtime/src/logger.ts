import { type Logger, type LoggerOptions, pino } from 'pino';
import { currentContext, currentTraceId } from './request-context.ts';

export type { Logger };

/**
 * JSON lines on standard output. Each contains the service and, within a request, its id and that of its trace. Callers
 * log ids and states, never personal data; ERROR means that a human must act.
 */
export function createLogger(options: { service: string; level: string }): Logger {
  const settings: LoggerOptions = {
    level: options.level,
    base: { service: options.service },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: describeError },
    mixin: () => {
      const context = currentContext();
      const traceId = currentTraceId();
      return { ...(context && { requestId: context.requestId }), ...(traceId !== undefined && { traceId }) };
    },
  };
  // Written synchronously: the line that explains the end of the process is written before it ends, and is its last.
  return pino(settings, pino.destination({ dest: 1, sync: true }));
}

interface ErrorDescription {
  type: string;
  code?: unknown;
  message: string;
  stack?: string | undefined;
  cause?: ErrorDescription;
}

/**
 * The logged fields of an error: only these, because libraries attach more. Postgres, for example, puts the values of
 * the row into `detail`, and in data and integrity errors (SQLSTATE classes 22 and 23) quotes them in the message.
 */
export function describeError(error: unknown): ErrorDescription {
  if (!(error instanceof Error)) return { type: typeof error, message: 'not an Error' };
  const code = 'code' in error ? error.code : undefined;
  const quotesValues = 'severity' in error && typeof code === 'string' && /^2[23]/.test(code);
  const clean = (text: string): string => (quotesValues ? text.replaceAll(/"[^"]*"/g, '"…"') : text);
  return {
    type: error.name,
    ...(code !== undefined && { code }),
    message: clean(error.message),
    stack: error.stack && clean(error.stack),
    ...(error.cause !== undefined && { cause: describeError(error.cause) }),
  };
}
