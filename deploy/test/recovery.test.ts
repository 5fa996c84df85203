import { describe, expect, it } from 'vitest';
import type { Manifest } from '../manifest.ts';
import { completeExamples, recovery } from './kustomizations.ts';
import { findManifest, renderKustomization } from './render-kustomization.ts';

interface Plugin {
  name: string;
  parameters: { barmanObjectName: string; serverName?: string };
}

interface Cluster extends Manifest {
  spec: {
    instances: number;
    postgresql: { synchronous: object };
    plugins: (Plugin & { isWALArchiver: boolean })[];
    certificates: { serverAltDNSNames: string[] };
    bootstrap?: { recovery: { source: string } };
    externalClusters?: { name: string; plugin: Plugin }[];
  };
}

interface Service extends Manifest {
  spec: { selector: Record<string, string> };
}

const before = renderKustomization(completeExamples.folder);
const after = renderKustomization(recovery.folder);
const clusterOf = (manifests: readonly Manifest[]): Cluster =>
  manifests.find(({ kind }) => kind === 'Cluster') as Cluster;
const [original, restored] = [clusterOf(before), clusterOf(after)];
const plugin = 'barman-cloud.cloudnative-pg.io';

describe('the recovery of Postgres', () => {
  it('creates the same cluster under another name', () => {
    const { bootstrap, externalClusters, ...spec } = restored.spec;
    expect([bootstrap, externalClusters]).not.toContain(undefined);
    expect(spec).toEqual(original.spec);
    expect(restored.metadata.name).not.toBe(original.metadata.name);
  });

  it('loses no acknowledged commit in a failover, of the original cluster and of the restored one', () => {
    for (const { instances, postgresql } of [original.spec, restored.spec])
      expect([instances, postgresql.synchronous]).toEqual([3, { method: 'any', number: 1, failoverQuorum: true }]);
  });

  it('reads the archive of the original cluster, and writes one of its own', () => {
    const { bootstrap, externalClusters = [], plugins } = restored.spec;
    const source = externalClusters.find(({ name }) => name === bootstrap?.recovery.source)?.plugin;
    // An archive is named after its cluster, unless there is a serverName.
    expect(plugins).toEqual([
      { name: plugin, isWALArchiver: true, parameters: { barmanObjectName: 'postgres-backup' } },
    ]);
    expect(source).toEqual({
      name: plugin,
      parameters: { barmanObjectName: 'postgres-backup', serverName: original.metadata.name },
    });
    expect(findManifest(after, 'ObjectStore', 'postgres-backup')).toEqual(
      findManifest(before, 'ObjectStore', 'postgres-backup'),
    );
  });

  it.each([
    ['original', before, original.metadata.name],
    ['restored', after, restored.metadata.name],
  ] as const)('everything refers to the %s cluster', (_name, manifests, name) => {
    const databases = manifests.filter(({ kind }) => kind === 'Database');
    expect(databases).toHaveLength(5);
    for (const { spec } of databases) expect(spec).toMatchObject({ cluster: { name } });
    expect(findManifest(manifests, 'ScheduledBackup', name).spec).toMatchObject({
      cluster: { name },
      immediate: true,
      method: 'plugin',
      pluginConfiguration: { name: plugin },
    });
    expect((findManifest(manifests, 'Service', 'postgres') as Service).spec.selector).toEqual({
      'cnpg.io/cluster': name,
      'cnpg.io/instanceRole': 'primary',
    });
  });

  // Its spec.cluster cannot be changed: the API server would refuse a Database of the other cluster under its name.
  it('shares no Database with the original cluster', () => {
    const names = [before, after].map((manifests) =>
      manifests.filter(({ kind }) => kind === 'Database').map(({ metadata }) => metadata.name),
    );
    expect(new Set(names.flat()).size).toBe(10);
  });

  it('keeps the host and the authority that the services have in DATABASE_URL', () => {
    for (const { spec } of [original, restored]) {
      expect(spec.certificates).toEqual({
        serverCASecret: 'postgres-ca',
        clientCASecret: 'postgres-ca',
        serverAltDNSNames: ['postgres'],
      });
    }
    expect(findManifest(after, 'NetworkPolicy', 'postgres')).toEqual(findManifest(before, 'NetworkPolicy', 'postgres'));
  });
});
