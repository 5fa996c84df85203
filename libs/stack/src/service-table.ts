import type { DatabaseService, NatsService, Service } from '@scheduling/runtime';

/** What the stack runs besides the services, unless existing servers are given. */
export const servers = ['postgres', 'nats', 'inbox'] as const;
export type Server = (typeof servers)[number];

export type Unit = Service | Server;

export interface Ports {
  /** gRPC, or HTTP for the gateway and page. */
  main: number;
  metrics: number;
}

export interface Surroundings {
  ports: Record<Service, Ports>;
  /** gRPC for operators. */
  adminPorts: Record<DatabaseService, number>;
  databaseUrls: Record<DatabaseService, string>;
  /** The address of NATS for each service that uses it, with its own user unless the operator gave one for all. */
  natsUrls: Record<NatsService, string>;
  smtpUrl: string;
  /** Where the mails of sandboxes are shown; undefined: nowhere. */
  sandboxSmtpUrl?: string | undefined;
  /** Where a service reaches another one, if not at its port: through a proxy. */
  addressOf?: (caller: Service, called: Service) => string;
  /** The keys that seal the secrets of webhooks. */
  webhookSecretKeys: string;
  /** The keys that sign the links of persons. */
  linkKeys: string;
  logLevel: string;
}

/** The address on which everything listens: nothing in a local stack should be reachable from the network. */
export const host = '127.0.0.1';

/** The environment variables of one service: all of its configuration, as in production. */
export function serviceEnvironment(service: Service, around: Surroundings): Record<string, string> {
  const { ports } = around;
  const address = (of: Service): string => around.addressOf?.(service, of) ?? `${host}:${ports[of].main}`;
  const every = {
    LISTEN_HOST: host,
    METRICS_PORT: String(ports[service].metrics),
    LOG_LEVEL: around.logLevel,
  };
  if (service === 'page') {
    return {
      ...every,
      HTTP_PORT: String(ports.page.main),
      IDENTITY_ADDRESS: address('identity'),
      CALENDAR_ADDRESS: address('calendar'),
      PAGE_URL: pageUrl(ports),
      // Who is on this machine may say for whom it asks: tests are many persons.
      TRUSTED_PROXIES: host,
    };
  }
  const connected = { ...every, NATS_URL: around.natsUrls[service] };
  if (service === 'gateway') {
    return {
      ...connected,
      HTTP_PORT: String(ports.gateway.main),
      IDENTITY_ADDRESS: address('identity'),
      CALENDAR_ADDRESS: address('calendar'),
      CUSTOMER_ADDRESS: address('customer'),
      NOTIFICATION_ADDRESS: address('notification'),
      WEBHOOK_ADDRESS: address('webhook'),
      PUBLIC_URL: publicUrl(ports),
      PAGE_URL: pageUrl(ports),
    };
  }
  const listening = { GRPC_PORT: String(ports[service].main), ADMIN_PORT: String(around.adminPorts[service]) };
  const owner = { ...connected, ...listening, DATABASE_URL: around.databaseUrls[service] };
  switch (service) {
    case 'identity':
      return owner;
    case 'calendar':
      return {
        ...owner,
        IDENTITY_ADDRESS: address('identity'),
        CUSTOMER_ADDRESS: address('customer'),
        LINK_KEYS: around.linkKeys,
      };
    case 'customer':
      return { ...owner, IDENTITY_ADDRESS: address('identity'), CALENDAR_ADDRESS: address('calendar') };
    case 'notification':
      return {
        ...owner,
        IDENTITY_ADDRESS: address('identity'),
        CALENDAR_ADDRESS: address('calendar'),
        CUSTOMER_ADDRESS: address('customer'),
        SMTP_URL: around.smtpUrl,
        ...(around.sandboxSmtpUrl !== undefined && { SANDBOX_SMTP_URL: around.sandboxSmtpUrl }),
        PUBLIC_URL: publicUrl(ports),
        PAGE_URL: pageUrl(ports),
      };
    case 'webhook':
      return {
        ...owner,
        IDENTITY_ADDRESS: address('identity'),
        CALENDAR_ADDRESS: address('calendar'),
        CUSTOMER_ADDRESS: address('customer'),
        WEBHOOK_SECRET_KEYS: around.webhookSecretKeys,
        // Endpoints on this machine.
        WEBHOOK_ALLOW_PRIVATE: 'true',
      };
  }
}

export function publicUrl(ports: Surroundings['ports']): string {
  return `http://${host}:${ports.gateway.main}`;
}

/** The base address of the pages for persons. */
export function pageUrl(ports: Surroundings['ports']): string {
  return `http://${host}:${ports.page.main}`;
}

/** The setting of `npm start` for a service's database. */
export function databaseVariable(service: DatabaseService): string {
  return `DATABASE_URL_${service.toUpperCase()}`;
}
