import { readTlsFiles } from '@scheduling/rpc';
import type { EnvironmentReader } from '@scheduling/runtime';

export type ServiceSettings = ReturnType<typeof readServiceSettings>;

/** What every service that owns a database reads from its environment. */
export function readServiceSettings(read: EnvironmentReader) {
  return {
    listenHost: read.text('LISTEN_HOST', '0.0.0.0'),
    grpcPort: read.port('GRPC_PORT', 50_051),
    metricsPort: read.port('METRICS_PORT', 9_090),
    /** With them, calls between services are mutual TLS. */
    tlsFiles: readTlsFiles(read),
    logLevel: read.oneOf('LOG_LEVEL', ['debug', 'info', 'warn', 'error'], 'info'),
    /** Where spans are sent, an OTLP/HTTP collector; empty: nothing is traced. */
    otlpEndpoint: read.url('OTEL_EXPORTER_OTLP_ENDPOINT', ['http:', 'https:'], ''),
    databaseUrl: read.url('DATABASE_URL', ['postgres:', 'postgresql:']),
    natsUrl: read.url('NATS_URL', ['nats:', 'tls:']),
    /** On how many NATS servers the stream is kept; a stream with more stays as it is. */
    natsStreamReplicas: read.integer('NATS_STREAM_REPLICAS', { min: 1, max: 5 }, 1),
  };
}
