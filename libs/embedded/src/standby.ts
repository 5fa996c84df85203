import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { clusterIn, passwordFileIn, type PostgresServer } from './postgres.ts';
import { withClient } from './with-client.ts';

/** Those of its own that each server makes; WAL is streamed from the primary. */
const leftOut = new Set(['postmaster.pid', 'postmaster.opts', 'postgresql.auto.conf', 'pg_wal', 'pg_replslot']);

/**
 * Copies the cluster of a running server to an empty `dataDir`, on which `startPostgres` then starts a standby of that
 * server. The primary has to keep the WAL of the meantime (`wal_keep_size`).
 *
 * @param name the `application_name` of the standby, which `synchronous_standby_names` of the primary can list
 */
export async function createStandby(primary: PostgresServer, { dataDir, name }: { dataDir: string; name: string }) {
  const [from, to] = [clusterIn(primary.dataDir), clusterIn(dataDir)];
  await mkdir(dataDir, { recursive: true });
  await copyFile(passwordFileIn(primary.dataDir), passwordFileIn(dataDir));
  const label = await withClient(primary.url('postgres'), async (client) => {
    // Both calls have to be made in the same session.
    await client.query(`SELECT pg_backup_start('standby', fast => true)`);
    await copyCluster(from, to);
    const { rows } = await client.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)',
    );
    return rows[0]!.labelfile;
  });
  await writeFile(join(to, 'backup_label'), label, { mode: 0o600 });
  await writeFile(join(to, 'standby.signal'), '', { mode: 0o600 });
  const { username, password, port } = new URL(primary.url('postgres'));
  await writeFile(
    join(to, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=127.0.0.1 port=${port} user=${username} password=${password} application_name=${name}'\n`,
    { mode: 0o600 },
  );
}

/** Passes over files that the server removes meanwhile. */
async function copyCluster(from: string, to: string): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    const path = relative(from, join(entry.parentPath, entry.name));
    const [top, ...below] = path.split(sep);
    const isLeftOut = leftOut.has(top!) && (below.length > 0 || !entry.isDirectory());
    if (isLeftOut) continue;
    if (entry.isDirectory()) await mkdir(join(to, path), { mode: 0o700 });
    else await copyFile(join(from, path), join(to, path)).catch(ignoreMissing);
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
