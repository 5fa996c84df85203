export { createBatcher } from './batcher.ts';
export { branches } from './branches.ts';
export { caseInsensitiveKey } from './case-insensitive-key.ts';
export { createCursor, type Cursor, type CursorField, idCursor, idField, readCursor } from './cursor.ts';
export { readDatabaseUrl } from './database-url.ts';
export {
  describeEnvironment,
  EnvironmentError,
  type EnvironmentReader,
  type EnvironmentVariable,
  readEnvironment,
} from './environment.ts';
export { addressKey, isEmailAddress } from './email-address.ts';
export { type EnterOptions, FairQueue, type FairQueueOptions, QueueFull, type WaitOptions } from './fair-queue.ts';
export { parseLanguageTag } from './language-tag.ts';
export { readListenHost } from './listen-host.ts';
export { type Loop, type LoopOptions, startLoop } from './loop.ts';
export { createLogger, describeError, type Logger } from './logger.ts';
export {
  type MailTemplate,
  mailTemplates,
  type PageMailTemplate,
  pageMailTemplates,
  type ParticipationMailTemplate,
  participationMailTemplates,
  type ProviderMailTemplate,
  providerMailTemplates,
} from './mail-templates.ts';
export { type GaugeDescription, measureAtScrape, type Sample } from './measure-at-scrape.ts';
export { createMetrics, type Metrics } from './metrics.ts';
export { type NamedKey, namedKeysFormat, newNamedKey, parseNamedKeys } from './named-keys.ts';
export {
  type OperationsServer,
  type ReadinessCheck,
  failedChecks,
  startOperationsServer,
} from './operations-server.ts';
export { readPageUrl } from './page-url.ts';
export { FatalError, runProcess } from './process.ts';
export { reasonOf } from './reason-of.ts';
export {
  currentActor,
  currentContext,
  type Idempotency,
  newRequestId,
  type RequestContext,
  runWithContext,
} from './request-context.ts';
export {
  type DatabaseService,
  databaseServices,
  type HttpService,
  httpServices,
  isHttpService,
  type NatsService,
  natsServices,
  type Service,
  services,
} from './services.ts';
export { isOnThisMachine, requiresTls, withTlsRule } from './smtp-tls.ts';
export { type SpokenLanguage, spokenLanguage, spokenLanguages } from './spoken-languages.ts';
export { toTimeJson } from './time-json.ts';
export {
  type ActiveSpan,
  currentTraceparent,
  describeSpan,
  inSpan,
  isRecorded,
  type SpanOptions,
  startSpan,
  startTracing,
} from './tracing.ts';
export { readTracingSettings, type TracingSettings } from './tracing-settings.ts';
export { isUuid, lowestId, nameUuid } from './uuid.ts';
export { within } from './within.ts';
