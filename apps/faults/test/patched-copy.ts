import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repositoryRoot } from '@scheduling/stack';

/** What is wrong in a copy: in one file, a text that is there once is replaced by another. */
export interface Patch {
  file: string;
  replace: string;
  by: string;
}

export interface Copy extends AsyncDisposable {
  root: string;
}

/**
 * A copy of the services and libraries that differs from the working tree by these patches. Only packages are shared
 * with it.
 */
export async function createCopy(patches: readonly Patch[]): Promise<Copy> {
  const root = await mkdtemp(join(tmpdir(), 'scheduling-patched-'));
  const remove = (): Promise<void> => rm(root, { recursive: true, force: true });
  try {
    for (const folder of ['apps', 'libs']) await copyWorkspaces(root, folder);
    await linkPackages(root);
    for (const patch of patches) await apply(root, patch);
    return { root, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function apply(root: string, { file, replace, by }: Patch): Promise<void> {
  const text = await readFile(join(root, file), 'utf8');
  if (text.split(replace).length !== 2) throw new Error(`${file} does not have this text once: ${replace}`);
  await writeFile(
    join(root, file),
    text.replace(replace, () => by),
  );
}

/** With their own packages, if they have any that differ from those of the others. */
async function copyWorkspaces(root: string, folder: string): Promise<void> {
  for (const workspace of await readdir(join(repositoryRoot, folder))) {
    const from = join(repositoryRoot, folder, workspace);
    const to = join(root, folder, workspace);
    await cp(from, to, { recursive: true, filter: (path) => !path.startsWith(join(from, 'node_modules')) });
    const own = await readdir(join(from, 'node_modules')).catch(() => undefined);
    if (own !== undefined) await symlink(join(from, 'node_modules'), join(to, 'node_modules'));
  }
}

/** Every package is that of the working tree, except for the libraries of this repository. */
async function linkPackages(root: string): Promise<void> {
  const scope = '@scheduling';
  const to = join(root, 'node_modules');
  await mkdir(join(to, scope), { recursive: true });
  for (const name of await readdir(join(repositoryRoot, 'node_modules'))) {
    if (name !== scope) await symlink(join(repositoryRoot, 'node_modules', name), join(to, name));
  }
  for (const library of await readdir(join(root, 'libs')))
    await symlink(join(root, 'libs', library), join(to, scope, library));
}
