import { httpServices } from '@scheduling/runtime';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Manifest } from '../manifest.ts';
import { certificates, mutualTls, overlays } from './kustomizations.ts';
import { configurationOf, findManifest, renderKustomization } from './render-kustomization.ts';
import { services } from './service-configuration.ts';

interface Deployment extends Manifest {
  spec: {
    template: {
      spec: {
        containers: [{ volumeMounts: { name: string; mountPath: string }[] }];
        volumes: { name: string; secret: { secretName: string } }[];
      };
    };
  };
}

interface Certificate extends Manifest {
  spec: { secretName: string; dnsNames?: string[]; usages?: string[]; issuerRef: { name: string } };
}

interface Issuer extends Manifest {
  spec: { ca: { secretName: string } };
}

/** The files that cert-manager stores in a Secret. */
const secretKeys = ['tls.crt', 'tls.key', 'ca.crt'];
const variables = ['GRPC_TLS_CERT_FILE', 'GRPC_TLS_KEY_FILE', 'GRPC_TLS_CA_FILE'];

it.each(overlays.filter((overlay) => overlay !== mutualTls))('mutual TLS is off in $name', ({ folder }) => {
  const manifests = renderKustomization(folder);
  for (const service of services) {
    expect(Object.keys(configurationOf(manifests, service))).not.toEqual(
      expect.arrayContaining([expect.stringContaining('GRPC_TLS')]),
    );
    expect(
      (findManifest(manifests, 'Deployment', service) as Deployment).spec.template.spec.volumes.map(({ name }) => name),
    ).not.toContain('grpc-tls');
  }
});

const authorityExample = renderKustomization(certificates.folder);

it.each([...services, 'admin'])(
  'the example has a certificate for the name of %s, from the common certificate authority',
  (name) => {
    const { secretName, dnsNames, usages, issuerRef } = (
      findManifest(authorityExample, 'Certificate', `${name}-grpc-tls`) as Certificate
    ).spec;
    expect({ secretName, dnsNames }).toEqual({ secretName: `${name}-grpc-tls`, dnsNames: [name] });
    expect(usages).toEqual(
      expect.arrayContaining(
        [...httpServices, 'admin'].includes(name) ? ['client auth'] : ['client auth', 'server auth'],
      ),
    );
    const authority = (findManifest(authorityExample, 'Issuer', issuerRef.name) as Issuer).spec.ca.secretName;
    expect(findManifest(authorityExample, 'Certificate', authority).spec).toMatchObject({
      isCA: true,
      secretName: authority,
    });
  },
);

describe.each(services)('the component for mutual TLS', (service) => {
  const manifests = renderKustomization(mutualTls.folder);

  it(`mounts the files of its own Secret into ${service}`, () => {
    const { containers, volumes } = (findManifest(manifests, 'Deployment', service) as Deployment).spec.template.spec;
    const mount = containers[0].volumeMounts.find(({ mountPath }) => mountPath === '/etc/grpc-tls');
    expect(volumes).toContainEqual({ name: mount!.name, secret: { secretName: `${service}-grpc-tls` } });
    const files = variables.map((variable) => configurationOf(manifests, service)[variable]!);
    expect(files.map((file) => dirname(file))).toEqual(files.map(() => mount!.mountPath));
    expect(files.map((file) => file.slice(mount!.mountPath.length + 1))).toEqual(secretKeys);
  });
});
