import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { databaseServices, natsServices } from '@scheduling/runtime';
import { createCertificateAuthority } from '@scheduling/testing';
import { printedCommands } from '@scheduling/testing/printed-commands';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Manifest, parseManifests } from '../manifest.ts';
import { examples, production } from './kustomizations.ts';
import { renderKustomization } from './render-kustomization.ts';

const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const mentionedSecret =
  /"(?:secretName|serverCASecret|secretRef|secretKeyRef|passwordSecret)":(?:"([\w-]+)"|\{[^}]*"name":"([\w-]+)")/g;
/** Without a cluster: kubectl prints what it would create. Even so, it asks a server before it applies anything. */
const dryRun = 'kubectl() { [ "$1" = apply ] || command kubectl "$@" --dry-run=client --output yaml; echo ---; }';

describe.skipIf(!hasKubectl || !hasOpenssl)('the secrets that docs/installation.md creates', () => {
  let folder: string;
  /** Their values by name and key. */
  let secrets: Map<string, Record<string, string>>;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'secrets-test-'));
    const authority = await createCertificateAuthority();
    const { cert, key } = await authority.issue('scheduling.example.com');
    writeFileSync(join(folder, 'tls.crt'), cert);
    writeFileSync(join(folder, 'tls.key'), key);
    const script = ['set -eu', dryRun, printedCommands('secrets')].join('\n');
    const yaml = execFileSync('bash', ['-c', script], { cwd: folder, encoding: 'utf8' });
    const manifests = parseManifests(yaml).filter((manifest) => (manifest as Manifest | null)?.kind === 'Secret');
    secrets = new Map(manifests.map(({ metadata, data }) => [metadata.name, decoded(data as Record<string, string>)]));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const valueOf = (secret: string, key: string): string => secrets.get(secret)![key]!;

  it('are those that the manifests and the examples mention', () => {
    const rendered = JSON.stringify([production, examples].flatMap(({ folder }) => renderKustomization(folder)));
    const mentioned = [...rendered.matchAll(mentionedSecret)].map(([, plain, referred]) => plain ?? referred!);
    // The Gateway is not part of them, and the doctor runs elsewhere.
    const others = ['gateway-tls', 'doctor-nats'];
    expect([...new Set([...mentioned, ...others])].toSorted()).toEqual([...secrets.keys()].toSorted());
  });

  it('have the same passwords for the servers and for the services', () => {
    for (const service of databaseServices) {
      const { username, password } = new URL(valueOf(`${service}-database`, 'DATABASE_URL'));
      expect(secrets.get(`postgres-${service}`)).toEqual({ username, password });
    }
    for (const user of [...natsServices, 'doctor']) {
      const { username, password } = new URL(valueOf(`${user}-nats`, 'NATS_URL'));
      expect(username).toBe(user);
      expect(secrets.get(`nats-${user}`)).toEqual({ [`${user.toUpperCase()}_NATS_PASSWORD`]: password });
    }
  });

  it('have an authority for Postgres in the format of CloudNativePG, whose key is left nowhere else', () => {
    expect(valueOf('postgres-ca', 'ca.key')).toMatch(/^-----BEGIN EC PRIVATE KEY-----\n/);
    expect(readdirSync(folder)).not.toContain('ca.key');
    const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, encoding: 'utf8' });
    expect(openssl('verify', '-CAfile', 'ca.crt', 'ca.crt')).toBe('ca.crt: OK\n');
    expect(openssl('x509', '-in', 'ca.crt', '-noout', '-ext', 'keyUsage,basicConstraints')).toMatch(
      /CA:TRUE[^]*Certificate Sign, CRL Sign/,
    );
  });
});

function decoded(data: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
  );
}
