import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { services } from './service-configuration.ts';

/**
 * False on a platform without the package of Helm, unless there is one on the PATH. HELM=required makes its absence a
 * failure.
 */
export const hasHelm = process.env['HELM'] === 'required' || spawnSync('helm', ['version']).status === 0;

const on = { enabled: true };

/** What the production overlay sets. */
const asInProduction = {
  publicUrl: 'https://scheduling.example.com',
  services: { gateway: { minReplicas: 3 }, calendar: { minReplicas: 3 } },
};

/** Every value is another one than its default, except the autoscalers, whose own values would be lost. */
const everythingElse = {
  publicUrl: 'http://book.example.org:8080',
  pageUrl: 'https://appointments.example.org',
  image: {
    registry: 'registry.example.org',
    tag: '9.9.9',
    pullPolicy: 'Always',
    pullSecrets: [{ name: 'registry-login' }],
  },
  logLevel: 'debug',
  natsStreamReplicas: 1,
  httpRoute: { enabled: true, parentRefs: [{ name: 'shared', namespace: 'gateways', sectionName: 'web', port: 8443 }] },
  ingress: { enabled: true, className: 'nginx', annotations: { 'example.org/note': 'yes' }, tlsSecret: 'book-tls' },
  postgresTls: { enabled: false },
  natsTls: on,
  mutualTls: on,
  operators: { enabled: true, tag: '9.9.8', digest: '' },
  tracing: { enabled: true, endpoint: 'http://collector.tracing:4318', ratio: 1 },
  monitoring: { enabled: true, namespace: 'prometheus', labels: { release: 'prometheus' } },
  networkPolicies: {
    enabled: true,
    extraEgress: [{ to: [{ ipBlock: { cidr: '192.0.2.7/32' } }], ports: [{ port: 5432 }] }],
  },
  nodeSelector: { 'kubernetes.io/arch': 'arm64' },
  tolerations: [{ key: 'dedicated', operator: 'Exists' }],
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'example.org/pool', operator: 'In', values: ['services'] }] }],
      },
    },
  },
  topologySpreadConstraints: [
    { maxSkew: 2, topologyKey: 'example.org/rack', whenUnsatisfiable: 'DoNotSchedule', minDomains: 2 },
  ],
  priorityClassName: 'business-critical',
  podSecurityContext: {
    runAsUser: 2000,
    runAsGroup: 3000,
    fsGroup: 4000,
    seccompProfile: { type: 'Localhost', localhostProfile: 'scheduling.json' },
  },
  podAnnotations: { 'example.org/team': 'scheduling' },
  services: Object.fromEntries(
    services.map((service) => [
      service,
      {
        tag: '9.9.7',
        digest: service === 'calendar' ? `sha256:${'a'.repeat(64)}` : '',
        minReplicas: 5,
        maxReplicas: 50,
        resources: { requests: { cpu: '2', memory: '1Gi' }, limits: { memory: '2Gi' } },
        environment: { LOG_LEVEL: 'warn' },
        serviceAccount: { annotations: { 'example.org/role': service } },
      },
    ]),
  ),
};

export const chartLikeProduction = {
  name: 'as in production, with its alerts',
  values: { ...asInProduction, monitoring: on },
};
export const chartWithTracing = {
  name: 'with tracing, on OpenShift',
  values: { ...asInProduction, tracing: on, podSecurityContext: { runAsUser: null, runAsGroup: null } },
};
export const chartWithNatsTls = {
  name: 'with TLS to NATS and an Ingress',
  values: { ...asInProduction, natsTls: on, ingress: on },
};
export const chartForOperators = {
  name: 'with the admin command',
  values: { ...asInProduction, mutualTls: on, operators: on },
};
export const chartWithEverythingElse = { name: 'with no default', values: everythingElse };
export const charts = [
  chartLikeProduction,
  chartWithTracing,
  chartWithNatsTls,
  chartForOperators,
  chartWithEverythingElse,
];

/** Renders a chart for a cluster of Kubernetes 1.31. Rejects with the error of Helm. */
export async function runHelm(folder: string, values: object): Promise<string> {
  const helm = promisify(execFile)(
    'helm',
    ['template', 'scheduling', folder, '--namespace', 'scheduling', '--kube-version', '1.31.0', '--values', '-'],
    { maxBuffer: 16 * 1024 * 1024 },
  );
  // JSON is YAML of every version.
  helm.child.stdin!.end(JSON.stringify(values));
  return (await helm).stdout;
}
