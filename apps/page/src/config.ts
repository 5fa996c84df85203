import { readTlsFiles, type TlsFiles } from '@scheduling/rpc/tls-files';
import {
  readEnvironment,
  readListenHost,
  readPageUrl,
  readTracingSettings,
  type TracingSettings,
} from '@scheduling/runtime';

export interface Config {
  listenHost: string;
  /** Port of the pages. */
  httpPort: number;
  /** Port of `/livez`, `/readyz` and `/metrics` for operators. */
  metricsPort: number;
  /** If given, calls between services use mutual TLS. */
  tlsFiles: TlsFiles | undefined;
  logLevel: string;
  tracing: TracingSettings;
  /** gRPC addresses, `host:port` or `dns:///host:port`. */
  identityAddress: string;
  calendarAddress: string;
  /** The base URL of the pages for persons, without a trailing slash. */
  pageUrl: string;
  /**
   * Addresses and networks of proxies in front of page, separated by commas: their `X-Forwarded-For` names the client.
   */
  trustedProxies: string;
}

/** The only reader of the environment. Throws an EnvironmentError that names every fault. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  return readEnvironment(environment, (read) => ({
    listenHost: readListenHost(read, 'LISTEN_HOST'),
    httpPort: read.port('HTTP_PORT', 8080),
    metricsPort: read.port('METRICS_PORT', 9_090),
    tlsFiles: readTlsFiles(read),
    logLevel: read.oneOf('LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'fatal'], 'info'),
    tracing: readTracingSettings(read),
    identityAddress: read.text('IDENTITY_ADDRESS'),
    calendarAddress: read.text('CALENDAR_ADDRESS'),
    pageUrl: readPageUrl(read, () => read.url('PUBLIC_URL', ['http:', 'https:'])),
    trustedProxies: read.text('TRUSTED_PROXIES', ''),
  }));
}
