import { type NatsSettings, readNatsSettings } from '@scheduling/events';
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
  /** Port of the public API. */
  httpPort: number;
  /** Port of `/livez`, `/readyz` and `/metrics` for operators. */
  metricsPort: number;
  /** If given, calls between services use mutual TLS. */
  tlsFiles: TlsFiles | undefined;
  logLevel: string;
  tracing: TracingSettings;
  nats: NatsSettings;
  /** gRPC addresses, `host:port` or `dns:///host:port`. */
  identityAddress: string;
  calendarAddress: string;
  customerAddress: string;
  notificationAddress: string;
  webhookAddress: string;
  /** The public base URL, without a trailing slash: used in the API document and in `Link` headers. */
  publicUrl: string;
  /** The public base URL of the pages for persons, without a trailing slash: used in the links to them. */
  pageUrl: string;
  /** The operator's address for integrators, shown in the API document; empty if there is none. */
  contactEmail: string;
  /**
   * Addresses and networks of proxies in front of the gateway, separated by commas: their `X-Forwarded-For` names the
   * client.
   */
  trustedProxies: string;
}

/** The only reader of the environment. Throws an EnvironmentError that names every fault. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  return readEnvironment(environment, (read) => {
    const publicUrl = read.url('PUBLIC_URL', ['http:', 'https:']).replace(/\/+$/, '');
    return {
      listenHost: readListenHost(read, 'LISTEN_HOST'),
      httpPort: read.port('HTTP_PORT', 8080),
      metricsPort: read.port('METRICS_PORT', 9_090),
      tlsFiles: readTlsFiles(read),
      logLevel: read.oneOf('LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'fatal'], 'info'),
      tracing: readTracingSettings(read),
      nats: readNatsSettings(read),
      identityAddress: read.text('IDENTITY_ADDRESS'),
      calendarAddress: read.text('CALENDAR_ADDRESS'),
      customerAddress: read.text('CUSTOMER_ADDRESS'),
      notificationAddress: read.text('NOTIFICATION_ADDRESS'),
      webhookAddress: read.text('WEBHOOK_ADDRESS'),
      publicUrl,
      pageUrl: readPageUrl(read, () => publicUrl),
      contactEmail: read.text('CONTACT_EMAIL', ''),
      trustedProxies: read.text('TRUSTED_PROXIES', ''),
    };
  });
}
