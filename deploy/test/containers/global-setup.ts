import { chooseServers } from '@scheduling/testing';
import { randomUUID } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { services } from '../service-configuration.ts';
import { compose, docker, plainProject } from './docker.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The compose project that the files of this folder share; empty if no container engine answers. */
    composeProject: string;
  }
}

/**
 * Builds the images and starts the whole system with two replicas of every service. Returns a function that removes it,
 * with its data.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const canCompose = (await chooseServers(process.env['TEST_WITH'])) === 'containers' && (await hasCompose());
  project.provide('composeProject', '');
  if (!canCompose) return async () => undefined;
  const system = plainProject(`scheduling-test-${randomUUID().slice(0, 8)}`);
  const remove = async (): Promise<void> => void (await compose(system, 'down', '--volumes', '--timeout', '15'));
  try {
    await compose(system, 'build', 'admin');
    await compose(system, 'up', '--build', '--wait', ...services.map((service) => `--scale=${service}=2`));
  } catch (error) {
    process.stderr.write(`${await compose(system, 'logs', '--tail', '20')}\n`);
    await remove();
    throw error;
  }
  project.provide('composeProject', system.name);
  return remove;
}

async function hasCompose(): Promise<boolean> {
  try {
    await docker(['compose', 'version']);
    return true;
  } catch {
    process.stderr.write(
      'TEST_WITH=containers: there is no "docker compose" (version 2). The tests of the composed system are skipped.\n',
    );
    return false;
  }
}
