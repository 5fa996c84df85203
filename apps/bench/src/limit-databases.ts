import { withClient } from '@scheduling/embedded';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  databaseServices,
  natsServices,
  newNamedKey,
  repositoryRoot,
  serviceEnvironment,
  services,
  type Surroundings,
} from '@scheduling/stack';

const run = promisify(execFile);

/** Databases on the server of a stack that no service uses, with the schemas of calendar and customer. */
export interface LimitDatabases {
  /** For the superuser. */
  url(service: LimitService): string;
  hasProgram(name: 'pgbench' | 'psql'): Promise<boolean>;
}

type LimitService = 'calendar' | 'customer';

export async function createLimitDatabases(superuserUrl: (database: string) => string): Promise<LimitDatabases> {
  const url = (service: LimitService): string => superuserUrl(`limit_${service}`);
  for (const service of ['calendar', 'customer'] as const) {
    await withClient(superuserUrl('postgres'), (client) => client.query(`CREATE DATABASE limit_${service}`));
    await migrate(service, url(service));
  }
  const programs = new Map<string, Promise<boolean>>();
  return {
    url,
    hasProgram: (name) => {
      const known = programs.get(name) ?? isOnPath(name);
      programs.set(name, known);
      return known;
    },
  };
}

/** With the service's own command, which needs no server but Postgres. */
async function migrate(service: LimitService, url: string): Promise<void> {
  const unused = <Name extends string>(names: readonly Name[], value: (name: Name) => unknown) =>
    Object.fromEntries(names.map((name) => [name, value(name)]));
  const around = {
    ports: unused(services, () => ({ main: 1, metrics: 1 })),
    adminPorts: unused(databaseServices, () => 1),
    databaseUrls: unused(databaseServices, () => url),
    natsUrls: unused(natsServices, () => 'nats://127.0.0.1:1'),
    smtpUrl: '',
    linkKeys: newNamedKey(),
    logLevel: 'warn',
  } as unknown as Surroundings;
  const { PATH } = process.env;
  await run(process.execPath, [join(repositoryRoot, 'apps', service, 'src/main.ts'), 'migrate'], {
    env: { PATH, ...serviceEnvironment(service, around) },
  });
}

function isOnPath(program: string): Promise<boolean> {
  return run(program, ['--version']).then(
    () => true,
    () => false,
  );
}
