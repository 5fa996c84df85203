/**
 * Packs the client for `npm install <file>` and for publication: compiled, because Node strips no types in
 * node_modules, and with a manifest without what only this repository needs. node libs/client/pack.ts [folder]
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';

const source = import.meta.dirname;
const destination = resolve(process.argv[2] ?? '.');
const files = mkdtempSync(join(tmpdir(), 'scheduling-client-'));

try {
  execFileSync('tsc', ['--project', join(source, 'tsconfig.build.json'), '--outDir', join(files, 'dist')], {
    stdio: ['ignore', 2, 2],
  });
  for (const name of ['README.md', 'examples']) cpSync(join(source, name), join(files, name), { recursive: true });
  cpSync(join(source, '../../LICENSE'), join(files, 'LICENSE'));
  writeFileSync(join(files, 'package.json'), `${JSON.stringify(publishedManifest(), null, 2)}\n`);
  mkdirSync(destination, { recursive: true });
  const options = ['--pack-destination', destination, '--silent'];
  const name = execFileSync('npm', ['pack', ...options], { cwd: files, encoding: 'utf8' }).trim();
  console.log(join(destination, name));
  const sizes = [
    await bundledSize("export { createClient } from './dist/index.js';"),
    await bundledSize("export * from './dist/index.js';"),
  ];
  console.log(`minified and gzipped: createClient ${sizes[0]} kB, everything ${sizes[1]} kB`);
} finally {
  rmSync(files, { recursive: true });
}

function publishedManifest(): object {
  const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as Record<string, unknown>;
  const { private: _private, scripts: _scripts, devDependencies: _devDependencies, ...published } = manifest;
  return {
    ...published,
    ...publishedRepository(),
    exports: { types: './dist/index.d.ts', default: './dist/index.js' },
  };
}

/** Provenance requires the repository whose workflow publishes the package. */
function publishedRepository(): object {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository } = process.env;
  if (repository === undefined) return {};
  return { repository: { type: 'git', url: `git+${server}/${repository}.git`, directory: 'libs/client' } };
}

/** What it adds to an application that uses it so, in kB. */
async function bundledSize(program: string): Promise<string> {
  const input = join(files, 'program.js');
  writeFileSync(input, program);
  const bundle = await rolldown({ input, resolve: { modules: [join(source, '../../node_modules')] } });
  const { output } = await bundle.generate({ minify: true });
  return (gzipSync(output[0].code).byteLength / 1_000).toFixed(1);
}
