/**
 * What runs is what the lockfile names: npm has verified each package of this machine against a checksum in it,
 * installed no other version and no other package, and has run no package's code, which could download more.
 */
import { readFileSync } from 'node:fs';
import { inspectInstall } from '../apps/local/lockfile.mjs';

interface Lockfile {
  packages: Record<string, { resolved?: string; link?: boolean; integrity?: string; version?: string }>;
}

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lockfile;
/** Installed by the checks that need them (.ci/run), with npm ci. */
const ofChecks = ['.ci/browser'].flatMap((folder) => {
  const lockfile = JSON.parse(readFileSync(`${folder}/package-lock.json`, 'utf8')) as Lockfile;
  return Object.entries(lockfile.packages).map(([path, content]) => ({ folder, path, ...content }));
});
const { optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  optionalDependencies: Record<string, string>;
};
const { missing, unverified, unknown } = inspectInstall('.') as Record<'missing' | 'unverified' | 'unknown', string[]>;
const nodes = Object.keys(optionalDependencies).map((name) => packages[`node_modules/${name}`]);

const faults = [
  ...missing.map(
    (path) =>
      `${path} is not installed as in package-lock.json: run npm ci; if it is left out again, its checksum does not match`,
  ),
  ...unverified.map((path) => `${path} has no checksum in package-lock.json`),
  ...unknown.map((path) => `${path} is not in package-lock.json: run npm ci`),
  ...Object.entries(packages).flatMap(([path, { resolved, link }]) =>
    resolved && !link ? [`${path} names the registry that served it`] : [],
  ),
  ...ofChecks.flatMap(({ folder, path, resolved, integrity }) =>
    resolved || (path && !integrity) ? [`${folder}: ${path} names a registry, or has no checksum`] : [],
  ),
  ...(nodes.length > 0 && nodes.every((node) => node?.integrity)
    ? []
    : ["the project's Node has no checksum for one of its platforms"]),
  ...(new Set(nodes.map((node) => node?.version)).size === 1
    ? []
    : ["the project's Node is not the same version on all platforms"]),
  ...(/^ignore-scripts=true$/m.test(readFileSync('.npmrc', 'utf8'))
    ? []
    : ['.npmrc lets packages run code while they are installed']),
];

for (const fault of faults) console.error(fault);
console.log(`${Object.keys(packages).length + ofChecks.length} packages checked, ${faults.length} faults`);
process.exitCode = faults.length === 0 ? 0 : 1;
