import { type FileHandle, mkdir, open, readFile, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

const rotateAtBytes = 10 * 1024 * 1024;

/**
 * Opens a log for appending. A large one is first renamed to `<name>.1`, so that a data folder used for months stays
 * small.
 */
export async function openLog(path: string): Promise<FileHandle> {
  await mkdir(dirname(path), { recursive: true });
  const size = await stat(path).then(
    (file) => file.size,
    () => 0,
  );
  if (size > rotateAtBytes) await rename(path, `${path}.1`);
  return open(path, 'a', 0o600);
}

/** The last lines of a log, for an error message. Empty if there is none. */
export async function lastLines(path: string, count = 30): Promise<string> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.trimEnd().split('\n').slice(-count).join('\n');
}
