import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { certificates, examples, observability, overlays } from './kustomizations.ts';
import { type Manifest, renderKustomization } from './render-kustomization.ts';

const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;

describe('the renderer of the checks', () => {
  it.skipIf(!hasKubectl).each([...overlays, examples, certificates, observability])('renders $name as kubectl does', ({ folder }) => {
    const { stdout, stderr, status } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
    expect(status, stderr).toBe(0);
    const rendered = withoutHashes(parseAllDocuments(stdout).map((document) => document.toJS() as Manifest));
    expect(inOrder(renderKustomization(folder))).toEqual(inOrder(rendered));
  });
});

describe('a kustomization', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kustomization-'));
    mkdirSync(join(folder, 'base'));
    write('base', 'resources: [budget.yaml]\nconfigMapGenerator: [{ name: one, literals: [A=1, B=x=y] }]');
    writeFileSync(join(folder, 'base/budget.yaml'), 'apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: { name: one }\nspec: { maxUnavailable: 1 }\n');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const write = (path: string, content: string) => writeFileSync(join(folder, path, 'kustomization.yaml'), content);
  const patch = (operation: string) => `resources: [base]\npatches: [{ target: { kind: PodDisruptionBudget }, patch: '[${operation}]' }]`;

  it('merges and patches what its base has', () => {
    write('.', `${patch('{ op: replace, path: /spec/maxUnavailable, value: 2 }')}\nnamespace: here\nconfigMapGenerator: [{ name: one, behavior: merge, literals: [A=2] }]`);
    expect(renderKustomization(folder)).toEqual([
      { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'one', namespace: 'here' }, spec: { maxUnavailable: 2 } },
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one', namespace: 'here' }, data: { A: '2', B: 'x=y' } },
    ]);
  });

  it('is changed by a component before its own patches', () => {
    mkdirSync(join(folder, 'component'));
    write('component', `configMapGenerator: [{ name: one, behavior: merge, literals: [C=3] }]\n${patch('{ op: add, path: /spec/selector, value: {} }').replace('resources: [base]', '')}`);
    write('.', `components: [component]\nconfigMapGenerator: [{ name: one, behavior: merge, literals: [C=4] }]\n${patch('{ op: replace, path: /spec/selector, value: { matchLabels: {} } }')}`);
    const [budget, configuration] = renderKustomization(folder);
    expect(budget?.spec).toEqual({ maxUnavailable: 1, selector: { matchLabels: {} } });
    expect(configuration?.data).toEqual({ A: '1', B: 'x=y', C: '4' });
  });

  it.each([
    ['resources: [missing]', /missing does not exist/],
    ['resources: [base]\nnamePrefix: x-', /namePrefix cannot be rendered/],
    ['resources: [base]\nconfigMapGenerator: [{ name: one, literals: [A=2] }]', /one exists already/],
    ['resources: [base]\nconfigMapGenerator: [{ name: two, behavior: merge, literals: [A=2] }]', /two does not exist/],
    ['resources: [base]\npatches: [{ target: { kind: Job }, patch: "[]" }]', /finds no Job/],
    [patch('{ op: replace, path: /spec/minAvailable, value: 2 }'), /finds no "minAvailable"/],
    [patch('{ op: add, path: /spec/maxUnavailable, value: 2 }'), /finds already a "maxUnavailable"/],
    [patch('{ op: remove, path: /spec/maxUnavailable }'), /"remove" cannot be rendered/],
  ])('is refused: %s', (content, fault) => {
    write('.', content);
    expect(() => renderKustomization(folder)).toThrow(fault);
  });
});

/** kubectl adds a hash of its content to the name of a generated ConfigMap and to every reference to it. */
function withoutHashes(manifests: Manifest[]): Manifest[] {
  const generated = manifests.filter(({ kind, metadata }) => kind === 'ConfigMap' && /-[a-z0-9]{10}$/.test(metadata.name));
  const hashed = new Set(generated.map(({ metadata }) => metadata.name));
  return JSON.parse(JSON.stringify(manifests), (_key, value: unknown) =>
    typeof value === 'string' && hashed.has(value) ? value.replace(/-[a-z0-9]{10}$/, '') : value,
  ) as Manifest[];
}

function inOrder(manifests: Manifest[]): Manifest[] {
  return manifests.toSorted((one, other) => identity(one).localeCompare(identity(other)));
}

function identity({ kind, metadata }: Manifest): string {
  return `${kind}/${metadata.name}`;
}
