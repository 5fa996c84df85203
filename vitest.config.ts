import { existsSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { defineConfig } from 'vitest/config';

const workspaces = [...['libs', 'apps'].flatMap((folder) => readdirSync(new URL(folder, import.meta.url)).map((name) => `${folder}/${name}`)), 'deploy'];

/** Files of these start the whole stack, or share one: they come alone, one after the other. */
const alone = { fileParallelism: false, sequence: { groupOrder: 1 } };

/** Every workspace with tests is a project of its own name: `vitest run --project calendar`. */
const projects = workspaces
  .filter((workspace) => existsSync(new URL(`${workspace}/package.json`, import.meta.url)))
  .map((workspace) => ({
    extends: true as const,
    root: new URL(workspace, import.meta.url).pathname,
    test: {
      name: basename(workspace),
      include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
      exclude: ['test/http/**', 'test/containers/**', 'test/upgrade/**'],
      // They wait for servers most of the time: two at once even on a small machine.
      ...(workspace === 'apps/local' ? alone : { maxWorkers: Math.max(2, availableParallelism() - 1) }),
    },
  }));

/** The tests of the whole contract over HTTP. */
const http = {
  extends: true as const,
  root: new URL('apps/local', import.meta.url).pathname,
  test: {
    name: 'http',
    include: ['test/http/**/*.test.ts'],
    globalSetup: [new URL('apps/local/test/http/global-setup.ts', import.meta.url).pathname],
    ...alone,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
};

/** UPGRADE_FROM=<commit>: the services of that commit beside those of the working tree. */
const upgrade = {
  extends: true as const,
  root: new URL('apps/local', import.meta.url).pathname,
  test: {
    name: 'upgrade',
    include: ['test/upgrade/**/*.test.ts'],
    sequence: { groupOrder: 3 },
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
};

/** TEST_WITH=containers: the images and the composed system, built and run. They come alone, after everything else. */
const containers = {
  extends: true as const,
  root: new URL('deploy', import.meta.url).pathname,
  test: {
    name: 'containers',
    include: ['test/containers/**/*.test.ts'],
    globalSetup: [new URL('deploy/test/containers/global-setup.ts', import.meta.url).pathname],
    fileParallelism: false,
    sequence: { groupOrder: 2 },
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
};

export default defineConfig({
  test: {
    projects: [
      ...projects,
      http,
      ...(process.env['UPGRADE_FROM'] === undefined ? [] : [upgrade]),
      ...(process.env['TEST_WITH'] === 'containers' ? [containers] : []),
    ],
    passWithNoTests: true,
    // Starts Postgres once for all projects; each test file makes databases of its own in it.
    globalSetup: [new URL('libs/testing/src/global-setup.ts', import.meta.url).pathname],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Processes, not threads: a signal handler or an exit in a test must not reach another file.
    pool: 'forks',
  },
});
