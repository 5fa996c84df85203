import { resolve } from 'node:path';
import { readTlsFiles, type TlsFiles } from '@scheduling/rpc';
import { EnvironmentError, type EnvironmentReader, readEnvironment } from '@scheduling/runtime';
import { databaseServices, type DatabaseService, type Service } from './service-table.ts';

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

/** A running system that the doctor looks at; what is not given is not looked at. */
export interface System {
  /** Where clients reach the gateway. */
  gateway?: string | undefined;
  /** gRPC addresses. */
  services: Partial<Record<DatabaseService, string>>;
  databases: Partial<Record<DatabaseService, string>>;
  nats?: string | undefined;
  smtp?: string | undefined;
  /** Given when the services call each other with mutual TLS. */
  certificates?: TlsFiles | undefined;
}

/** The system whose addresses are in the environment; undefined when none is. Throws {@link UsageError}. */
export function readSystem(environment: NodeJS.ProcessEnv): System | undefined {
  const system = readOrExplain(environment, (read) => ({
    gateway: read.url('PUBLIC_URL', ['http:', 'https:'], '') || undefined,
    services: readAddresses(read),
    databases: readDatabases(read),
    nats: read.url('NATS_URL', ['nats:', 'tls:'], '') || undefined,
    smtp: read.url('SMTP_URL', ['smtp:', 'smtps:'], '') || undefined,
  }));
  const { services, databases, ...others } = system;
  const given = [...Object.values(services), ...Object.values(databases), ...Object.values(others)];
  return given.some((value) => value !== undefined) ? system : undefined;
}

/** The operator's own certificate for calls, when the services ask for one. Throws {@link UsageError}. */
export function readCertificateFiles(environment: NodeJS.ProcessEnv): TlsFiles | undefined {
  return readOrExplain(environment, readTlsFiles);
}

/** `SCHEDULING_DATA`, or `.data` in the repository. */
export function dataDirOf(environment: NodeJS.ProcessEnv): string {
  return environment.SCHEDULING_DATA ? resolve(environment.SCHEDULING_DATA) : resolve(repositoryRoot, '.data');
}

function readDatabases(read: EnvironmentReader): Partial<Record<DatabaseService, string>> {
  const urls = databaseServices.map((service) => [service, read.url(databaseVariable(service), ['postgres:', 'postgresql:'], '')] as const);
  return Object.fromEntries(urls.filter(([, url]) => url !== ''));
}

function readAddresses(read: EnvironmentReader): System['services'] {
  const addresses = databaseServices.map((service) => [service, read.text(addressVariable(service), '')] as const);
  return Object.fromEntries(addresses.filter(([, address]) => address !== ''));
}

export function databaseVariable(service: DatabaseService): string {
  return `DATABASE_URL_${service.toUpperCase()}`;
}

export function addressVariable(service: Service): string {
  return `${service.toUpperCase()}_ADDRESS`;
}

function readOrExplain<T>(environment: NodeJS.ProcessEnv, build: Parameters<typeof readEnvironment<T>>[1]): T {
  try {
    return readEnvironment(environment, build);
  } catch (error) {
    if (error instanceof EnvironmentError) throw new UsageError(error.message, 2);
    throw error;
  }
}
