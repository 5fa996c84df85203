import { execFile } from 'node:child_process';
import { chown, lchown, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** How to run Postgres' programs: as this user, or as `nobody` for root, which Postgres refuses to run as. */
export interface PostgresAccount {
  /** The prefix of a program and its arguments. */
  prefix: string[];
  uid?: number;
  gid?: number;
  /** Changes the owner of a file or folder, recursively, to the account. */
  own(path: string): Promise<void>;
}

export async function findPostgresAccount(): Promise<PostgresAccount> {
  if (process.getuid?.() !== 0) return { prefix: [], own: async () => {} };
  const [uid, gid] = await Promise.all([idOfNobody('-u'), idOfNobody('-g')]);
  const own = (path: string): Promise<void> => ownTree(path, uid, gid);
  // `nobody` cannot enter a clone below /root (mode 700); this one capability lets Postgres reach its programs and its
  // data there. access(2) ignores the capabilities of users other than root, unless the last option disables that.
  const options = [
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    '--inh-caps=+dac_override',
    '--ambient-caps=+dac_override',
    '--securebits=+no_setuid_fixup',
  ];
  const canSetCapability = await run('setpriv', [...options, 'true']).then(
    () => true,
    () => false,
  );
  return canSetCapability ? { prefix: ['setpriv', ...options], own } : { prefix: [], uid, gid, own };
}

async function idOfNobody(flag: '-u' | '-g'): Promise<number> {
  return Number((await run('id', [flag, 'nobody'])).stdout);
}

async function ownTree(path: string, uid: number, gid: number): Promise<void> {
  const entry = await stat(path);
  if (entry.uid === uid) return;
  if (entry.isDirectory()) {
    for (const name of await readdir(path, { recursive: true })) await lchown(join(path, name), uid, gid);
  }
  // Last, so that an interrupted change is repeated.
  await chown(path, uid, gid);
}
