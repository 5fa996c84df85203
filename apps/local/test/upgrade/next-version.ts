import { repositoryRoot } from '@scheduling/stack';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A copy of the customer service, in which the database is changed as `docs/recipes.md` says. */
export interface NextVersion extends AsyncDisposable {
  /** The folder that contains `apps` and `libs`. */
  root: string;
  /** Changes the body of `create_customer`, or makes it as it was. */
  changeFunction(changed: boolean): Promise<void>;
  setRelease(release: string): Promise<void>;
}

/** What the body of the changed function contains. */
export const changeMark = '-- Changed by the next version.';

const migration = `import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql\`ALTER TABLE customer ADD COLUMN nickname text\`.execute(db);
}
`;

const addedFunction = `
CREATE OR REPLACE FUNCTION count_nicknames(request jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('customers', count(*), 'nicknames', count(nickname)) FROM customer
$$;
`;

/** With a migration and a function more, and with a changed one. */
export async function createNextVersion(): Promise<NextVersion> {
  const root = await copyCustomer();
  const source = join(root, 'apps/customer/src');
  const changedFile = join(source, 'customer/create-customer.sql');
  const original = await readFile(changedFile, 'utf8');
  const table = join(source, 'db/migrate.ts');
  const name = `${await nextNumber(table)}-nicknames`;
  await mkdir(join(source, 'db/migrations'), { recursive: true });
  await writeFile(join(source, 'db/migrations', `${name}.ts`), migration);
  await writeFile(join(source, 'customer/count-nicknames.sql'), addedFunction);
  await edit(table, /^/, `import * as nicknames from './migrations/${name}.ts';\n`);
  await edit(table, /(?<=\nconst migrations = \{\n[^]*?\n)(?=\};\n)/, `  '${name}': nicknames,\n`);
  await edit(table, /(?<=sqlFiles\(import\.meta\.url, \[)/, `'../customer/count-nicknames.sql', `);
  const version: NextVersion = {
    root,
    changeFunction: async (changed) => {
      await writeFile(changedFile, original);
      if (changed) await edit(changedFile, /(?<=^BEGIN$)/m, `\n  ${changeMark}`);
    },
    setRelease: (release) => edit(join(root, 'libs/postgres/package.json'), /(?<="version": ")[^"]*/, release),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
  await version.changeFunction(true);
  return version;
}

/** The service and the libraries are copies; the packages are those of the working tree. */
async function copyCustomer(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'scheduling-next-version-'));
  const [packages, copied] = [join(repositoryRoot, 'node_modules'), join(root, 'node_modules')];
  await mkdir(copied);
  for (const name of await readdir(packages))
    if (name !== '@scheduling') await symlink(join(packages, name), join(copied, name));
  // Links to the workspaces, relative to their folder.
  for (const folder of ['node_modules/@scheduling', 'apps/customer', 'libs'])
    await cp(join(repositoryRoot, folder), join(root, folder), { recursive: true, verbatimSymlinks: true });
  return root;
}

/** One more than the highest number in the table; the names that begin with a date have none. */
async function nextNumber(table: string): Promise<string> {
  const numbers = (await readFile(table, 'utf8')).matchAll(/'(\d{4})-(?!\d\d-\d\d-)/g);
  return String(Math.max(0, ...[...numbers].map(([, number]) => Number(number))) + 1).padStart(4, '0');
}

async function edit(file: string, place: RegExp, text: string): Promise<void> {
  const before = await readFile(file, 'utf8');
  if (!place.test(before)) throw new Error(`${file} has nothing like ${place}`);
  await writeFile(file, before.replace(place, text));
}
