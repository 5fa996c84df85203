import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { databaseServices, httpServices, natsServices, type Service } from '@scheduling/runtime';
import { printedCommands } from '@scheduling/testing/printed-commands';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { deployFolder, pagePaths } from './kustomizations.ts';
import { readServiceConfiguration, services } from './service-configuration.ts';

interface ComposeService {
  environment?: Record<string, string>;
  volumes?: string[];
  ports?: string[];
  command?: string[];
}

const text = readFileSync(join(deployFolder, 'compose.production.yaml'), 'utf8');
const production = readServices(text);
const base = readServices(readFileSync(join(deployFolder, 'compose.yaml'), 'utf8'));
/** Variables without which Compose refuses to start. */
const required = new Set([...text.matchAll(/\$\{([A-Z_]+):\?\}/g)].map(([, name = '']) => name));

/** The tags of Compose, such as `!reset`, have no effect here. */
function readServices(yaml: string): Record<string, ComposeService> {
  const filled = yaml
    // The inner ones first: a default may contain a variable that is required.
    .replaceAll(/\$\{([A-Z_]+):\?\}/g, (_, name: string) => sampleOf(name))
    .replaceAll(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1');
  return (parse(filled, { merge: true, logLevel: 'silent' }) as { services: Record<string, ComposeService> }).services;
}

function sampleOf(name: string): string {
  if (name === 'SMTP_URL') return 'smtp://mail.example.com:587';
  return name === 'WEBHOOK_SECRET_KEYS' || name === 'LINK_KEYS'
    ? `1:${Buffer.alloc(32).toString('base64')}`
    : name.toLowerCase();
}

/** A process refuses a `DATABASE_URL` that names files that it cannot read. */
function withExistingFiles(environment: Record<string, string>): Record<string, string> {
  const { DATABASE_URL: url } = environment;
  const file = fileURLToPath(import.meta.url);
  return { ...environment, ...(url !== undefined && { DATABASE_URL: url.replace('/certificates/ca.crt', file) }) };
}

const isOneOf = (names: readonly Service[], name: Service): boolean => names.includes(name);

describe.each(services)('compose.production.yaml with %s', (name) => {
  const own = production[name]!;
  const environment = { ...base[name]!.environment, ...own.environment };

  it('sets only variables that it knows, to allowed values', async () => {
    const configuration = await readServiceConfiguration(name);
    expect([...configuration.variables]).toEqual(expect.arrayContaining(Object.keys(environment)));
    expect(() => configuration.ports(withExistingFiles(environment))).not.toThrow();
  });

  it('uses TLS for every connection, with its own certificate', () => {
    expect(environment).toMatchObject({
      GRPC_TLS_CERT_FILE: '/certificates/tls.crt',
      GRPC_TLS_KEY_FILE: '/certificates/tls.key',
      GRPC_TLS_CA_FILE: '/certificates/ca.crt',
    });
    expect(own.volumes).toEqual([`certificates/${name}:/certificates:ro`]);
    if (isOneOf(natsServices, name)) {
      expect(environment).toMatchObject({
        NATS_URL: `tls://${name}:${name}_nats_password@nats:4222`,
        NATS_TLS_CA_FILE: '/certificates/ca.crt',
      });
    }
    if (isOneOf(databaseServices, name))
      expect(environment['DATABASE_URL']).toBe(
        `postgres://${name}:${name}_database_password@postgres:5432/${name}?sslmode=verify-full&sslrootcert=/certificates/ca.crt`,
      );
  });

  it('migrates its database, if it has one, in the same way', () => {
    const { environment, volumes } = own;
    expect(production[`${name}-migration`]).toEqual(
      isOneOf(databaseServices, name) ? { environment, volumes } : undefined,
    );
  });
});

it('compose.production.yaml leaves no default of compose.yaml that is a secret or for development', () => {
  const passwords = [
    ...readFileSync(join(deployFolder, 'compose.yaml'), 'utf8').matchAll(/\$\{([A-Z_]*(?:PASSWORD|KEYS)):-/g),
  ].map(([, name = '']) => name);
  expect([...required]).toEqual(expect.arrayContaining(passwords));
  expect(production['webhook']?.environment).toMatchObject({ WEBHOOK_ALLOW_PRIVATE: 'false' });
  for (const name of ['postgres', 'nats'])
    expect(Object.keys(production[name]!.environment!)).toEqual(
      Object.keys(base[name]!.environment!).filter((variable) => variable !== 'PGDATA'),
    );
  expect(text).toContain('\n  inbox: !reset null\n');
});

it('compose.production.yaml publishes the proxy only', () => {
  for (const service of httpServices) expect(production[service]?.ports).toEqual([]);
  const published = Object.entries({ ...base, ...production }).filter(
    ([, service]) => (service?.ports ?? []).length > 0,
  );
  expect(published.map(([name]) => name)).toEqual(['proxy']);
});

it('the proxy leads to page by its paths, and to the gateway otherwise', async () => {
  const proxy = readFileSync(join(deployFolder, 'compose/Caddyfile'), 'utf8');
  const [, paths = ''] = /^\t@pages path (.*)$/m.exec(proxy) ?? [];
  expect(paths.split(' ')).toEqual(pagePaths.flatMap((path) => [path, `${path}/*`]));
  const targets = [...proxy.matchAll(/handle @(\w+) \{\n(?:\t\t.*\n)*?\t\treverse_proxy (\S+)\n\t\}/g)].map(
    ([, ...found]) => found,
  );
  const addressOf = async (service: Service): Promise<string> =>
    `${service}:${(await readServiceConfiguration(service)).ports(base[service]!.environment!).http}`;
  expect(targets).toEqual([
    ['pages', await addressOf('page')],
    ['gateway', await addressOf('gateway')],
  ]);
});

it('the links in mails lead to the host of the proxy, or to another one for the pages alone', () => {
  const environments = ['page', 'gateway', 'notification'].map((name) => production[name]!.environment!['PAGE_URL']);
  expect(environments).toEqual(Array(3).fill('https://public_host'));
  expect(text.match(/PAGE_URL: https:.*/g)).toEqual(Array(3).fill('PAGE_URL: https://${PAGE_HOST:-${PUBLIC_HOST:?}}'));
  expect(text).toContain(' PAGE_HOST: ${PAGE_HOST:-${PUBLIC_HOST:?}}\n');
  expect(readFileSync(join(deployFolder, 'compose/Caddyfile'), 'utf8')).toContain('\n{$PUBLIC_HOST} {$PAGE_HOST} {\n');
});

it('create-certificates.sh has a certificate for every name', () => {
  const script = readFileSync(join(deployFolder, 'compose/create-certificates.sh'), 'utf8');
  const [, names = ''] = /^for name in (.*); do$/m.exec(script) ?? [];
  expect(names.split(' ').toSorted()).toEqual([...services, 'admin', 'postgres', 'nats'].toSorted());
});

it('the archive of the write-ahead log is where the scripts expect it', () => {
  const command = production['postgres']!.command!.join(' ');
  expect(command).toContain('archive_command=archive-wal %p %f');
  for (const script of ['start-postgres', 'archive-wal', 'back-up', 'restore']) {
    expect(production['postgres']!.volumes).toContain(`./compose/${script}.sh:/usr/local/bin/${script}:ro`);
    expect(readFileSync(join(deployFolder, `compose/${script}.sh`), 'utf8')).toContain('/backup');
  }
  expect(command).toContain('log_min_error_statement=panic');
  // Otherwise a server that still restores would be healthy, and the migrations would fail, because it only reads.
  expect(command).toContain('hot_standby=off');
});

/** As docs/performance.md says, at most. */
const connectionsOfReplica = 11;

it.each([
  ['compose.yaml', base],
  ['compose.production.yaml', production],
])(
  '%s has connections to Postgres for three replicas of each service, and for one more while they are replaced',
  (_file, { postgres }) => {
    const [, connections] = /max_connections=(\d+)/.exec(postgres!.command!.join(' ')) ?? [];
    expect(Number(connections)).toBeGreaterThan(databaseServices.length * (3 + 1) * connectionsOfReplica);
  },
);

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

it.skipIf(!hasOpenssl)(
  'the commands of docs/installation.md write every variable that compose.production.yaml requires',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'production-env-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'production.env');
    const script = `set -eu\nsudo() { "$@"; }\n${printedCommands('production.env').replace('/etc/scheduling/production.env', file)}`;
    execFileSync('bash', ['-c', script]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const written = parseEnv(readFileSync(file, 'utf8')) as Record<string, string>;
    expect(Object.keys(written).toSorted()).toEqual([...required].toSorted());
    const passwords = Object.keys(written).filter((name) => name.endsWith('_PASSWORD'));
    expect(new Set(passwords.map((name) => written[name])).size).toBe(passwords.length);
    for (const name of passwords) expect(written[name]).toMatch(/^[a-z][a-z\d]{47,}$/);
    for (const name of ['LINK_KEYS', 'WEBHOOK_SECRET_KEYS']) expect(written[name]).toMatch(/^1:[A-Za-z\d+/]{43}=$/);
  },
);
