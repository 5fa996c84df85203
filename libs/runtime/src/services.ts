/** The services that own a database of the same name. */
export const databaseServices = ['identity', 'calendar', 'customer', 'notification', 'webhook'] as const;
export type DatabaseService = (typeof databaseServices)[number];

/** The services that use NATS. */
export const natsServices = [...databaseServices, 'gateway'] as const;
export type NatsService = (typeof natsServices)[number];

/** The services that serve HTTP, and have no database. */
export const httpServices = ['gateway', 'page'] as const;
export type HttpService = (typeof httpServices)[number];

export const services = [...databaseServices, ...httpServices] as const;
export type Service = (typeof services)[number];

export function isHttpService(service: Service): service is HttpService {
  return (httpServices as readonly Service[]).includes(service);
}
