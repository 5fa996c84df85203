/** The services that own a database of the same name. */
export const databaseServices = ['identity', 'calendar', 'customer', 'notification', 'webhook'] as const;
export type DatabaseService = (typeof databaseServices)[number];

export const services = [...databaseServices, 'gateway'] as const;
export type Service = (typeof services)[number];
