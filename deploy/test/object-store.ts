import type { IBarmanObjectStoreConfiguration } from '@kubernetes-models/cloudnative-pg/github.com/cloudnative-pg/barman-cloud/pkg/api/BarmanObjectStoreConfiguration';
import type { ICluster } from '@kubernetes-models/cloudnative-pg/postgresql.cnpg.io/v1/Cluster';

type ClusterSpec = NonNullable<ICluster['spec']>;

/**
 * The resource of the Barman Cloud plugin, for which there is no package with types: written after
 * `api/v1/objectstore_types.go` of the plugin. The configuration is the type that CloudNativePG had for backups without
 * the plugin; the plugin refuses a `serverName` in it.
 */
export interface IObjectStore {
  apiVersion: 'barmancloud.cnpg.io/v1';
  kind: 'ObjectStore';
  metadata: NonNullable<ICluster['metadata']>;
  spec: {
    configuration: Omit<IBarmanObjectStoreConfiguration, 'serverName'>;
    retentionPolicy?: `${number}${'d' | 'w' | 'm'}`;
    instanceSidecarConfiguration?: {
      env?: ClusterSpec['env'];
      resources?: ClusterSpec['resources'];
      retentionPolicyIntervalSeconds?: number;
    };
  };
}
