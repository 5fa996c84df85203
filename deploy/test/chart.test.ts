import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { parse } from 'yaml';
import { type Manifest, parseManifests } from '../manifest.ts';
import {
  chartForOperators,
  chartLikeProduction,
  chartWithEverythingElse,
  chartWithNatsTls,
  chartWithTracing,
  hasHelm,
  runHelm,
} from './charts.ts';
import {
  admin,
  natsTls,
  observability,
  operators,
  pagePaths,
  production,
  repositoryRoot,
  tracing,
} from './kustomizations.ts';
import { configurationOf, findManifest, renderChart, renderKustomization } from './render-kustomization.ts';
import { services } from './service-configuration.ts';

interface Container {
  image: string;
  imagePullPolicy: string;
  resources: object;
  env?: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string } } }[];
}

interface Workload extends Manifest {
  spec: {
    replicas?: number;
    template: {
      metadata: { annotations: Record<string, string> };
      spec: {
        securityContext: object;
        topologySpreadConstraints: object[];
        containers: [Container];
        volumes?: { secret: { secretName: string } }[];
      };
    };
  };
}

const chart = inject('chart');
const zones = { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' };
const minimum = { publicUrl: 'https://scheduling.example.com' };
const { version } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as { version: string };

describe.skipIf(!hasHelm)('the chart (needs Helm, which npm has for Linux)', () => {
  it.each([
    [chartLikeProduction, [production, observability]],
    [chartWithTracing, [tracing]],
    [chartWithNatsTls, [natsTls]],
    [chartForOperators, [operators, admin]],
  ])('$name installs what the kustomizations do', ({ name }, parts) => {
    const expected = parts
      .flatMap(({ folder }) => renderKustomization(folder))
      .filter(({ kind }) => kind !== 'Namespace');
    expect(comparable(renderChart(name))).toEqual(comparable(expected));
  });

  it('passes the strict rules of Helm', () => {
    const { status, stdout } = spawnSync(
      'helm',
      ['lint', '--strict', chart, '--set', `publicUrl=${minimum.publicUrl}`],
      { encoding: 'utf8' },
    );
    expect(status, stdout).toBe(0);
  });

  it('has the version and the licence of the project, and installs it', () => {
    expect(parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8'))).toMatchObject({
      version,
      appVersion: version,
      annotations: { 'artifacthub.io/license': 'Apache-2.0' },
    });
    for (const service of services)
      expect(containerOf(renderChart(chartLikeProduction.name), service).image).toBe(
        `registry.example.com/scheduling/${service}:${version}`,
      );
  });

  it('replaces the pods of a service when its configuration changes, and no others', async () => {
    const readChecksums = async (values: object): Promise<Record<string, string>> => {
      const manifests = parseManifests(await runHelm(chart, { ...minimum, ...values }));
      const checksumOf = (service: string) =>
        (findManifest(manifests, 'Deployment', service) as Workload).spec.template.metadata.annotations[
          'checksum/configuration'
        ]!;
      return Object.fromEntries(services.map((service) => [service, checksumOf(service)]));
    };
    const before = await readChecksums({});
    const after = await readChecksums({ services: { calendar: { environment: { LOG_LEVEL: 'debug' } } } });
    expect(after).toEqual({ ...before, calendar: expect.not.stringContaining(before['calendar']!) as string });
  });

  it('leaves the user of every pod to OpenShift, which must not be root', () => {
    const pods = workloadsOf(renderChart(chartWithTracing.name));
    expect(pods).toHaveLength(12);
    for (const { metadata, spec } of pods)
      expect(spec.template.spec.securityContext, metadata.name).toEqual({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
  });

  it('gives each service its lowest number of replicas without autoscalers, and otherwise leaves it to those', async () => {
    const values = { ...minimum, services: { calendar: { minReplicas: 4 } } };
    const render = async (enabled: boolean) =>
      parseManifests(await runHelm(chart, { ...values, autoscaling: { enabled } }));
    const replicas = (manifests: readonly Manifest[]) =>
      services.map((service) => [service, (findManifest(manifests, 'Deployment', service) as Workload).spec.replicas]);
    const autoscalers = (manifests: readonly Manifest[]) =>
      manifests.filter(({ kind }) => kind === 'HorizontalPodAutoscaler').length;
    const [without, scaled] = await Promise.all([render(false), render(true)]);
    expect([autoscalers(without), autoscalers(scaled)]).toEqual([0, services.length]);
    expect(replicas(without)).toEqual(services.map((service) => [service, service === 'calendar' ? 4 : 2]));
    expect(replicas(scaled)).toEqual(services.map((service) => [service, undefined]));
  });

  it('names in its README every secret that it needs', () => {
    const readme = readFileSync(join(chart, 'README.md'), 'utf8');
    const workloads = [chartForOperators, chartWithNatsTls].flatMap(({ name }) => workloadsOf(renderChart(name)));
    const secrets = workloads.flatMap(({ spec: { template } }) => [
      ...(template.spec.containers[0].env ?? []).flatMap(({ valueFrom }) => valueFrom?.secretKeyRef.name ?? []),
      ...(template.spec.volumes ?? []).map(({ secret }) => secret.secretName),
    ]);
    expect(secrets.length).toBeGreaterThan(30);
    expect([...new Set(secrets)].filter((secret) => !readme.includes(`\`${secret}\``))).toEqual([]);
  });

  // The doctor is a Job: with --logs, Helm 3 looks for a pod of its name and fails, and Helm 4 prints nothing.
  it.each(['README.md', 'templates/NOTES.txt'])('%s shows the log of the doctor without the help of Helm', (file) => {
    const text = readFileSync(join(chart, file), 'utf8');
    expect(text).toMatch(/helm test .*\n *kubectl logs --namespace .* job\/doctor\n/);
    expect(text).not.toContain('--logs');
  });

  describe('with no value at its default', () => {
    const manifests = hasHelm ? renderChart(chartWithEverythingElse.name) : [];
    const text = JSON.stringify(manifests);

    it.each(services)('gives %s its image, resources, environment and replicas', (service) => {
      const image =
        service === 'calendar'
          ? `registry.example.org/calendar@sha256:${'a'.repeat(64)}`
          : `registry.example.org/${service}:9.9.7`;
      expect(containerOf(manifests, service)).toMatchObject({
        image,
        imagePullPolicy: 'Always',
        resources: { requests: { cpu: '2', memory: '1Gi' }, limits: { memory: '2Gi' } },
      });
      expect(configurationOf(manifests, service)).toMatchObject({
        LOG_LEVEL: 'warn',
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.tracing:4318',
        OTEL_TRACES_SAMPLER_ARG: '1',
      });
      expect(findManifest(manifests, 'HorizontalPodAutoscaler', service)).toMatchObject({
        spec: { minReplicas: 5, maxReplicas: 50 },
      });
      const { egress } = findManifest(manifests, 'NetworkPolicy', service).spec as { egress: object[] };
      expect(egress.at(-1)).toEqual({ to: [{ ipBlock: { cidr: '192.0.2.7/32' } }], ports: [{ port: 5432 }] });
      expect(findManifest(manifests, 'ServiceAccount', service).metadata.annotations).toEqual({
        'example.org/role': service,
      });
    });

    it.each(services)('spreads the pods of %s', (service) => {
      const matchLabels = { 'app.kubernetes.io/name': service, 'app.kubernetes.io/component': 'service' };
      const { spec } = findManifest(manifests, 'Deployment', service) as Workload;
      expect(spec.template.spec.topologySpreadConstraints).toEqual([
        {
          maxSkew: 2,
          topologyKey: 'example.org/rack',
          whenUnsatisfiable: 'DoNotSchedule',
          minDomains: 2,
          labelSelector: { matchLabels },
        },
      ]);
    });

    it('uses one host for the gateway, another one for the pages, and one stream', () => {
      const parentRefs = [
        {
          group: 'gateway.networking.k8s.io',
          kind: 'Gateway',
          name: 'shared',
          namespace: 'gateways',
          sectionName: 'web',
          port: 8443,
        },
      ];
      for (const service of ['gateway', 'notification', 'page'])
        expect(configurationOf(manifests, service)).toMatchObject({
          PUBLIC_URL: 'http://book.example.org:8080',
          PAGE_URL: 'https://appointments.example.org',
        });
      expect(findManifest(manifests, 'HTTPRoute', 'page').spec).toMatchObject({
        hostnames: ['appointments.example.org'],
        parentRefs,
      });
      expect(configurationOf(manifests, 'calendar')).toMatchObject({ NATS_STREAM_REPLICAS: '1' });
      expect(findManifest(manifests, 'HTTPRoute', 'gateway').spec).toMatchObject({
        hostnames: ['book.example.org'],
        parentRefs,
      });
      expect(findManifest(manifests, 'Ingress', 'gateway')).toMatchObject({
        metadata: { annotations: { 'example.org/note': 'yes', 'nginx.org/client-max-body-size': '2m' } },
        spec: {
          ingressClassName: 'nginx',
          tls: [{ hosts: ['book.example.org', 'appointments.example.org'], secretName: 'book-tls' }],
          rules: [
            { host: 'book.example.org', http: { paths: [{ path: '/' }] } },
            { host: 'appointments.example.org', http: { paths: pagePaths.map((path) => ({ path })) } },
          ],
        },
      });
    });

    it('gives every pod what all of them get', () => {
      const pods = workloadsOf(manifests);
      expect(pods).toHaveLength(13);
      for (const { spec } of pods) {
        expect(spec.template.spec).toMatchObject({
          imagePullSecrets: [{ name: 'registry-login' }],
          nodeSelector: { 'kubernetes.io/arch': 'arm64' },
          tolerations: [{ key: 'dedicated', operator: 'Exists' }],
          affinity: chartWithEverythingElse.values.affinity,
          priorityClassName: 'business-critical',
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 2000,
            runAsGroup: 3000,
            fsGroup: 4000,
            seccompProfile: { type: 'Localhost', localhostProfile: 'scheduling.json' },
          },
        });
      }
      expect(
        (findManifest(manifests, 'Deployment', 'webhook') as Workload).spec.template.metadata.annotations,
      ).toMatchObject({ 'example.org/team': 'scheduling' });
    });

    it('admits the monitoring from its namespace, and labels what it selects', () => {
      expect(text).not.toContain('"kubernetes.io/metadata.name":"monitoring"');
      expect(findManifest(manifests, 'PrometheusRule', 'scheduling').metadata.labels).toMatchObject({
        release: 'prometheus',
      });
    });

    it('does not mount the authority of Postgres, and runs the doctor of its own tag as the test of the release', () => {
      expect(text).not.toContain('postgres-ca');
      const doctor = findManifest(manifests, 'Job', 'doctor') as Workload;
      expect(doctor.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'test' });
      expect(doctor.spec.template.spec.containers[0].image).toBe('registry.example.org/admin:9.9.8');
    });
  });

  it.each([
    ['a missing address', {}, /publicUrl/],
    ['an address with a path', { publicUrl: 'https://example.com/path' }, /publicUrl/],
    ['pages with a path', { ...minimum, pageUrl: 'https://example.com/path' }, /pageUrl/],
    ['an unknown value', { ...minimum, publicURL: 'https://example.com' }, /publicURL/],
    ['an unknown service', { ...minimum, services: { calender: {} } }, /calender/],
    [
      'a value of the wrong type',
      { ...minimum, services: { calendar: { minReplicas: '3' } } },
      /services\.calendar\.minReplicas/,
    ],
    [
      'a number in the environment',
      { ...minimum, services: { calendar: { environment: { LOG_LEVEL: 3 } } } },
      /services\.calendar\.environment\.LOG_LEVEL/,
    ],
    ['an impossible number of copies', { ...minimum, natsStreamReplicas: 2 }, /natsStreamReplicas/],
    [
      'a digest that is none',
      { ...minimum, services: { calendar: { digest: 'sha256:abc' } } },
      /services\.calendar\.digest/,
    ],
    ['operators without mutual TLS', { ...minimum, operators: { enabled: true } }, /mutualTls\.enabled/],
    ['root', { ...minimum, podSecurityContext: { runAsNonRoot: false } }, /podSecurityContext\.runAsNonRoot/],
    ['root by omission', { ...minimum, podSecurityContext: { runAsNonRoot: null } }, /runAsNonRoot is required/],
    [
      'a selector of pods to spread',
      { ...minimum, topologySpreadConstraints: [{ ...zones, labelSelector: {} }] },
      /topologySpreadConstraints\.0: .*labelSelector/,
    ],
    ['more traces than there are', { ...minimum, tracing: { ratio: 10 } }, /tracing\.ratio/],
  ])('refuses %s, and names it', async (_what, values, message) => {
    await expect(runHelm(chart, values)).rejects.toThrow(message);
  });
});

function workloadsOf(manifests: readonly Manifest[]): Workload[] {
  return manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'Job') as Workload[];
}

function containerOf(manifests: readonly Manifest[], service: string): Container {
  return (findManifest(manifests, 'Deployment', service) as Workload).spec.template.spec.containers[0];
}

/**
 * By kind and name, without what differs by convention: the namespace, the hash of a ConfigMap or its checksum, the
 * revision of a Job, the hooks of Helm, and lists that are empty or absent.
 */
function comparable(manifests: readonly Manifest[]): Record<string, unknown> {
  const text = JSON.stringify(manifests, (key, value: unknown) => {
    const isEmpty =
      (Array.isArray(value) && value.length === 0) ||
      (key === 'annotations' && Object.keys(value as object).every(isOfHelm));
    return isEmpty || isOfHelm(key) || key === 'namespace' ? undefined : value;
  });
  const names = text.replaceAll(/"([a-z-]+)-[a-z0-9]{10}"/g, '"$1"').replaceAll('-migration-1"', '-migration"');
  return Object.fromEntries(
    (JSON.parse(names) as Manifest[]).map((manifest) => [`${manifest.kind} ${manifest.metadata.name}`, manifest]),
  );
}

function isOfHelm(annotation: string): boolean {
  return annotation === 'checksum/configuration' || annotation.startsWith('helm.sh/');
}
