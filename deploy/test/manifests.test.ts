import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Manifest, parseManifests } from '../manifest.ts';
import { charts, hasHelm } from './charts.ts';
import { checkTypes } from './check-types.ts';
import {
  admin,
  completeExamples,
  kustomizations,
  natsTls,
  observability,
  overlays,
  production,
  readAdminPod,
  recovery,
} from './kustomizations.ts';
import { renderChart, renderKustomization } from './render-kustomization.ts';
import { services } from './service-configuration.ts';

interface PodSpec {
  automountServiceAccountToken: boolean;
  securityContext: unknown;
  containers: {
    image: string;
    securityContext: unknown;
    resources: { requests: object; limits: object };
    volumeMounts?: unknown;
  }[];
}

interface Migration extends Manifest {
  spec: { activeDeadlineSeconds: number };
}

interface Deployment extends Manifest {
  spec: { progressDeadlineSeconds?: number; minReadySeconds: number };
}

/** For a pod to be scheduled, to pull its image and to start. */
const startSeconds = 240;
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;

// Those that differ in what they use of kustomize.
it.skipIf(!hasKubectl).each([production, natsTls, admin, completeExamples, recovery, observability])(
  'kubectl renders $name as kustomize does',
  ({ folder }) => {
    const { stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
    expect(new Set(parseManifests(stdout)), stderr).toEqual(new Set(renderKustomization(folder)));
  },
);

describe('the types of Kubernetes', () => {
  // In one call, because the compiler takes longer to load the types than to check the manifests.
  it('fit every manifest', () => {
    const { metadata, spec } = readAdminPod();
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'admin', ...metadata }, spec };
    // Most are in several kustomizations.
    const rendered = [
      ...kustomizations.map(({ folder }) => renderKustomization(folder)),
      ...(hasHelm ? charts.map(({ name }) => renderChart(name)) : []),
    ];
    const different = new Map(rendered.flat().map((manifest) => [JSON.stringify(manifest), manifest]));
    expect(checkTypes([...different.values(), pod])).toEqual([]);
  });

  it('reject an unknown field, a wrong value and an unknown kind, and report the place', () => {
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'calendar' } };
    const faults = checkTypes([
      { ...deployment, spec: { replicass: 2, selector: {}, template: {} } },
      { ...deployment, spec: { replicas: '2', selector: {}, template: {} } },
      { apiVersion: 'v1', kind: 'Servis', metadata: { name: 'calendar' } },
      { apiVersion: 'postgresql.cnpg.io/v1', kind: 'Cluster', metadata: { name: 'postgres' }, spec: { instancess: 3 } },
      {
        apiVersion: 'barmancloud.cnpg.io/v1',
        kind: 'ObjectStore',
        metadata: { name: 'backup' },
        spec: { configuration: { destinationPath: 's3://backup/', wal: { compresion: 'gzip' } } },
      },
      {
        apiVersion: 'barmancloud.cnpg.io/v1',
        kind: 'ObjectStore',
        metadata: { name: 'backup' },
        spec: { configuration: { destinationPath: 's3://backup/' }, retentionPolicy: '30 days' },
      },
      {
        apiVersion: 'monitoring.coreos.com/v1',
        kind: 'PrometheusRule',
        metadata: { name: 'alerts' },
        spec: { groups: [{ name: 'a', rules: [{ alert: 'A', expression: 'up' }] }] },
      },
    ]);
    expect(faults).toEqual([
      expect.stringMatching(/^Deployment calendar: .*replicass/),
      expect.stringMatching(/^Deployment calendar: .*'string' is not assignable to type 'number'/),
      expect.stringMatching(/^Servis calendar: /),
      expect.stringMatching(/^Cluster postgres: .*instancess/),
      expect.stringMatching(/^ObjectStore backup: .*compresion/),
      expect.stringMatching(/^ObjectStore backup: .*30 days/),
      expect.stringMatching(/^PrometheusRule alerts: .*expr/),
    ]);
  });
});

describe.each(overlays)('the overlay $name', ({ folder }) => {
  const manifests = renderKustomization(folder);
  const pods = manifests
    .filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
    .map((manifest) => ({ manifest, pod: podSpec(manifest) }));

  it('has no duplicate names', () => {
    const names = manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
    expect(names).toEqual([...new Set(names)]);
  });

  it('replaces every placeholder of the manifests that the services share', () => {
    expect(JSON.stringify(manifests)).not.toContain('placeholder');
  });

  it('gives every ConfigMap a new name when its content changes, so that pods get the new content', () => {
    const names = manifests
      .filter(({ kind }) => kind === 'ConfigMap')
      .map(({ metadata }) => metadata.name.replace(/-[a-z0-9]{10}$/, '-hash'));
    expect(names.toSorted()).toEqual(services.map((service) => `${service}-hash`).toSorted());
  });

  it('gives no pod more privileges than it needs', () => {
    expect(pods).toHaveLength(12);
    for (const { pod } of pods) {
      expect(pod.automountServiceAccountToken).toBe(false);
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      for (const container of pod.containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.resources).toMatchObject({
          requests: { cpu: expect.any(String) as string, memory: expect.any(String) as string },
          limits: { memory: expect.any(String) as string },
        });
        expect(container.image).toMatch(/^registry\.example\.com\/scheduling\/[a-z]+:[^:]+$/);
      }
    }
  });

  it('has no patch that changes nothing', () => {
    // kustomize ignores a patch whose target it does not find.
    const files = globSync('**/kustomization.yaml', { cwd: folder });
    for (const file of files) {
      const { patches = [] } = parse(readFileSync(join(folder, file), 'utf8')) as {
        patches?: { target: { kind: string; name?: string } }[];
      };
      const idle = patches.filter(
        ({ target }) =>
          !manifests.some(
            ({ kind, metadata }) => kind === target.kind && (target.name ?? metadata.name) === metadata.name,
          ),
      );
      expect(idle, file).toEqual([]);
    }
  });

  it('contains no secrets', () => {
    expect(manifests.filter(({ kind }) => kind === 'Secret')).toEqual([]);
  });

  it('orders each migration and its dependencies before its service', () => {
    const wave = ({ metadata }: Manifest): number =>
      Number(metadata.annotations?.['argocd.argoproj.io/sync-wave'] ?? 0);
    for (const { manifest } of pods) {
      expect(wave(manifest)).toBe(manifest.kind === 'Job' ? 0 : 1);
    }
    const component = (kind: string): unknown[] =>
      manifests
        .filter((manifest) => manifest.kind === kind)
        .map(({ metadata }) => metadata.labels?.['app.kubernetes.io/component']);
    expect(new Set(component('Job'))).toEqual(new Set(['migration']));
    for (const kind of ['Namespace', 'ServiceAccount', 'NetworkPolicy', 'ConfigMap'])
      expect(new Set(component(kind))).toEqual(new Set(['configuration']));
  });
});

describe.each([
  ...overlays.map(({ name, folder }) => ({ name: `the overlay ${name}`, manifests: renderKustomization(folder) })),
  ...(hasHelm ? charts : []).map(({ name }) => ({ name: `the chart ${name}`, manifests: renderChart(name) })),
])('a rollout of $name', ({ manifests }) => {
  const find = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);
  const migrations = find('Job').filter(({ metadata }) => metadata.name !== 'doctor') as Migration[];
  const longestSeconds = Math.max(...migrations.map(({ spec }) => spec.activeDeadlineSeconds));

  it('is not reported as failed while the migration that its pods wait for may still succeed', () => {
    expect(migrations).toHaveLength(5);
    for (const { metadata, spec } of find('Deployment') as Deployment[])
      expect(spec.progressDeadlineSeconds, metadata.name).toBeGreaterThanOrEqual(
        longestSeconds + spec.minReadySeconds + startSeconds,
      );
  });
});

function podSpec(manifest: Manifest): PodSpec {
  return (manifest.spec as { template: { spec: PodSpec } }).template.spec;
}
