/**
 * The quick checks of what differs from main: format, boundaries, types, lint, and unit tests.
 *
 *   npm run check [-- --all]
 */
import { execFileSync, spawnSync } from 'node:child_process';

const base = 'main';
const isAll = process.argv.includes('--all');

const checks: [name: string, command: string, ...args: string[]][] = [
  ['format', 'oxfmt', '--check'],
  ['boundaries', 'node', '.ci/boundaries.ts'],
  ['types and lint', 'nx', ...chooseProjects(), '--targets=typecheck,lint', '--outputStyle=static'],
  ['unit tests', 'vitest', 'run', '/src/', ...(isAll ? [] : ['--changed', base]), '--reporter=dot'],
];

const failed = checks.filter(([name, command, ...args]) => {
  console.log(`== ${name}`);
  return spawnSync(command, args, { stdio: 'inherit' }).status !== 0;
});
console.log(failed.length === 0 ? 'all passed' : `failed: ${failed.map(([name]) => name).join(', ')}`);
process.exitCode = failed.length === 0 ? 0 : 1;

/** What depends on an app only starts it (boundaries.ts), so its types cannot break; those of whoever uses a lib can. */
function chooseProjects(): string[] {
  if (isAll) return ['run-many'];
  const files = [
    git('diff', '--name-only', `${base}...`),
    git('diff', '--name-only', 'HEAD'),
    git('ls-files', '-o', '--exclude-standard'),
  ].flat();
  const apps = files.flatMap((file) => /^apps\/([^/]+)\//.exec(file)?.[1] ?? []);
  const onlyApps = apps.length > 0 && files.every((file) => !/^(libs|deploy|proto)\//.test(file));
  return onlyApps
    ? ['run-many', `--projects=${[...new Set(apps)].map((app) => `@scheduling/${app}`).join(',')}`]
    : ['affected', `--base=${base}`];
}

function git(...args: string[]): string[] {
  return execFileSync('git', args, { encoding: 'utf8' }).split('\n').filter(Boolean);
}
