export {
  type DatabaseService,
  databaseServices,
  httpServices,
  isHttpService,
  newNamedKey,
  type NatsService,
  natsServices,
  type Service,
  services,
} from '@scheduling/runtime';
export { choosePorts } from './choose-ports.ts';
export { repositoryRoot } from './repository-root.ts';
export {
  databaseVariable,
  host,
  pageUrl,
  type Ports,
  publicUrl,
  type Server,
  servers,
  serviceEnvironment,
  type Surroundings,
  type Unit,
} from './service-table.ts';
export { migrateService, nodeArguments, type ServiceOptions, spawnService, startService } from './start-service.ts';
export { readStackInfo, stackFile, type StackInfo } from './stack-info.ts';
