import { describe, expect, it } from 'vitest';
import type { Manifest } from '../manifest.ts';
import { completeExamples, examples, natsTls, observability } from './kustomizations.ts';
import { findManifest, renderKustomization } from './render-kustomization.ts';

interface Container {
  name: string;
  ports?: { name: string }[];
  securityContext: object;
  resources: object;
  lifecycle?: { preStop: { exec: { command: string[] } } };
  volumeMounts?: { name: string; mountPath: string }[];
}

interface StatefulSet extends Manifest {
  spec: {
    serviceName: string;
    replicas: number;
    template: {
      metadata: { labels: object };
      spec: {
        terminationGracePeriodSeconds: number;
        securityContext: object;
        containers: Container[];
        volumes: { name: string; secret?: { secretName: string } }[];
      };
    };
  };
}

interface PodMonitor extends Manifest {
  spec: { selector: { matchLabels: Record<string, string> }; podMetricsEndpoints: { port: string }[] };
}

interface ConfigMap extends Manifest {
  data: Record<string, string>;
}

interface Certificate extends Manifest {
  spec: { secretName: string; dnsNames: string[]; issuerRef: { name: string } };
}

const withTls = renderKustomization(completeExamples.folder);

describe.each([examples, completeExamples])('NATS of the $name', ({ folder }) => {
  const manifests = renderKustomization(folder);
  const { spec } = findManifest(manifests, 'StatefulSet', 'nats') as StatefulSet;
  const { containers } = spec.template.spec;
  const configuration = (findManifest(manifests, 'ConfigMap', 'nats') as ConfigMap).data['nats.conf'] ?? '';

  it('gives no container more privileges than it needs', () => {
    for (const { securityContext, resources } of containers) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(resources).toMatchObject({
        requests: { cpu: expect.any(String) as string, memory: expect.any(String) as string },
        limits: { memory: expect.any(String) as string },
      });
    }
  });

  it('does not run as root, and on OpenShift as a user and a group of the namespace', () => {
    const fixed = folder === examples.folder ? { runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 } : {};
    const { securityContext } = spec.template.spec;
    expect(securityContext).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' }, ...fixed });
  });

  it('has the metrics where the PodMonitor looks for them', () => {
    const monitor = (
      findManifest(renderKustomization(observability.folder), 'PodMonitor', 'scheduling-nats') as PodMonitor
    ).spec;
    expect(spec.template.metadata.labels).toMatchObject(monitor.selector.matchLabels);
    expect(containers.flatMap(({ ports = [] }) => ports.map(({ name }) => name))).toEqual(
      expect.arrayContaining(monitor.podMetricsEndpoints.map(({ port }) => port)),
    );
  });

  it('has time to move its clients before it is killed', () => {
    const [, pidFile = ''] = /^pid_file: (\S+)$/m.exec(configuration) ?? [];
    const [, seconds] = /^lame_duck_duration: (\d+)s$/m.exec(configuration) ?? [];
    const server = containers.find(({ name }) => name === 'nats')!;
    expect(server.lifecycle?.preStop.exec.command).toEqual(['nats-server', '--signal', `ldm=${pidFile}`]);
    expect(server.volumeMounts?.map(({ mountPath }) => mountPath)).toContain(pidFile.replace(/\/[^/]+$/, ''));
    expect(Number(seconds)).toBeLessThan(spec.template.spec.terminationGracePeriodSeconds);
  });
});

describe('TLS of the example of NATS', () => {
  const { spec } = findManifest(withTls, 'StatefulSet', 'nats') as StatefulSet;
  const certificate = (findManifest(withTls, 'Certificate', 'nats-tls') as Certificate).spec;
  const routes = [
    ...((findManifest(withTls, 'ConfigMap', 'nats') as ConfigMap).data['nats.conf'] ?? '').matchAll(
      /nats:\/\/([\w.-]+):6222/g,
    ),
  ].map(([, host]) => host);

  it('has a certificate for the name that clients use, and for those of the routes', () => {
    expect(routes).toEqual(Array.from({ length: spec.replicas }, (_, server) => `nats-${server}.${spec.serviceName}`));
    expect(certificate.dnsNames).toEqual(expect.arrayContaining(['nats', ...routes]));
    expect(spec.template.spec.volumes).toContainEqual({ name: 'tls', secret: { secretName: certificate.secretName } });
  });

  it('uses the authority that the services trust', () => {
    const { spec: issuer } = findManifest(withTls, 'Issuer', certificate.issuerRef.name) as Manifest & {
      spec: { ca: { secretName: string } };
    };
    const service = JSON.stringify(findManifest(renderKustomization(natsTls.folder), 'Deployment', 'calendar'));
    expect(service).toContain(`"secretName":"${issuer.ca.secretName}"`);
  });
});
