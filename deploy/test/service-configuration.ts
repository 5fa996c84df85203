import type { describeEnvironment, EnvironmentVariable, Service } from '@scheduling/runtime';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { repositoryRoot } from './kustomizations.ts';

type ReadConfig = (environment: NodeJS.ProcessEnv) => Record<string, unknown>;

/** What a service's own `config.ts` reads from its environment. */
export interface ServiceConfiguration {
  /** Every variable that it reads. */
  variables: ReadonlySet<string>;
  /** The same with defaults and allowed values, in the order of the file. */
  described: EnvironmentVariable[];
  /** Its ports by name for an environment. Throws if a variable is missing or invalid. */
  ports(environment: Record<string, string>): Record<string, number>;
}

/** The folders of `apps` that are services. */
export const services = readdirSync(join(repositoryRoot, 'apps')).filter((app) =>
  existsSync(join(repositoryRoot, 'apps', app, 'src/service.ts')),
) as Service[];

export async function readServiceConfiguration(service: string): Promise<ServiceConfiguration> {
  // Not imported statically: nothing depends on a service's code, and these checks read its configuration as its
  // process does.
  const file = pathToFileURL(join(repositoryRoot, 'apps', service, 'src/config.ts')).href;
  const { readConfig } = (await import(/* @vite-ignore */ file)) as { readConfig: ReadConfig };
  const described = (await runtimeOf()).describeEnvironment(readConfig);
  return {
    variables: new Set(described.map(({ name }) => name)),
    described,
    ports: (environment) => {
      const ports = Object.entries(readConfig(environment)).filter(([name]) => name.endsWith('Port'));
      return Object.fromEntries(ports.map(([name, port]) => [name.slice(0, -'Port'.length), port as number]));
    },
  };
}

/**
 * The same module instance that the configuration imports; the test runner's own instance would not see what is read.
 */
function runtimeOf(): Promise<{ describeEnvironment: typeof describeEnvironment }> {
  return import(/* @vite-ignore */ pathToFileURL(join(repositoryRoot, 'libs/runtime/src/index.ts')).href);
}
