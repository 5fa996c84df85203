export { choosePorts } from './choose-ports.ts';
export { newSecretKeys } from './secret-keys.ts';
export {
  type ConsumingService,
  consumingServices,
  type DatabaseService,
  databaseServices,
  host,
  type Ports,
  publicUrl,
  type Server,
  servers,
  type Service,
  serviceEnvironment,
  services,
  type Surroundings,
  type Unit,
} from './service-table.ts';
export { migrateService, nodeArguments, type ServiceOptions, spawnService, startService } from './start-service.ts';
