/** Sets the version in every place that states it: node .ci/set-version.ts 1.0.0 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';

interface Versioned {
  version: string;
}

const { version: previous } = JSON.parse(readFileSync('package.json', 'utf8')) as Versioned;
const [version = ''] = process.argv.slice(2);
if (!/^\d+\.\d+\.\d+(-rc\.\d+)?$/.test(version)) throw new Error('usage: node .ci/set-version.ts <version>');

const manifests = ['package.json', ...globSync(['apps/*/package.json', 'libs/*/package.json', 'deploy/package.json'])];
for (const file of manifests) replaceIn(file, `"version": "${previous}"`, `"version": "${version}"`);
setInLockfile();
replaceIn('deploy/Dockerfile', `ARG VERSION=${previous}`, `ARG VERSION=${version}`);
for (const file of globSync('deploy/kubernetes/{overlays/production/*,admin}/kustomization.yaml'))
  replaceIn(file, `newTag: ${previous}`, `newTag: ${version}`);
replaceIn('deploy/README.md', `scheduling/admin:${previous}`, `scheduling/admin:${version}`);
replaceIn('README.md', `**Status**: ${previous}.`, `**Status**: ${version}.`);
for (const file of globSync('clients/*/pyproject.toml'))
  replaceIn(file, `version = "${pythonVersion(previous)}"`, `version = "${pythonVersion(version)}"`);

function setInLockfile(): void {
  const lockfile = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Versioned & {
    packages: Record<string, Versioned>;
  };
  lockfile.version = version;
  for (const [path, workspace] of Object.entries(lockfile.packages))
    if (!path.includes('node_modules')) workspace.version = version;
  writeFileSync('package-lock.json', `${JSON.stringify(lockfile, undefined, 2)}\n`);
}

function replaceIn(file: string, from: string, to: string): void {
  const text = readFileSync(file, 'utf8');
  if (!text.includes(from)) throw new Error(`${file} does not have ${from}`);
  writeFileSync(file, text.replaceAll(from, to));
}

/** As PEP 440 writes it. */
function pythonVersion(text: string): string {
  return text.replace('-rc.', 'rc');
}
