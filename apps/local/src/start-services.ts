import { join } from 'node:path';
import type { Child } from '@scheduling/embedded';
import {
  databaseServices,
  isHttpService,
  migrateService,
  repositoryRoot,
  type Service,
  type ServiceOptions,
  startService,
  type Surroundings,
} from '@scheduling/stack';
import { type Settings, withCertificatesOf } from './config.ts';
import type { DataFolder } from './data-folder.ts';
import type { Reporter } from './reporter.ts';

export interface ServiceRunner {
  /** Migrates the databases to the current schema, one process per service. */
  migrate(): Promise<void>;
  /** Starts a service and returns when its `/readyz` is green. */
  start(service: Service): Promise<Child>;
  /** Starts it again. If its code is watched, its schema may have changed, too. */
  restart(service: Service): Promise<Child>;
}

/** Runs the services as in production: one process each, configured only by environment variables. */
export function createServiceRunner(
  settings: Settings,
  folder: DataFolder,
  around: Surroundings,
  reporter: Reporter,
): ServiceRunner {
  const optionsOf = (service: Service): ServiceOptions => ({
    service,
    around,
    root: repositoryRoot,
    logFile: join(folder.path, 'logs', `${service}.log`),
    inherited: withCertificatesOf(service, settings.inherited),
    onSpawn: (pid) => folder.record(service, pid),
  });
  const start = (service: Service): Promise<Child> => startService(optionsOf(service));
  return {
    migrate: () =>
      reporter.step(
        'schemas',
        async () => void (await Promise.all(databaseServices.map((service) => migrateService(optionsOf(service))))),
      ),
    start,
    restart: async (service) => {
      if (settings.watch && !isHttpService(service)) await migrateService(optionsOf(service));
      return start(service);
    },
  };
}
