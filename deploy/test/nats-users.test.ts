import { natsUsers, passwordVariable } from '@scheduling/events';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Manifest } from '../manifest.ts';
import { deployFolder, examples } from './kustomizations.ts';
import { natsUsersDocument, natsUsersFiles } from './nats-users-document.ts';
import { renderKustomization } from './render-kustomization.ts';

interface ConfigMap extends Manifest {
  data: Record<string, string>;
}

it.each(natsUsersFiles.map((file) => [relative(deployFolder, file), file]))(
  'deploy/%s has the permissions that the code needs (else: node deploy/write-nats-users.ts)',
  (_name, file) => {
    expect(readFileSync(file, 'utf8')).toBe(natsUsersDocument());
  },
);

it('compose.yaml gives NATS and its clients the same password for every user', () => {
  const text = readFileSync(join(deployFolder, 'compose.yaml'), 'utf8');
  const { services } = parse(text, { merge: true }) as {
    services: Record<string, { environment: Record<string, string> }>;
  };
  for (const user of natsUsers) {
    const variable = passwordVariable(user);
    const password = `\${${variable}:-${user}}`;
    expect(services['nats']?.environment[variable]).toBe(`"${password}"`);
    expect(services[user === 'doctor' ? 'admin' : user]?.environment['NATS_URL']).toBe(
      `nats://${user}:${password}@nats:4222`,
    );
  }
});

it('the NATS of the example reads the users from the generated file, and their passwords from secrets', () => {
  const manifests = renderKustomization(examples.folder);
  const maps = manifests.filter(({ kind }) => kind === 'ConfigMap') as ConfigMap[];
  const users = maps.find(({ metadata }) => metadata.name.startsWith('nats-users-'));
  expect(users?.data).toEqual({ 'users.conf': natsUsersDocument() });
  expect(maps.find(({ metadata }) => metadata.name === 'nats')?.data['nats.conf']).toMatch(/^include users\.conf$/m);
  const { template } = manifests.find(({ kind }) => kind === 'StatefulSet')!.spec as {
    template: { spec: { volumes: { name: string }[]; containers: { name: string }[] } };
  };
  expect(template.spec.volumes.find(({ name }) => name === 'config')).toMatchObject({
    projected: {
      sources: expect.arrayContaining([
        { configMap: { name: 'nats' } },
        { configMap: { name: users?.metadata.name } },
      ]) as object[],
    },
  });
  expect(template.spec.containers.find(({ name }) => name === 'nats')).toMatchObject({
    envFrom: natsUsers.map((user) => ({ secretRef: { name: `nats-${user}` } })),
  });
});
