import { availableParallelism } from 'node:os';
import { basename, relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** `npm test` leaves tests that take long to CI (TEST_SCOPE=services). Vitest on its own runs all. */
const runsAll = process.env['TEST_SCOPE'] !== 'services';
/**
 * What is shipped with the services: packages, documents, manifests, the start command, and the whole system with
 * certificates and traces.
 */
const release = [
  ...['client-package', 'document-linters', 'guides', 'operators', 'postman', 'problem-examples'].map(
    (name) => `apps/contract-tests/test/${name}`,
  ),
  'libs/embedded/test/postgres',
  'apps/gateway/test/browser',
  'apps/local/test/end-to-end',
];
/**
 * What takes long, and guards what only some changes can break: the whole system while its processes are killed, its
 * databases restored and its persons erased; races and random changes by the hundred; plans and lists of large tables;
 * and the connections that all services share. The tests of each service stop and kill its own processes, too.
 */
const long = [
  ...['list-plans', 'growing-tables', 'slots-contention', 'hours-contention', 'hours-model', 'blocks-contention'].map(
    (name) => `apps/calendar/test/${name}`,
  ),
  ...['erasure', 'erasure-faults', 'faults'].map((name) => `apps/contract-tests/test/${name}`),
  'apps/faults/test/mutations',
  ...['lists', 'long-texts'].map((name) => `apps/gateway/test/${name}`),
  'apps/identity/test/user-races',
  ...['random-mails', 'turns-of-writing'].map((name) => `apps/notification/test/${name}`),
  'libs/events/test/connection',
  ...['outbox-to-inbox', 'relay'].map((name) => `libs/messaging/test/${name}`),
  ...['commit-watch', 'migrate'].map((name) => `libs/postgres/test/${name}`),
];
const leftToCi = runsAll ? [] : [...release, ...long].map((file) => `${file}.test.ts`);

/**
 * Tests whose time limits are close to what they need, and beside them others that wait nearly all the time. They run
 * last, two at a time.
 */
const timed = ['apps/local/test/stack.test.ts'];
const waiting = ['libs/postgres/test/migrate.test.ts', 'libs/events/test/connection.test.ts'];
const lastFiles = runsAll ? [...timed, ...waiting] : [];

/**
 * The longest files, which wait most of the time. Starting with them keeps the end of a run from having one worker busy
 * and the others idle.
 */
const longest = [
  'contract-tests/test/faults.test.ts',
  'contract-tests/test/erasure-faults.test.ts',
  'calendar/test/contention.test.ts',
  'notification/test/random-mails.test.ts',
  'local/test/end-to-end.test.ts',
  'local/test/stack.test.ts',
];

/** The files of a project follow each other: a worker ends when the next file belongs to another one. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId, project }: TestSpecification): string =>
      longest.some((name) => moduleId.endsWith(name)) ? '' : project.name;
    return sorted.sort((a, b) => rank(a).localeCompare(rank(b)));
  }
}

/**
 * A machine that needs longer for so much new memory is slow: it takes twice as long where a virtual machine gives its
 * free memory back to the host.
 */
const slowMemory = { bytes: 128 * 1_024 * 1_024, ms: 250 };

/**
 * Most tests wait for servers: five files at once keep both cores of a small machine busy for 87 % of the time, four
 * for 80 %. A slow one is busy with three; five take longer there, and make each other's processes miss the time limits
 * of production.
 */
function filesAtOnce(): number {
  // Vitest evaluates this file once for each project, and all of them must have the same number: it is measured once.
  const known = process.env['VITEST_FILES_AT_ONCE'] ?? (isSlow() ? '3' : '5');
  process.env['VITEST_FILES_AT_ONCE'] = known;
  return Number(known);
}

function isSlow(): boolean {
  const startedMs = performance.now();
  Buffer.alloc(slowMemory.bytes, 1);
  return performance.now() - startedMs > slowMemory.ms;
}

const tests = (workspace: string): string[] => [`${workspace}/src/**/*.test.ts`, `${workspace}/test/**/*.test.ts`];

/**
 * The workspaces whose tests need no common set-up. They are one project, because a worker and what it has loaded serve
 * only one.
 */
const all = {
  extends: true as const,
  test: {
    name: 'all',
    include: ['libs/*', 'apps/*'].flatMap(tests),
    exclude: [
      '**/node_modules/**',
      'apps/calendar/**',
      'apps/contract-tests/**',
      'apps/local/test/upgrade/**',
      'apps/faults/test/checkers.test.ts',
      ...timed,
      ...lastFiles,
      ...leftToCi,
    ],
  },
};

/** The workspaces whose files share something that takes long to set up. */
const withSetUp = ['apps/calendar', ...(runsAll ? ['deploy'] : [])].map((workspace) => ({
  extends: true as const,
  root: new URL(workspace, import.meta.url).pathname,
  test: {
    name: basename(workspace),
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['test/containers/**', ...leftToCi.map((file) => relative(workspace, file))],
    globalSetup: ['test/global-setup.ts'],
  },
}));

/** The tests of the whole contract over HTTP. */
const contractTests = {
  extends: true as const,
  root: new URL('apps/contract-tests', import.meta.url).pathname,
  test: {
    name: 'contract-tests',
    include: ['test/**/*.test.ts'],
    exclude: [
      'test/python-client/**',
      'test/generated-clients/**',
      'test/schemathesis/**',
      ...leftToCi.map((file) => relative('apps/contract-tests', file)),
    ],
    globalSetup: ['test/global-setup.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
};

/** PYTHON_CLIENT=<python>: the tests of the client for Python, which that Python runs. */
const pythonClient = {
  extends: true as const,
  root: contractTests.root,
  test: {
    name: 'python-client',
    include: ['test/python-client/**/*.test.ts'],
    globalSetup: contractTests.test.globalSetup,
    hookTimeout: contractTests.test.hookTimeout,
  },
};

/** GENERATED_CLIENTS=<languages>: the clients that openapi-generator makes of the API document. */
const generatedClients = {
  ...pythonClient,
  test: { ...pythonClient.test, name: 'generated-clients', include: ['test/generated-clients/**/*.test.ts'] },
};

/** SCHEMATHESIS=<command>: random requests, which it makes from the API document. */
const schemathesis = {
  ...pythonClient,
  test: { ...pythonClient.test, name: 'schemathesis', include: ['test/schemathesis/**/*.test.ts'] },
};

const last = {
  extends: true as const,
  test: { name: 'last', include: lastFiles, maxWorkers: 2, sequence: { groupOrder: 1 } },
};

/** UPGRADE_FROM=<commit>: the services of that commit beside those of the working tree. */
const upgrade = {
  extends: true as const,
  root: new URL('apps/local', import.meta.url).pathname,
  test: {
    name: 'upgrade',
    include: ['test/upgrade/**/*.test.ts'],
    maxWorkers: 1,
    sequence: { groupOrder: 3 },
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
};

/** FAULT_CHECKS=all, or a number for two of them: the checks of the fault harness, against systems that break a promise. */
const faults = {
  extends: true as const,
  root: new URL('apps/faults', import.meta.url).pathname,
  test: {
    name: 'faults',
    include: ['test/checkers.test.ts'],
    maxWorkers: 1,
    sequence: { groupOrder: 4 },
  },
};

/** TEST_WITH=containers: the images and the composed system, built and run. They come alone, after everything else. */
const containers = {
  extends: true as const,
  root: new URL('deploy', import.meta.url).pathname,
  test: {
    name: 'containers',
    include: ['test/containers/**/*.test.ts'],
    globalSetup: ['test/containers/global-setup.ts'],
    maxWorkers: 1,
    sequence: { groupOrder: 2 },
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
};

export default defineConfig({
  test: {
    projects: [
      all,
      ...withSetUp,
      contractTests,
      last,
      ...(process.env['PYTHON_CLIENT'] === undefined ? [] : [pythonClient]),
      ...(process.env['GENERATED_CLIENTS'] === undefined ? [] : [generatedClients]),
      ...(process.env['SCHEMATHESIS'] === undefined ? [] : [schemathesis]),
      ...(process.env['UPGRADE_FROM'] === undefined ? [] : [upgrade]),
      ...(process.env['FAULT_CHECKS'] === undefined ? [] : [faults]),
      ...(process.env['TEST_WITH'] === 'containers' ? [containers] : []),
    ],
    passWithNoTests: true,
    sequence: { sequencer: LongestFirst },
    // Starts Postgres once for all projects; each test file makes databases of its own in it.
    globalSetup: [new URL('libs/testing/src/global-setup.ts', import.meta.url).pathname],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Processes, not threads: a signal handler or an exit in a test must not reach another file.
    pool: 'forks',
    maxWorkers: Math.max(filesAtOnce(), availableParallelism() - 1),
    // Otherwise a worker spends a tenth of its time on collecting what is young.
    execArgv: ['--max-semi-space-size=32'],
    // The files that a worker runs one after the other share what they import: to load it takes longer than most of
    // them.
    isolate: false,
    reporters: ['default', new URL('libs/testing/src/summary-reporter.ts', import.meta.url).pathname],
  },
});
