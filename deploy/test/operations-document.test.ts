import { services } from '@scheduling/runtime';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { configurationTable } from './configuration-table.ts';
import { deployFolder, repositoryRoot } from './kustomizations.ts';
import { configurationSection, operationsDocument } from './operations-document.ts';

const document = readFileSync(operationsDocument, 'utf8');

/** The anchors that Markdown viewers generate from headings. */
function anchorsOf(markdown: string): string[] {
  const headings = [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
}

interface Alerts {
  spec: { groups: { rules: { annotations: { runbook_url: string } }[] }[] };
}

it('docs/operations.md shows the variables as every config.ts has them (else: node deploy/write-configuration.ts)', async () => {
  expect(configurationSection.read(document)).toBe(await configurationTable());
});

it('docs/operations.md has a section for every alert', () => {
  const { spec } = parse(readFileSync(join(deployFolder, 'observability/alerts.yaml'), 'utf8')) as Alerts;
  const runbooks = spec.groups.flatMap(({ rules }) => rules.map(({ annotations }) => annotations.runbook_url));
  expect(runbooks.length).toBeGreaterThan(0);
  const anchors = anchorsOf(document).map((anchor) => `docs/operations.md#${anchor}`);
  expect(runbooks.filter((runbook) => !anchors.some((anchor) => runbook.endsWith(anchor)))).toEqual([]);
});

it.each([
  ...globSync('docs/**/*.md', { cwd: repositoryRoot }),
  'README.md',
  'deploy/README.md',
  ...[...services, 'local'].map((app) => `apps/${app}/README.md`),
])('the links of %s are valid', (file) => {
  const text = readFileSync(join(repositoryRoot, file), 'utf8');
  const links = [...text.matchAll(/\]\((?!https?:)([^)\s]*)\)/g)].map(([, link = '']) => link);
  const broken = links.filter((link) => {
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? join(repositoryRoot, file) : join(repositoryRoot, file, '..', path);
    return !existsSync(target) || (anchor !== undefined && !anchorsOf(readFileSync(target, 'utf8')).includes(anchor));
  });
  expect(broken).toEqual([]);
});
