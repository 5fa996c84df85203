import { resolve } from 'node:path';
import { readTlsFiles, type TlsFiles } from '@scheduling/rpc';
import { EnvironmentError, type EnvironmentReader, readEnvironment } from '@scheduling/runtime';
import { databaseServices, type DatabaseService } from './service-table.ts';

export interface Settings {
  /** The gateway's port; 0 takes a free one. */
  port: number;
  dataDir: string;
  /** Begin with empty data. */
  fresh: boolean;
  logLevel: string;
  /** Servers that are given: they are used, and none is started in their place. */
  given: {
    databases: Partial<Record<DatabaseService, string>>;
    nats?: string;
    smtp?: string;
  };
  /** With them the services call each other with mutual TLS; one certificate has the names of all. */
  certificates?: TlsFiles | undefined;
  /** What the operating system and the network ask of any process here; handed to the services beside their own settings. */
  inherited: NodeJS.ProcessEnv;
}

/** Something the person who typed the command can put right; shown without a stack. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const repositoryRoot = resolve(import.meta.dirname, '../../..');

const inheritedNames = [
  'PATH',
  'HOME',
  'TZ',
  'LANG',
  'LC_ALL',
  'NODE_COMPILE_CACHE',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'GRPC_TLS_CERT_FILE',
  'GRPC_TLS_KEY_FILE',
  'GRPC_TLS_CA_FILE',
];

/** Reads the options and the environment of `npm start`. Throws {@link UsageError}. */
export function readSettings({ fresh }: Pick<Settings, 'fresh'>, environment: NodeJS.ProcessEnv): Settings {
  return readOrExplain(environment, (read) => {
    return {
      port: read.port('SCHEDULING_PORT', 8080),
      dataDir: dataDirOf(environment),
      fresh,
      logLevel: read.oneOf('LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'fatal'], 'info'),
      given: {
        databases: readDatabases(read),
        nats: read.url('NATS_URL', ['nats:', 'tls:'], '') || undefined,
        smtp: read.url('SMTP_URL', ['smtp:', 'smtps:'], '') || undefined,
      },
      certificates: readTlsFiles(read),
      inherited: Object.fromEntries(inheritedNames.filter((name) => environment[name]).map((name) => [name, environment[name]])),
    };
  });
}

/** `SCHEDULING_DATA`, or `.data` in the repository. */
export function dataDirOf(environment: NodeJS.ProcessEnv): string {
  return environment.SCHEDULING_DATA ? resolve(environment.SCHEDULING_DATA) : resolve(repositoryRoot, '.data');
}

function readDatabases(read: EnvironmentReader): Partial<Record<DatabaseService, string>> {
  const urls = databaseServices.map((service) => [service, read.url(databaseVariable(service), ['postgres:', 'postgresql:'], '')] as const);
  return Object.fromEntries(urls.filter(([, url]) => url !== ''));
}

export function databaseVariable(service: DatabaseService): string {
  return `DATABASE_URL_${service.toUpperCase()}`;
}

function readOrExplain<T>(environment: NodeJS.ProcessEnv, build: Parameters<typeof readEnvironment<T>>[1]): T {
  try {
    return readEnvironment(environment, build);
  } catch (error) {
    if (error instanceof EnvironmentError) throw new UsageError(error.message, 2);
    throw error;
  }
}
