import { type NatsSettings, readOptionalNatsSettings } from '@scheduling/events';
import { readTlsFiles, type TlsFiles } from '@scheduling/rpc/tls-files';
import {
  type DatabaseService,
  databaseServices,
  type EnvironmentReader,
  readEnvironment,
  readPageUrl,
} from '@scheduling/runtime';
import { userInfo } from 'node:os';

/** A running system; anything not given is not checked. */
export interface System {
  /** Who works with the command, for the audit trail. */
  operator: string;
  /** Where clients reach the gateway. */
  gateway: string | undefined;
  /** Where persons reach their pages. */
  page: string | undefined;
  /** gRPC addresses for operators, `host:port`. */
  services: Partial<Record<DatabaseService, string>>;
  nats: NatsSettings | undefined;
  smtp: string | undefined;
  /** The certificate for the name `admin`, if the services use mutual TLS. */
  certificates: TlsFiles | undefined;
}

/** The only reader of the environment. */
export function readConfig(environment: NodeJS.ProcessEnv): System {
  return readEnvironment(environment, (read) => {
    const gateway = read.url('PUBLIC_URL', ['http:', 'https:'], '') || undefined;
    return {
      operator: read.text('OPERATOR_NAME', userInfo().username),
      gateway,
      page: readPageUrl(read, () => gateway ?? '') || undefined,
      services: readAddresses(read),
      nats: readOptionalNatsSettings(read),
      smtp: read.url('SMTP_URL', ['smtp:', 'smtps:'], '') || undefined,
      certificates: readTlsFiles(read),
    };
  });
}

export function addressVariable(service: DatabaseService): string {
  return `${service.toUpperCase()}_ADDRESS`;
}

function readAddresses(read: EnvironmentReader): System['services'] {
  const addresses = databaseServices.map((service) => [service, read.text(addressVariable(service), '')] as const);
  return Object.fromEntries(addresses.filter(([, address]) => address !== ''));
}
