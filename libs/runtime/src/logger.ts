import { type DestinationStream, type LogFn, type Logger, type LoggerOptions, pino } from 'pino';
import { createRepeatLimit } from './repeat-limit.ts';
import { currentContext, currentTraceId } from './request-context.ts';

export type { Logger };

/**
 * JSON lines on standard output. Each contains the service and, within a request, its id and that of its trace. Callers
 * log ids and states, never personal data; ERROR means that a human must act. Of equal warnings and errors, ten are
 * written in a second, and then how many others there were.
 *
 * @param destination instead of standard output. Written synchronously by default: the line that explains the end of
 *   the process is written before it ends, and is its last
 */
export function createLogger(
  options: { service: string; level: string },
  destination: DestinationStream = pino.destination({ dest: 1, sync: true }),
): Logger {
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
    hooks: { logMethod: limitRepeats((write, fields, message) => write.call(logger, fields, message)) },
  };
  const logger = pino(settings, destination);
  return logger;
}

type LogMethod = NonNullable<NonNullable<LoggerOptions['hooks']>['logMethod']>;

/**
 * Lines of the same level, message, error and method repeat each other, whatever else is in them, and whichever child of
 * the logger writes them.
 *
 * @param writeSummary writes a line without what a child adds
 */
function limitRepeats(writeSummary: (write: LogFn, fields: object, message: string) => void): LogMethod {
  const limit = createRepeatLimit();
  const { warn = 0, fatal = 0 } = pino.levels.values;
  const mayWrite = (line: Parameters<LogFn>, write: LogFn, level: number): boolean => {
    if (level < warn) return true;
    if (level >= fatal) {
      // This is the last line, so what was left out comes before it.
      limit.flush();
      return true;
    }
    const { message, error, key } = contentOf(line);
    return limit.admits([level, key].join(' '), (suppressed) =>
      writeSummary(write, { suppressed, ...(error !== undefined && { code: error }) }, message),
    );
  };
  return function logMethod(line, write, level) {
    if (mayWrite(line, write, level)) write.apply(this, line);
  };
}

/** Of the message of an error. */
const maxKeyLength = 200;
/** Fields whose values are few. */
const kinds = ['method', 'route', 'consumer'];

/**
 * The message of a line, the code of its error or its type, and what makes it equal to another one. Numbers do not
 * count: they are ids, durations and counts.
 */
function contentOf(line: readonly unknown[]): { message: string; error: string | undefined; key: string } {
  const [first] = line;
  const text = line.find((part) => typeof part === 'string');
  const fields = (typeof first === 'object' ? (first ?? {}) : {}) as Record<string, unknown>;
  const cause = first instanceof Error ? first : fields['err'];
  const kind = kinds.map((name) => fields[name]).filter((value) => typeof value === 'string');
  if (!(cause instanceof Error)) return { message: text ?? '', error: undefined, key: [text, ...kind].join(' ') };
  const error = String('code' in cause ? cause.code : cause.name);
  const said = cause.message.slice(0, maxKeyLength).replaceAll(/\d+/g, '0');
  return { message: text ?? cause.message, error, key: [text, error, said, ...kind].join(' ') };
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
