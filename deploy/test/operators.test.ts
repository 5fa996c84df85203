import { databaseServices, httpServices } from '@scheduling/runtime';
import { describe, expect, it } from 'vitest';
import type { Manifest } from '../manifest.ts';
import { admin, operators, overlays, readAdminPod } from './kustomizations.ts';
import { configurationOf, findManifest, renderKustomization } from './render-kustomization.ts';
import { readServiceConfiguration } from './service-configuration.ts';

interface NetworkPolicy extends Manifest {
  spec: { ingress: { from: { podSelector?: { matchLabels: Record<string, string> } }[]; ports: { port: string }[] }[] };
}

interface Service extends Manifest {
  spec: { ports: { name: string; port: number }[] };
}

interface Job extends Manifest {
  spec: { template: { metadata: { labels: object }; spec: { containers: [{ env: { name: string }[] }] } } };
}

const command = renderKustomization(admin.folder);
const environment = findManifest(command, 'ConfigMap', 'admin').data as Record<string, string>;
const job = findManifest(command, 'Job', 'doctor') as Job;

const adminPods = { podSelector: { matchLabels: { 'app.kubernetes.io/name': 'admin' } } };

/** Who may reach a port, by default the one for operators. */
function callers(folder: string, service: string, named = 'admin'): unknown[] {
  const { spec } = findManifest(renderKustomization(folder), 'NetworkPolicy', service) as NetworkPolicy;
  return spec.ingress.filter(({ ports }) => ports.some(({ port }) => port === named)).flatMap(({ from }) => from);
}

describe.each(databaseServices)('the admin command in the cluster and %s', (service) => {
  it('reach each other only with the component', () => {
    expect(callers(operators.folder, service)).toEqual([adminPods]);
    for (const { folder } of overlays) expect(callers(folder, service)).toEqual([]);
  });

  it('agree on the name, the port and mutual TLS', async () => {
    const manifests = renderKustomization(operators.folder);
    const { ports } = (findManifest(manifests, 'Service', service) as Service).spec;
    const configuration = await readServiceConfiguration(service);
    const own = configurationOf(manifests, service);
    expect(environment[`${service.toUpperCase()}_ADDRESS`]).toBe(
      `dns:///${service}:${ports.find(({ name }) => name === 'admin')?.port}`,
    );
    expect(own).toMatchObject({ ADMIN_LISTEN_HOST: '::', GRPC_TLS_CERT_FILE: expect.any(String) as string });
    expect([...configuration.variables]).toEqual(expect.arrayContaining(Object.keys(own)));
  });
});

it.each(httpServices)('the doctor in the cluster reaches %s, and only with the component', (service) => {
  const peers = (folder: string) => callers(folder, service, 'http');
  expect(peers(operators.folder)).toContainEqual(adminPods);
  for (const { folder } of overlays) expect(peers(folder)).not.toContainEqual(adminPods);
  const { egress } = findManifest(command, 'NetworkPolicy', 'admin').spec as { egress: unknown };
  const names = { key: 'app.kubernetes.io/name', operator: 'In', values: httpServices };
  expect(egress).toContainEqual({ to: [{ podSelector: { matchExpressions: [names] } }], ports: [{ port: 'http' }] });
  const variable = { gateway: 'PUBLIC_URL', page: 'PAGE_URL' }[service];
  expect(environment[variable]).toBe(`http://${service}`);
});

it('the doctor in the cluster checks everything', async () => {
  const { variables } = await readServiceConfiguration('admin');
  const given = [...Object.keys(environment), ...job.spec.template.spec.containers[0].env.map(({ name }) => name)];
  expect(given.toSorted()).toEqual(
    [...variables]
      .filter((name) => name !== 'OPERATOR_NAME' && !name.startsWith('NATS_TLS') && name !== 'NATS_CREDENTIALS_FILE')
      .toSorted(),
  );
});

it('pod.json has for kubectl run what the Job has, but for the secrets that only the doctor needs', () => {
  const { metadata, spec } = job.spec.template;
  const [{ env: _secrets, ...container }] = spec.containers;
  const asRun = { ...container, image: undefined, args: undefined };
  expect(readAdminPod()).toEqual({
    apiVersion: 'v1',
    metadata,
    spec: { ...spec, restartPolicy: undefined, containers: [asRun] },
  });
});
