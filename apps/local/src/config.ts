import { resolve } from 'node:path';
import { readNatsUrl } from '@scheduling/events/nats-url';
import { readTlsFiles, type TlsFiles } from '@scheduling/rpc/tls-files';
import { readDatabaseUrl } from '@scheduling/runtime/database-url';
import { EnvironmentError, type EnvironmentReader, readEnvironment } from '@scheduling/runtime/environment';
import {
  databaseServices,
  type DatabaseService,
  databaseVariable,
  repositoryRoot,
  type Service,
} from '@scheduling/stack';

export interface Settings {
  /** The gateway's port; 0 picks a free one. */
  port: number;
  dataDir: string;
  /** Start with empty data. */
  fresh: boolean;
  /** Migrate and restart a service when its code changes. */
  watch: boolean;
  logLevel: string;
  /** Whether the embedded Postgres waits until the disk has stored what it commits. */
  durable: boolean;
  /** Existing servers to use instead of starting embedded ones. */
  given: {
    databases: Partial<Record<DatabaseService, string>>;
    nats?: string;
    smtp?: string;
  };
  /**
   * The certificate of this command, as that of an operator. If given, the services call each other with mutual TLS.
   */
  certificates?: TlsFiles | undefined;
  /**
   * Variables that the operating system and the network require of any process; passed to the services in addition to
   * their own settings.
   */
  inherited: NodeJS.ProcessEnv;
}

/** Something the user of the command can fix; shown without a stack trace. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

const certificateVariables = ['GRPC_TLS_CERT_FILE', 'GRPC_TLS_KEY_FILE', 'GRPC_TLS_CA_FILE'];

const inheritedNames = [
  'PATH',
  'HOME',
  'TZ',
  'LANG',
  'LC_ALL',
  'NODE_COMPILE_CACHE',
  'NODE_OPTIONS',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_TRACES_SAMPLER',
  'OTEL_TRACES_SAMPLER_ARG',
  ...certificateVariables,
];

/** Reads the options and the environment of `npm start`. Throws {@link UsageError}. */
export function readSettings(
  { fresh, watch = false }: { fresh: boolean; watch?: boolean },
  environment: NodeJS.ProcessEnv,
): Settings {
  return readOrExplain(withCertificatesOf('admin', environment), (read) => {
    return {
      port: read.port('SCHEDULING_PORT', 8080),
      dataDir: dataDirOf(environment),
      fresh,
      watch,
      logLevel: read.oneOf('LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'fatal'], 'info'),
      durable: read.oneOf('POSTGRES_FSYNC', ['on', 'off'], 'on') === 'on',
      given: {
        databases: readDatabases(read),
        nats: readNatsUrl(read, '') || undefined,
        smtp: read.url('SMTP_URL', ['smtp:', 'smtps:'], '') || undefined,
      },
      certificates: readTlsFiles(read),
      inherited: Object.fromEntries(
        inheritedNames.filter((name) => environment[name]).map((name) => [name, environment[name]]),
      ),
    };
  });
}

/**
 * The environment of one process, which may have its own certificate: `{service}` in the names of the files stands for
 * the process.
 */
export function withCertificatesOf(name: Service | 'admin', environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const given = certificateVariables.filter((variable) => environment[variable] !== undefined);
  return {
    ...environment,
    ...Object.fromEntries(given.map((variable) => [variable, environment[variable]?.replaceAll('{service}', name)])),
  };
}

/** `SCHEDULING_DATA`, or `.data` in the repository. */
export function dataDirOf(environment: NodeJS.ProcessEnv): string {
  return environment.SCHEDULING_DATA ? resolve(environment.SCHEDULING_DATA) : resolve(repositoryRoot, '.data');
}

/** How services that run in containers or on another machine reach this one. */
export function inboxHostOf(environment: NodeJS.ProcessEnv): string {
  return environment['WEBHOOK_INBOX_HOST'] || '127.0.0.1';
}

function readDatabases(read: EnvironmentReader): Partial<Record<DatabaseService, string>> {
  const urls = databaseServices.map(
    (service) => [service, readDatabaseUrl(read, databaseVariable(service), '')] as const,
  );
  return Object.fromEntries(urls.filter(([, url]) => url !== ''));
}

function readOrExplain<T>(environment: NodeJS.ProcessEnv, build: Parameters<typeof readEnvironment<T>>[1]): T {
  try {
    return readEnvironment(environment, build);
  } catch (error) {
    if (error instanceof EnvironmentError) throw new UsageError(error.message, 2);
    throw error;
  }
}
