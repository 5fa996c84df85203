import {
  createMetrics,
  databaseServices,
  isHttpService,
  requiresTls,
  startOperationsServer,
} from '@scheduling/runtime';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { deployFolder } from './kustomizations.ts';
import { readServiceConfiguration, type ServiceConfiguration, services } from './service-configuration.ts';

interface ComposeService {
  image: string;
  build?: { args: Record<string, string> };
  command?: string[];
  environment: Record<string, string>;
  ports?: string[];
  networks?: Record<string, { aliases?: string[] }> | string[];
  healthcheck: { test: string[] };
  depends_on?: Record<string, { condition: string }>;
  profiles?: string[];
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
}

const text = readFileSync(join(deployFolder, 'compose.yaml'), 'utf8').replaceAll(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1');
const compose = (parse(text, { merge: true }) as { services: Record<string, ComposeService> }).services;

it('compose.yaml runs every service with its migration, and the servers that they need', () => {
  const migrations = databaseServices.map((service) => `${service}-migration`);
  expect(Object.keys(compose).toSorted()).toEqual(
    [...services, ...migrations, 'postgres', 'nats', 'inbox', 'admin'].toSorted(),
  );
});

it.each(Object.entries(compose))('compose.yaml gives %s no more privileges than it needs', (_name, service) => {
  expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
});

describe.each(services)('compose.yaml with %s', (name) => {
  const service = compose[name]!;
  let configuration: ServiceConfiguration;
  beforeAll(async () => {
    configuration = await readServiceConfiguration(name);
  });

  it('sets only variables that it knows, and all that it requires', () => {
    expect([...configuration.variables]).toEqual(expect.arrayContaining(Object.keys(service.environment)));
    expect(() => configuration.ports(service.environment)).not.toThrow();
  });

  it('publishes its port for clients, and no other', () => {
    const { http } = configuration.ports(service.environment);
    expect((service.ports ?? []).map((port) => Number(port.split(':').at(-1)))).toEqual(
      http === undefined ? [] : [http],
    );
  });

  it('serves operators only on the network that it shares with the admin command', () => {
    const owner = { default: {}, admin: { aliases: [`${name}-admin`] } };
    expect(service.networks).toEqual(isHttpService(name) ? undefined : owner);
    expect(service.environment['ADMIN_LISTEN_HOST']).toBe(isHttpService(name) ? undefined : `${name}-admin`);
  });

  it('configures the names and ports of the other services and servers', async () => {
    for (const [variable, value] of Object.entries(service.environment)) {
      if (variable.endsWith('_ADDRESS')) {
        const [, other = '', port] = /^dns:\/\/\/([a-z]+):(\d+)$/.exec(value) ?? [];
        expect(`${other.toUpperCase()}_ADDRESS`).toBe(variable);
        const { ports } = await readServiceConfiguration(other);
        expect(Number(port)).toBe(ports(compose[other]!.environment).grpc);
      } else if (['DATABASE_URL', 'NATS_URL', 'SMTP_URL'].includes(variable)) {
        expect(Object.keys(compose)).toContain(new URL(value).hostname);
      }
    }
  });

  it('checks its health at its actual address', async () => {
    const [, url = ''] = /get\('([^']+)'/.exec(service.healthcheck.test.join(' ')) ?? [];
    const { port, pathname } = new URL(url);
    expect(Number(port)).toBe(configuration.ports(service.environment).metrics);
    await using operations = await startOperationsServer({
      host: '127.0.0.1',
      port: 0,
      metrics: createMetrics('deploy'),
      readiness: {},
    });
    operations.serve();
    expect((await fetch(`http://127.0.0.1:${operations.port}${pathname}`)).status).toBe(200);
  });

  it('builds its own image, once', () => {
    expect(service).toMatchObject({ image: `scheduling/${name}`, build: { args: { SERVICE: name } } });
    expect(Object.values(compose).filter(({ build }) => build?.args['SERVICE'] === name)).toEqual([service]);
  });
});

it('compose.yaml gives the admin command every address that it can check, and does not start it with the others', async () => {
  const { variables } = await readServiceConfiguration('admin');
  const { environment, image, build, profiles, networks } = compose['admin']!;
  expect(Object.keys(environment).toSorted()).toEqual(
    [...variables].filter((name) => !name.endsWith('_FILE')).toSorted(),
  );
  expect({ image, build, profiles }).toMatchObject({
    image: 'scheduling/admin',
    build: { args: { SERVICE: 'admin' } },
    profiles: ['admin'],
  });
  for (const [variable, address] of Object.entries(environment).filter(([name]) => name !== 'OPERATOR_NAME')) {
    const [, host = ''] = /^[a-z]+:\/\/+(?:.*@)?([a-z-]+):/.exec(address) ?? [];
    expect(Object.keys(compose)).toContain(host.replace(/-admin$/, ''));
    expect(host.endsWith('-admin')).toBe(variable.endsWith('_ADDRESS'));
  }
  for (const service of databaseServices) {
    const { ports } = await readServiceConfiguration(service);
    expect(environment[`${service.toUpperCase()}_ADDRESS`]).toBe(
      `dns:///${service}-admin:${ports(compose[service]!.environment).admin}`,
    );
  }
  expect(networks).toEqual(['default', 'admin']);
});

it.each(['postgres', 'nats', 'inbox'])('compose.yaml keeps %s away from the RPCs for operators', (name) => {
  expect(compose[name]!.networks).toBeUndefined();
});

it('compose.yaml says that its inbox has no TLS', () => {
  for (const name of ['notification', 'admin'])
    expect(requiresTls(compose[name]!.environment['SMTP_URL']!)).toBe(false);
});

it.each(databaseServices)('compose.yaml migrates the database of %s before it starts', (name) => {
  const { image, environment, depends_on: dependencies } = compose[name]!;
  expect(compose[`${name}-migration`]).toMatchObject({
    image,
    environment,
    command: ['migrate'],
    depends_on: { postgres: { condition: 'service_healthy' } },
  });
  expect(new URL(environment.DATABASE_URL ?? '').pathname).toBe(`/${name}`);
  expect(dependencies).toMatchObject({ [`${name}-migration`]: { condition: 'service_completed_successfully' } });
});

it('the image exposes the ports of all services', async () => {
  const dockerfile = readFileSync(join(deployFolder, 'Dockerfile'), 'utf8');
  const exposed = /^EXPOSE (.*)\n(?:#.*\n)*ENTRYPOINT \["node", .*"src\/main.ts"\]/m
    .exec(dockerfile)?.[1]
    ?.split(' ')
    .map(Number);
  const listened = await Promise.all(
    services.map(async (name) =>
      Object.values((await readServiceConfiguration(name)).ports(compose[name]!.environment)),
    ),
  );
  expect(new Set(exposed)).toEqual(new Set(listened.flat()));
});

it('compose.yaml creates a role with a password of its own for the database of each service', () => {
  const raw = (
    parse(readFileSync(join(deployFolder, 'compose.yaml'), 'utf8'), { merge: true }) as {
      services: Record<string, ComposeService>;
    }
  ).services;
  const passwords = databaseServices.map((name) => {
    const variable = `${name.toUpperCase()}_DATABASE_PASSWORD`;
    const password = raw['postgres']?.environment[variable];
    expect(password).toBe(`\${${variable}:-${name}}`);
    expect(raw[name]?.environment['DATABASE_URL']).toBe(`postgres://${name}:${password}@postgres:5432/${name}`);
    return password;
  });
  expect(passwords).not.toContain(raw['postgres']?.environment['POSTGRES_PASSWORD']);
});
