/** The services that own a database of the same name. */
export const databaseServices = ['identity', 'calendar', 'customer', 'notification'] as const;
export type DatabaseService = (typeof databaseServices)[number];

export const services = [...databaseServices, 'gateway'] as const;
export type Service = (typeof services)[number];

/** Those that consume events; the name of a consumer begins with its service's. */
export const consumingServices = ['calendar', 'customer', 'notification'] as const;
export type ConsumingService = (typeof consumingServices)[number];

/** What the stack runs besides the services, unless it is given. */
export const servers = ['postgres', 'nats', 'inbox'] as const;
export type Server = (typeof servers)[number];

export type Unit = Service | Server;

export interface Ports {
  /** gRPC, or HTTP for the gateway. */
  main: number;
  metrics: number;
}

export interface Surroundings {
  ports: Record<Service, Ports>;
  databaseUrls: Record<DatabaseService, string>;
  natsUrl: string;
  smtpUrl: string;
  logLevel: string;
}

/** The address on which everything listens: nothing of a laptop's stack is meant for the network. */
export const host = '127.0.0.1';

/** The variables of one service: all that it knows of the world, as in production. */
export function serviceEnvironment(service: Service, around: Surroundings): Record<string, string> {
  const { ports } = around;
  const address = (of: Service): string => `${host}:${ports[of].main}`;
  const every = { LISTEN_HOST: host, METRICS_PORT: String(ports[service].metrics), LOG_LEVEL: around.logLevel, NATS_URL: around.natsUrl };
  if (service === 'gateway') {
    return {
      ...every,
      HTTP_PORT: String(ports.gateway.main),
      IDENTITY_ADDRESS: address('identity'),
      CALENDAR_ADDRESS: address('calendar'),
      CUSTOMER_ADDRESS: address('customer'),
      PUBLIC_URL: publicUrl(ports),
    };
  }
  const owner = { ...every, GRPC_PORT: String(ports[service].main), DATABASE_URL: around.databaseUrls[service] };
  switch (service) {
    case 'identity':
      return owner;
    case 'calendar':
      return { ...owner, IDENTITY_ADDRESS: address('identity'), CUSTOMER_ADDRESS: address('customer') };
    case 'customer':
      return { ...owner, IDENTITY_ADDRESS: address('identity'), CALENDAR_ADDRESS: address('calendar') };
    case 'notification':
      return {
        ...owner,
        IDENTITY_ADDRESS: address('identity'),
        CALENDAR_ADDRESS: address('calendar'),
        CUSTOMER_ADDRESS: address('customer'),
        SMTP_URL: around.smtpUrl,
        PUBLIC_URL: publicUrl(ports),
      };
  }
}

export function publicUrl(ports: Surroundings['ports']): string {
  return `http://${host}:${ports.gateway.main}`;
}
