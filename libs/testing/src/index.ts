export {
  type Certificate,
  type CertificateAuthority,
  createCertificateAuthority,
  storeCertificate,
} from './certificates.ts';
export { chooseServers } from './choose-servers.ts';
export { confirmAddresses } from './confirm-addresses.ts';
export { countDeadlocks } from './count-deadlocks.ts';
export { createMigratedDatabase, createTestDatabase } from './database.ts';
export { describeSchema } from './describe-schema.ts';
export { eventually } from './eventually.ts';
export { findPendingBookings } from './find-pending-bookings.ts';
export { freePort } from '@scheduling/embedded';
export { generatedSection } from './generated-section.ts';
export { forwardFromIpv6, hasIpv6 } from './ipv6.ts';
export { testLogger } from './logger.ts';
export { startTestPostgres } from './postgres.ts';
export { isTooSlow, longTimeout, patiently } from './patience.ts';
export { someOf } from './test-scope.ts';
export { type MetricSample, readSamples, sumSamples } from './metric-samples.ts';
export { newNamedKey } from '@scheduling/runtime';
export { startTestNats } from './nats.ts';
export type { TestNats } from './test-nats.ts';
export { repeatable, type RepeatableOperation, testRepeatableOperations, withKey } from './repeatable-operations.ts';
export {
  nowhere,
  type ServiceName,
  type ServiceProcess,
  startAppProcess,
  startServiceProcesses,
} from './service-process.ts';
export { type ReceivedLogin, type ReceivedMail, type SmtpTrouble, startTestSmtp, type TestSmtp } from './smtp.ts';
export { type CollectedSpan, type SpanCollector, startSpanCollector } from './span-collector.ts';
export { pauseProcesses, whilePaused } from './while-paused.ts';
