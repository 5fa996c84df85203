import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Manifest } from '../manifest.ts';
import { repositoryRoot } from './kustomizations.ts';

/**
 * Checks manifests against the types of Kubernetes and of the operators they need. Returns the errors, with the kind
 * and name of the manifest. Manifests are written as literals, because the compiler rejects unknown fields only in
 * literals.
 */
export function checkTypes(manifests: Manifest[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'manifests-'));
  try {
    symlinkSync(join(repositoryRoot, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const lines = manifests.map(asSourceLine);
    writeFileSync(join(folder, 'manifests.ts'), lines.join('\n'));
    const compiler = join(repositoryRoot, 'node_modules/typescript/bin/tsc');
    const options = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--target',
      'esnext',
      '--allowImportingTsExtensions',
      '--pretty',
      'false',
      'manifests.ts',
    ];
    const { stdout, status } = spawnSync(process.execPath, [compiler, ...options], { cwd: folder, encoding: 'utf8' });
    if (status === 0) return [];
    return stdout
      .split('\n')
      .filter((line) => line.includes('error TS'))
      .map((line) => describeFault(line, manifests));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function asSourceLine(manifest: Manifest, index: number): string {
  return `export const manifest${index}: import('${moduleOf(manifest)}').I${manifest.kind} = ${JSON.stringify(manifest)};`;
}

function moduleOf({ apiVersion, kind }: Manifest): string {
  if (apiVersion === 'barmancloud.cnpg.io/v1') return join(import.meta.dirname, 'object-store.ts');
  const library = librariesOfGroups[apiVersion.split('/')[0]!] ?? 'kubernetes-models';
  return `${library}/${apiVersion}/${kind}`;
}

/** The modules with the types of API groups that are not part of Kubernetes. */
const librariesOfGroups: Record<string, string> = {
  'cert-manager.io': '@kubernetes-models/cert-manager',
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api',
  'postgresql.cnpg.io': '@kubernetes-models/cloudnative-pg',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
};

/** `manifests.ts(3,120): error TS2561: …` refers to the third manifest. */
function describeFault(line: string, manifests: Manifest[]): string {
  const manifest = manifests[Number(/^manifests\.ts\((\d+),/.exec(line)?.[1]) - 1];
  return manifest ? `${manifest.kind} ${manifest.metadata.name}: ${line.slice(line.indexOf('error'))}` : line;
}
