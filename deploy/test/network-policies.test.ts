import type { BlockList } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Manifest } from '../manifest.ts';
import { readArrows } from './architecture.ts';
import { examples, overlays, repositoryRoot, tracing } from './kustomizations.ts';
import { configurationOf, renderKustomization } from './render-kustomization.ts';
import { services } from './service-configuration.ts';

interface Peer {
  podSelector?: { matchLabels: Record<string, string> };
  namespaceSelector?: { matchLabels: Record<string, string> };
  ipBlock?: IpBlock;
}

interface IpBlock {
  cidr: string;
  except?: string[];
}

interface Rule {
  from?: Peer[];
  to?: Peer[];
  ports: { port: string | number; endPort?: number; protocol?: string }[];
}

interface NetworkPolicy extends Manifest {
  spec: { policyTypes: string[]; ingress: Rule[]; egress: Rule[] };
}

const arrows = readArrows();
/** The parts of the internet that webhooks can reach. */
const internet = ['0.0.0.0/0', '2000::/3'];
const blocked = await readBlockedNetworks();
/** The DNS of most clusters, the cache on each node, and the DNS of OpenShift. */
const dns = ['kube-system/kube-dns:53', '169.254.20.10/32:53', 'openshift-dns:5353'].flatMap((server) => [
  `${server}/UDP`,
  `${server}/TCP`,
]);

describe.each(overlays)('the network policies of $name', ({ folder }) => {
  const policies = renderKustomization(folder).filter(({ kind }) => kind === 'NetworkPolicy') as NetworkPolicy[];

  it.each(services)('allow %s to reach only what it calls in the architecture', (service) => {
    const policy = policies.find(({ metadata }) => metadata.name === service);
    expect(policy?.spec.policyTypes).toContain('Egress');
    expect(connections(policy?.spec.egress ?? []).toSorted()).toEqual(
      [
        ...dns,
        ...(folder === tracing.folder ? ['monitoring:4318'] : []),
        ...arrows.calls.filter(([from]) => from === service).map(([, to]) => `${to}:grpc`),
        ...(arrows.databases.has(service) ? ['postgres:5432'] : []),
        ...(arrows.stream.has(service) ? ['nats:4222'] : []),
        ...(arrows.mail.has(service) ? ['anywhere:587', 'anywhere:465'] : []),
        ...(arrows.endpoints.has(service)
          ? internet.flatMap((network) => [`${network}:443`, `${network}:1024-65535`])
          : []),
      ].toSorted(),
    );
  });

  it.each([...arrows.endpoints])('keep %s away from every network that its code blocks', (service) => {
    const policy = policies.find(({ metadata }) => metadata.name === service);
    const open = (policy?.spec.egress ?? [])
      .flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock ?? []))
      .filter(({ cidr }) => !cidr.endsWith('/32'));
    expect(open.map(({ cidr }) => cidr)).toEqual(internet);
    const [ipv4, ipv6] = open.map(({ except = [] }) => except);
    expect(ipv4?.toSorted()).toEqual(blocked.ipv4);
    expect(ipv6?.toSorted()).toEqual(blocked.ipv6);
  });

  it.each(services)('allow only the callers in the architecture to reach %s', (service) => {
    const policy = policies.find(({ metadata }) => metadata.name === service);
    expect(policy?.spec.policyTypes).toContain('Ingress');
    expect(connections(policy?.spec.ingress ?? []).toSorted()).toEqual(
      [
        'monitoring:metrics',
        ...arrows.calls.filter(([, to]) => to === service).map(([from]) => `${from}:grpc`),
        ...(arrows.http.has(service) ? ['ingress:http'] : []),
      ].toSorted(),
    );
  });
});

it('the component for tracing sends the spans of every service to the collector, and all record the same fraction of traces', () => {
  const manifests = renderKustomization(tracing.folder);
  for (const service of services) {
    expect(configurationOf(manifests, service), service).toMatchObject({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://opentelemetry-collector.monitoring:4318',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.1',
    });
  }
});

describe('the network policies of the examples', () => {
  const policies = renderKustomization(examples.folder).filter(
    ({ kind }) => kind === 'NetworkPolicy',
  ) as NetworkPolicy[];
  const callers = (name: string, port: string): string[] =>
    connections(policies.find(({ metadata }) => metadata.name === name)?.spec.ingress ?? [])
      .filter((connection) => connection.endsWith(`:${port}`))
      .map((connection) => connection.split(':')[0]!);

  it('allow the services with a database to reach Postgres', () => {
    expect(callers('postgres', '5432').toSorted()).toEqual([...arrows.databases, 'postgres', 'cnpg-system'].toSorted());
  });

  it('allow an instance of Postgres to ask the others, which keeps it from stopping when it does not reach the API server', () => {
    expect(callers('postgres', '8000').toSorted()).toEqual(['cnpg-system', 'postgres']);
  });

  it('allow Prometheus to reach the metrics of Postgres and NATS', () => {
    expect([callers('postgres', '9187'), callers('nats', 'metrics')]).toEqual([['monitoring'], ['monitoring']]);
  });

  it('allow the services that publish or consume events, and the doctor, to reach NATS', () => {
    expect(callers('nats', 'nats').toSorted()).toEqual([...arrows.stream, 'admin'].toSorted());
  });
});

it('webhook blocks what is outside of the networks that its policy names', () => {
  const [beginning, end] = ['1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '4000::'];
  for (const address of ['::', '::1', beginning, end, 'fc00::1', 'fe80::1', 'ff02::1'])
    expect(blocked.list.check(address, 'ipv6'), address).toBe(true);
  expect(
    ['2000::', '2606:4700::1111', '3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff'].filter((address) =>
      blocked.list.check(address, 'ipv6'),
    ),
  ).toEqual([]);
});

/**
 * The networks that webhook never connects to: all of IPv4, and those of IPv6 within 2000::/3, outside of which it
 * connects to nothing.
 */
async function readBlockedNetworks(): Promise<{ list: BlockList; ipv4: string[]; ipv6: string[] }> {
  // Not imported statically: nothing depends on a service's code.
  const file = pathToFileURL(join(repositoryRoot, 'apps/webhook/src/endpoint/blocked-networks.ts')).href;
  const { blockedNetworks: list } = (await import(/* @vite-ignore */ file)) as { blockedNetworks: BlockList };
  const subnets = list.rules.flatMap((rule) => /^Subnet: IPv[46] (.+)$/.exec(rule)?.[1] ?? []).toSorted();
  return {
    list,
    ipv4: subnets.filter((subnet) => !subnet.includes(':')),
    ipv6: subnets.filter((subnet) => /^[23][\da-f]{3}:/.test(subnet)),
  };
}

/** Every pair of a peer and a port that the rules allow. */
function connections(rules: Rule[]): string[] {
  return rules.flatMap(({ from, to, ports }) =>
    (from ?? to ?? [{}]).flatMap((peer) =>
      ports.map(
        ({ port, endPort, protocol }) =>
          `${nameOf(peer)}:${[port, endPort].filter((each) => each !== undefined).join('-')}${protocol ? `/${protocol}` : ''}`,
      ),
    ),
  );
}

/** Contains all labels of the selector, so that an unexpected one becomes visible. */
function nameOf({ podSelector, namespaceSelector, ipBlock }: Peer): string {
  if (ipBlock !== undefined && podSelector === undefined && namespaceSelector === undefined) return ipBlock.cidr;
  const {
    'app.kubernetes.io/name': service,
    'app.kubernetes.io/component': component = 'service',
    'scheduling/role': role,
    'k8s-app': system,
    ...others
  } = podSelector?.matchLabels ?? {};
  const {
    'kubernetes.io/metadata.name': namespace,
    'scheduling/role': roleOfNamespace,
    ...otherNamespaces
  } = namespaceSelector?.matchLabels ?? {};
  const unexpected = [
    ...Object.keys({ ...others, ...otherNamespaces }),
    ...(component === 'service' ? [] : [component]),
  ];
  return (
    [namespace ?? roleOfNamespace, service ?? role ?? system, ...unexpected]
      .filter((part) => part !== undefined)
      .join('/') || 'anywhere'
  );
}
