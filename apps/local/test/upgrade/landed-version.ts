import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repositoryRoot, type Service, services } from '@scheduling/stack';

const run = promisify(execFile);

/** The services as of a commit, with the libraries and packages of that time. */
export interface LandedVersion extends AsyncDisposable {
  /** The folder that contains `apps` and `libs`. */
  root: string;
}

/** Extracts the files of a commit from git into a separate folder and installs the packages in its lockfile. */
export async function checkOutVersion(commit: string): Promise<LandedVersion> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'scheduling-upgrade-')));
  const root = join(folder, 'version');
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    await mkdir(root);
    await run('git', ['archive', '--output', join(folder, 'version.tar'), commit], { cwd: repositoryRoot });
    await run('tar', ['-xf', join(folder, 'version.tar'), '-C', root]);
    const existing = servicesOf(root);
    const workspaces = existing.map((service) => `--workspace=apps/${service}`);
    await run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--prefer-offline', ...workspaces], { cwd: root });
    await Promise.all(existing.map((service) => requireOwnLibraries(root, service)));
    return { root, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The services of a version, which may be from before one of those of today. */
export function servicesOf(root: string): Service[] {
  return services.filter((service) => existsSync(join(root, 'apps', service)));
}

/** Old services with new libraries would be neither version. */
async function requireOwnLibraries(root: string, service: Service): Promise<void> {
  const library = await realpath(
    createRequire(join(root, 'apps', service, 'src/main.ts')).resolve('@scheduling/runtime'),
  );
  if (!library.startsWith(join(root, 'libs'))) throw new Error(`${service} of ${root} would run with ${library}`);
}
