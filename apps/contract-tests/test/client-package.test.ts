import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '@scheduling/embedded';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { repositoryRoot } from '@scheduling/stack';
import { createCrm, createPractice, createTimeslot, type TestCrm } from '@scheduling/test-stack/crm';
import { checkAfternoon } from './afternoon.ts';
import { waitForFeed } from './feed.ts';

const run = promisify(execFile);
const modules = join(repositoryRoot, 'node_modules');
const source = join(repositoryRoot, 'libs/client');
const { version } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8')) as { version: string };
const tarball = `scheduling-client-${version}.tgz`;

/** What the compiler has to report. */
const mistakes = `
import { createClient, paginate } from '@scheduling/client';

const client = createClient({ url: '', crmId: '', key: '' });
const params = { path: { providerRef: 'yoga' } };
export const mistakes = [
  // @ts-expect-error -- an unknown path
  () => client.GET('/provider/{providerRef}/slot', { params }),
  // @ts-expect-error -- no parameters in the path
  () => client.GET('/provider/{providerRef}/slots'),
  // @ts-expect-error -- a misspelled parameter
  () => client.GET('/provider/{providerRef}/slots', { params: { ...params, query: { limmit: 1 } } }),
  // @ts-expect-error -- a misspelled option
  () => client.GET('/webhooks', { param: {} }),
  // @ts-expect-error -- no email
  () => client.POST('/user', { body: { reference: 'mara@crm', username: 'mara', lastName: 'Blum' } }),
  // @ts-expect-error -- no such field in the response
  async () => (await client.GET('/webhooks')).data[0]?.uri,
  // @ts-expect-error -- a list without pages
  () => paginate(client, '/provider/{providerRef}/staff', { params }),
  // @ts-expect-error -- no parameters in the path
  () => paginate(client, '/provider/{providerRef}/slots'),
];
`;

let folder: string;
let packed: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'client-package-'));
  packed = (await run('node', [join(source, 'pack.ts'), folder])).stdout;
  await install(join(folder, tarball));
  await cp(join(folder, 'node_modules/@scheduling/client/examples/afternoon.ts'), join(folder, 'afternoon.ts'));
  await writeFile(join(folder, 'mistakes.ts'), mistakes);
  for (const [, name, code] of (await readFile(join(source, 'README.md'), 'utf8')).matchAll(
    /^```ts\n\/\/ (\S+)\n([^]*?)^```$/gm,
  )) {
    await writeFile(join(folder, name!), code!);
  }
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  const compilerOptions = {
    target: 'esnext',
    module: 'nodenext',
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    types: ['node'],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
});
afterAll(() => rm(folder, { recursive: true }));

/** As npm does, but without a registry: with the packages that the manifest names, and those of the example. */
async function install(file: string): Promise<void> {
  const installed = join(folder, 'node_modules/@scheduling/client');
  await mkdir(installed, { recursive: true });
  await run('tar', ['-xzf', file, '-C', installed, '--strip-components=1']);
  const { dependencies } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  for (const name of [...Object.keys(dependencies), '@types/node']) {
    await mkdir(dirname(join(folder, 'node_modules', name)), { recursive: true });
    await symlink(join(modules, name), join(folder, 'node_modules', name));
  }
}

describe('the package of the client', () => {
  it('contains what it exports, and nothing of this repository', async () => {
    const { stdout } = await run('tar', ['-tzf', join(folder, tarball)]);
    expect(stdout).toContain('package/README.md\n');
    expect(stdout).toContain('package/LICENSE\n');
    expect(stdout).not.toContain('test');
    const manifest = JSON.parse(
      await readFile(join(folder, 'node_modules/@scheduling/client/package.json'), 'utf8'),
    ) as object;
    expect(Object.keys(manifest)).not.toContain('private');
    expect(Object.keys(manifest)).not.toContain('devDependencies');
  });

  it('is served by a gateway that runs from this repository', async () => {
    const response = await fetch(`${inject('stack').gateway}/client.tgz`);
    expect(response.headers.get('content-type')).toBe('application/gzip');
    expect(Buffer.from(await response.arrayBuffer())).toEqual(await readFile(join(folder, tarball)));
  });

  it('adds less than 5 kB to an application that does not verify webhooks, and less than 10 kB to any', () => {
    const [, client, everything] = /createClient (\S+) kB, everything (\S+) kB/.exec(packed)!.map(Number);
    expect(client).toBeGreaterThan(1);
    expect(client).toBeLessThan(5);
    expect(everything).toBeLessThan(10);
  });

  it('finds mistakes when an application is compiled, and none in the example and the README', async () => {
    const { stdout } = await run('tsc', ['--project', folder]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe('');
  });

  it('is all that an integrator needs for an afternoon: less than 70 lines to set up, publish, book, move, cancel and erase', async () => {
    const program = await readFile(join(folder, 'afternoon.ts'), 'utf8');
    expect(program.split('\n').length).toBeLessThan(70);
    await checkAfternoon('node afternoon.ts', folder);
  });

  it('works as its README says', async () => {
    const crm = await createCrm();
    const practice = await createPractice(crm, { provider: 'yoga@tour' });
    const day = Temporal.Now.plainDateISO('UTC').add({ days: 2 }).toString();
    await createTimeslot(practice, { start: `${day}T09:00Z`, end: `${day}T10:00Z`, raster: 60 });
    expect(await runAs(crm, 'book.ts')).toBe(`BOOKED ${day}T09:00:00Z\n`);
    expect(await runAs(crm, 'errors.ts')).toMatch(/^404 provider\.not_found: \S/);
    expect(await runAs(crm, 'pages.ts')).toBe(`${day}T09:00:00Z 1\n`);
    await waitForFeed(crm, 1, { types: 'participation.created' });
    expect(await runAs(crm, 'feed.ts')).toContain('participation.created booking-7@tour\n');
  });
});

/** Runs a program in the folder as this CRM, and returns what it prints. */
async function runAs({ crmId, key }: TestCrm, program: string): Promise<string> {
  const settings = { SCHEDULING_URL: inject('stack').gateway, CRM: crmId, KEY: key, PORT: String(await freePort()) };
  const { stdout, stderr } = await run('node', [program], {
    cwd: folder,
    env: { PATH: process.env['PATH'], ...settings },
  });
  expect(stderr).toBe('');
  return stdout;
}
