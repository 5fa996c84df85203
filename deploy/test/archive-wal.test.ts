import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deployFolder } from './kustomizations.ts';

describe('archive-wal', () => {
  const name = '000000010000000000000001';
  let folder: string;
  let segment: string;
  let archive: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'archive-wal-test-'));
    [segment, archive] = [join(folder, name), join(folder, 'archive')];
    await mkdir(archive);
    await writeFile(segment, 'content');
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const run = () =>
    promisify(execFile)(join(deployFolder, 'compose/archive-wal.sh'), [segment, name], {
      env: { ...process.env, WAL_ARCHIVE: archive },
    });
  const stored = async () =>
    Promise.all(
      (await readdir(archive)).map(async (file) => [file, await readFile(join(archive, file), 'utf8')] as const),
    );

  it('stores a segment, and succeeds again for the same one, as after a crash before Postgres noted it', async () => {
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      await run();
      expect(await stored()).toEqual([[name, 'content']]);
    }
  });

  it('replaces what a crash has left of an attempt', async () => {
    await writeFile(join(archive, `.${name}`), 'con');
    await run();
    expect(await stored()).toEqual([[name, 'content']]);
  });

  it('does not replace the segment of another server', async () => {
    await writeFile(join(archive, name), 'another');
    await expect(run()).rejects.toMatchObject({ code: 1 });
    expect(await stored()).toEqual([[name, 'another']]);
  });
});
