import { readNatsSettings } from '@scheduling/events';
import { readTlsFiles } from '@scheduling/rpc/tls-files';
import { type EnvironmentReader, readDatabaseUrl, readListenHost, readTracingSettings } from '@scheduling/runtime';

export type ServiceSettings = ReturnType<typeof readServiceSettings>;

/** The environment variables of every service that owns a database. */
export function readServiceSettings(read: EnvironmentReader) {
  return {
    listenHost: readListenHost(read, 'LISTEN_HOST'),
    grpcPort: read.port('GRPC_PORT', 50_051),
    /** Where operators call. By default, only from this machine. */
    adminListenHost: readListenHost(read, 'ADMIN_LISTEN_HOST', '127.0.0.1'),
    adminPort: read.port('ADMIN_PORT', 50_052),
    metricsPort: read.port('METRICS_PORT', 9_090),
    /** If given, calls between services use mutual TLS. */
    tlsFiles: readTlsFiles(read),
    logLevel: read.oneOf('LOG_LEVEL', ['debug', 'info', 'warn', 'error'], 'info'),
    tracing: readTracingSettings(read),
    databaseUrl: readDatabaseUrl(read, 'DATABASE_URL'),
    nats: readNatsSettings(read),
    /** The number of NATS servers that store the stream; an existing stream with more is left alone. */
    natsStreamReplicas: read.integer('NATS_STREAM_REPLICAS', { min: 1, max: 5 }, 1),
  };
}
