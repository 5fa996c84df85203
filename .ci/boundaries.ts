/**
 * What the linter cannot see: a service is not reached around its gRPC interface, a lib knows no app, migrations stand
 * alone, folders do not import each other in a circle, and what a workspace imports is what Nx believes it imports.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

interface Manifest {
  name: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

const importPattern = /\b(?:from|import)\s*\(?\s*'([^']+)'/g;
const scope = '@scheduling/';
/** They run the services as processes, and depend on them for Nx. */
const starters = ['apps/local', 'apps/faults', 'apps/contract-tests'];
const faults: string[] = [];
/** For each folder of a workspace's `src`, those that it imports. */
const folderImports = new Map<string, Set<string>>();
let checked = 0;

for (const manifestPath of globSync(['apps/*/package.json', 'libs/*/package.json'])) {
  const workspace = dirname(manifestPath);
  const manifest = JSON.parse(readFileSync(manifestPath, 'utf8')) as Manifest;
  const declared = new Set(Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }));
  const used = new Set<string>();

  for (const file of globSync(`${workspace}/{src,test}/**/*.ts`)) {
    checked += 1;
    for (const [, specifier = ''] of readFileSync(file, 'utf8').matchAll(importPattern)) {
      if (specifier.startsWith('.')) {
        checkRelative(workspace, file, specifier);
        if (!file.endsWith('.test.ts')) noteFolders(workspace, file, specifier);
      }
      if (specifier.startsWith(scope)) used.add(specifier.split('/').slice(0, 2).join('/'));
      if (file.includes('/migrations/') && !/^kysely(\/|$)/.test(specifier)) {
        faults.push(`${file} imports ${specifier}: a migration stands alone`);
      }
    }
  }

  for (const name of used) {
    if (!declared.has(name)) faults.push(`${workspace} uses ${name} without declaring it`);
    if (isApp(name)) faults.push(`${workspace} imports ${name}: services are reached by gRPC only`);
  }
  for (const name of declared) {
    if (name.startsWith(scope) && !used.has(name) && !isApp(name))
      faults.push(`${workspace} declares ${name} without using it`);
    if (isApp(name) && !starters.includes(workspace))
      faults.push(`${workspace} depends on ${name}: only ${starters.join(' and ')} start services`);
  }
}

for (const [folder, imported] of folderImports) {
  for (const other of imported) {
    if (reachableFrom(other).has(folder)) faults.push(`${folder} imports ${other}: that leads back to it, a circle`);
  }
}

if (checked === 0) faults.push('no source file was found: the check itself is broken');
for (const fault of faults) console.error(fault);
console.log(`${checked} files checked, ${faults.length} faults`);
process.exitCode = faults.length === 0 ? 0 : 1;

function checkRelative(workspace: string, file: string, specifier: string): void {
  const target = relative(workspace, resolve(dirname(file), specifier));
  if (target.startsWith('..')) faults.push(`${file} imports ${specifier}, outside of its workspace`);
}

/** Types count, too. Files in `src` itself belong to no folder; the linter finds circles of files. */
function noteFolders(workspace: string, file: string, specifier: string): void {
  const [from, to] = [file, join(dirname(file), specifier)].map((path) => {
    const [root, folder, ...rest] = relative(workspace, path).split('/');
    return root === 'src' && rest.length > 0 ? `${workspace}/src/${folder}` : undefined;
  });
  if (from === undefined || to === undefined || from === to) return;
  folderImports.set(from, (folderImports.get(from) ?? new Set()).add(to));
}

function reachableFrom(folder: string, reached = new Set<string>()): Set<string> {
  for (const next of folderImports.get(folder) ?? []) {
    if (reached.has(next)) continue;
    reached.add(next);
    reachableFrom(next, reached);
  }
  return reached;
}

function isApp(name: string): boolean {
  return name.startsWith(scope) && globSync(`apps/${name.slice(scope.length)}/package.json`).length > 0;
}
