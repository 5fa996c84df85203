import { waitUntil } from '@scheduling/embedded';
import { execFile } from 'node:child_process';
import { cp, mkdir, rename, rm, statfs } from 'node:fs/promises';
import { promisify } from 'node:util';

/** A small file system in memory for the data of one server, or only a folder, if this user may not mount one. */
export interface Disk extends AsyncDisposable {
  path: string;
  /** Leaves no room. False if this is only a folder. */
  fill(): Promise<boolean>;
  /** Gives the room back. */
  free(): Promise<void>;
  /** What is on it stays in the folder when it is unmounted. */
  keep(): void;
}

const run = promisify(execFile);
const fillMs = 5_000;

/** @param mebibytes only a limit: what is not used takes no memory */
export async function openDisk(path: string, mebibytes: number): Promise<Disk> {
  await mkdir(path);
  const size = mebibytes * 1_048_576;
  const isMounted = await run('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=0755`, 'tmpfs', path]).then(
    () => true,
    () => false,
  );
  const resize = (bytes: number) => run('mount', ['-o', `remount,size=${bytes}`, path]);
  let isKept = false;
  return {
    path,
    fill: async () => {
      if (!isMounted) return false;
      // What is written after the size was read makes it too small.
      await waitUntil(async () => resize(await usedBytes(path)), { what: 'a full disk', timeoutMs: fillMs });
      return true;
    },
    free: async () => void (await resize(size)),
    keep: () => {
      isKept = true;
    },
    [Symbol.asyncDispose]: async () => {
      if (!isMounted) return;
      const copy = `${path}.kept`;
      if (isKept) await cp(path, copy, { recursive: true });
      await run('umount', [path]);
      if (!isKept) return;
      await rm(path, { recursive: true });
      await rename(copy, path);
    },
  };
}

async function usedBytes(path: string): Promise<number> {
  const { blocks, bfree, bsize } = await statfs(path);
  return (blocks - bfree) * bsize;
}
