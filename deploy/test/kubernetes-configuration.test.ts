import {
  createMetrics,
  databaseServices,
  isHttpService,
  type OperationsServer,
  startOperationsServer,
} from '@scheduling/runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Manifest } from '../manifest.ts';
import { gatewayApi, natsTls, overlays, pagePaths, partsOfProduction, production } from './kustomizations.ts';
import { configurationOf, findManifest, renderKustomization, type Variable } from './render-kustomization.ts';
import { readServiceConfiguration, type ServiceConfiguration, services } from './service-configuration.ts';

interface Probe {
  httpGet: { path: string; port: string };
}

interface Container {
  name: string;
  image: string;
  args?: string[];
  ports?: { name: string; containerPort: number }[];
  envFrom: { configMapRef: { name: string } }[];
  env: Variable[];
  volumeMounts: { name: string }[];
  startupProbe: Probe;
  readinessProbe: Probe;
  livenessProbe: Probe;
}

interface Workload extends Manifest {
  spec: {
    selector: { matchLabels: Record<string, string> };
    template: {
      metadata: { labels: Record<string, string> };
      spec: { serviceAccountName: string; containers: [Container] };
    };
  };
}

interface Service extends Manifest {
  spec: {
    clusterIP?: string;
    selector: Record<string, string>;
    ports: { name: string; port: number; targetPort: string }[];
  };
}

interface HttpRoute extends Manifest {
  spec: { parentRefs: object[]; hostnames: string[]; rules: object[] };
}

const sampleKeys = `1:${Buffer.alloc(32).toString('base64')}`;
/** Sample values for the keys of secrets; the manifests contain only their names. */
const secretValues: Record<string, string> = {
  DATABASE_URL: 'postgres://user:password@postgres:5432/name',
  NATS_URL: 'nats://user:password@nats:4222',
  SMTP_URL: 'smtp://mail.example.com:587',
  WEBHOOK_SECRET_KEYS: sampleKeys,
  LINK_KEYS: sampleKeys,
};

let operations: OperationsServer;
beforeAll(async () => {
  operations = await startOperationsServer({
    host: '127.0.0.1',
    port: 0,
    metrics: createMetrics('deploy'),
    readiness: {},
  });
});
afterAll(() => operations[Symbol.asyncDispose]());

describe.each(overlays)('the overlay $name', ({ folder }) => {
  const manifests = renderKustomization(folder);
  const find = (kind: string, name: string): Manifest => findManifest(manifests, kind, name);

  it('runs every service, and nothing else', () => {
    const deployed = manifests.filter(({ kind }) => kind === 'Deployment').map(({ metadata }) => metadata.name);
    expect(deployed.toSorted()).toEqual(services.toSorted());
  });

  describe.each(services)('%s', (service) => {
    const deployment = find('Deployment', service) as Workload;
    const { labels } = deployment.spec.template.metadata;
    const [container] = deployment.spec.template.spec.containers;
    const secrets = secretsOf(container).map(({ name, valueFrom }) => [
      name,
      secretValues[valueFrom.secretKeyRef.key] ?? '',
    ]);
    const environment: Record<string, string> = {
      ...configurationOf(manifests, service),
      ...Object.fromEntries(secrets),
    };
    let configuration: ServiceConfiguration;
    beforeAll(async () => {
      configuration = await readServiceConfiguration(service);
    });

    it('gets only variables that it knows, and all that it requires', () => {
      expect([...configuration.variables]).toEqual(expect.arrayContaining(Object.keys(environment)));
      expect(() => configuration.ports(environment)).not.toThrow();
    });

    it('declares the ports on which it listens', () => {
      const ports = Object.fromEntries((container.ports ?? []).map(({ name, containerPort }) => [name, containerPort]));
      expect(ports).toEqual(configuration.ports(environment));
    });

    it('listens on every address of its pod, and has a Service in a cluster of IPv4, of IPv6, or of both', () => {
      expect(Object.keys(environment)).not.toContain('LISTEN_HOST');
      expect(configuration.described.find(({ name }) => name === 'LISTEN_HOST')?.fallback).toBe('::');
      // A cluster refuses a family that it does not have.
      expect(find('Service', service).spec).not.toHaveProperty('ipFamilies');
    });

    it('serves operators only within its pod', () => {
      expect(Object.keys(environment)).not.toContain('ADMIN_LISTEN_HOST');
      expect(configuration.described.find(({ name }) => name === 'ADMIN_LISTEN_HOST')?.fallback).toBe(
        isHttpService(service) ? undefined : '127.0.0.1',
      );
    });

    it('is probed at its actual address', async () => {
      expect(container).toMatchObject({
        startupProbe: { httpGet: { path: '/livez' } },
        readinessProbe: { httpGet: { path: '/readyz' } },
        livenessProbe: { httpGet: { path: '/livez' } },
      });
      for (const { httpGet } of [container.startupProbe, container.readinessProbe, container.livenessProbe]) {
        expect(httpGet.port).toBe('metrics');
        expect((await fetch(`http://127.0.0.1:${operations.port}${httpGet.path}`)).status).not.toBe(404);
      }
    });

    it('is selected by its Service, its autoscaler, its disruption budget and its network policy', () => {
      const { spec } = find('Service', service) as Service;
      expect(labels).toMatchObject(spec.selector);
      expect(labels).toMatchObject(deployment.spec.selector.matchLabels);
      const main = isHttpService(service) ? 'http' : 'grpc';
      expect(spec.ports).toEqual([
        { name: main, port: isHttpService(service) ? 80 : configuration.ports(environment).grpc, targetPort: main },
      ]);
      expect(spec.clusterIP).toBe(isHttpService(service) ? undefined : 'None');
      expect(find('HorizontalPodAutoscaler', service)).toMatchObject({
        spec: { scaleTargetRef: { kind: 'Deployment', name: service } },
      });
      expect(find('PodDisruptionBudget', service)).toMatchObject({ spec: { selector: deployment.spec.selector } });
      expect(labels).toMatchObject(
        (find('NetworkPolicy', service).spec as { podSelector: { matchLabels: object } }).podSelector.matchLabels,
      );
      expect(find('ServiceAccount', deployment.spec.template.spec.serviceAccountName)).toMatchObject({
        automountServiceAccountToken: false,
      });
    });

    it('is configured with the names and ports of the other services', () => {
      for (const [variable, address] of Object.entries(environment).filter(([name]) => name.endsWith('_ADDRESS'))) {
        const [, name = '', port] = /^dns:\/\/\/([a-z]+):(\d+)$/.exec(address) ?? [];
        expect(`${name.toUpperCase()}_ADDRESS`).toBe(variable);
        expect((find('Service', name) as Service).spec).toMatchObject({
          clusterIP: 'None',
          ports: [{ port: Number(port) }],
        });
      }
    });

    it('reads its secrets from its own Secrets, by keys named like the variables', () => {
      for (const { name, valueFrom } of secretsOf(container)) {
        expect(valueFrom.secretKeyRef.key).toBe(name);
        expect(valueFrom.secretKeyRef.name).toMatch(new RegExp(`^${service}-`));
      }
    });
  });

  it.each(databaseServices)(
    'migrates %s with its image, variables and network policy, and sends it no calls meanwhile',
    (service) => {
      const [container] = (find('Deployment', service) as Workload).spec.template.spec.containers;
      const { name, image, envFrom } = container;
      const { template } = (find('Job', `${service}-migration`) as Workload).spec;
      const [migration] = template.spec.containers;
      expect(migration).toMatchObject({ name, image, envFrom, args: ['migrate'] });
      expect(migration.env).toEqual(secretsOf(container));
      const authority = ({ volumeMounts }: Container) => volumeMounts.filter((mount) => mount.name === 'postgres-ca');
      expect(authority(migration)).toEqual(authority(container));
      expect(template.metadata.labels).toMatchObject({ 'app.kubernetes.io/name': service });
      expect(template.metadata.labels).not.toMatchObject((find('Service', service) as Service).spec.selector);
      expect(template.spec.serviceAccountName).toBe(service);
    },
  );

  it.each([
    { route: 'gateway', paths: ['/'], addresses: ['PUBLIC_URL'], users: ['gateway', 'notification'] },
    {
      route: 'page',
      paths: pagePaths,
      addresses: ['PAGE_URL', 'PUBLIC_URL'],
      users: ['page', 'gateway', 'notification'],
    },
  ])('leads to $route by the address that the services know', ({ route, paths, addresses, users }) => {
    const { spec } = find('HTTPRoute', route) as HttpRoute;
    const ports = (find('Service', route) as Service).spec.ports.map(({ port }) => port);
    expect(spec.rules).toEqual([
      {
        matches: paths.map((value) => ({ path: { type: 'PathPrefix', value } })),
        // With all that the API server would add: Argo CD would see that as a difference for ever.
        backendRefs: ports.map((port) => ({ group: '', kind: 'Service', name: route, port, weight: 1 })),
      },
    ]);
    expect(spec.parentRefs).toEqual([
      { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'scheduling', sectionName: 'https' },
    ]);
    for (const user of users) {
      const configuration = configurationOf(manifests, user);
      const address = addresses.map((name) => configuration[name]).find((given) => given !== undefined);
      expect(spec.hostnames.map((host) => `https://${host}`)).toEqual([address]);
    }
  });
});

it('the component with an Ingress leads to the gateway and to page as the routes do', () => {
  const manifests = renderKustomization(natsTls.folder);
  const { spec } = findManifest(manifests, 'Ingress', 'gateway') as Manifest & {
    spec: { tls: { hosts: string[] }[]; rules: { host: string; http: object }[] };
  };
  const [{ host, http }] = spec.rules as [{ host: string; http: object }];
  expect(spec.tls[0]?.hosts).toEqual([host]);
  expect(http).toMatchObject({
    paths: [...pagePaths, '/'].map((path) => ({
      path,
      pathType: 'Prefix',
      backend: { service: { name: path === '/' ? 'gateway' : 'page', port: { name: 'http' } } },
    })),
  });
  for (const route of ['gateway', 'page'])
    expect(findManifest(manifests, 'HTTPRoute', route).spec).toMatchObject({ hostnames: [host] });
});

it.each(['gateway', 'page'])('the example of a Gateway has the listener of the route to %s', (name) => {
  const { metadata, spec } = findManifest(
    renderKustomization(gatewayApi.folder),
    'Gateway',
    'scheduling',
  ) as Manifest & { spec: { listeners: { name: string }[] } };
  const route = findManifest(renderKustomization(overlays[0]!.folder), 'HTTPRoute', name).spec;
  expect(route).toMatchObject({ parentRefs: [{ name: metadata.name, sectionName: spec.listeners[0]!.name }] });
});

it.each(partsOfProduction)('$name is the same on its own', ({ service, folder }) => {
  const ofService = renderKustomization(production.folder).filter(
    ({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === service,
  );
  expect(ofService.length).toBeGreaterThan(6);
  expect(new Set(renderKustomization(folder))).toEqual(new Set(ofService));
});

function secretsOf({ env }: Container): Required<Omit<Variable, 'value'>>[] {
  return env.flatMap(({ name, valueFrom }) => (valueFrom === undefined ? [] : [{ name, valueFrom }]));
}
