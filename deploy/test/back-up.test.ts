import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deployFolder } from './kustomizations.ts';

describe('back-up', () => {
  let folder: string;
  let base: string;
  let log: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'back-up-test-'));
    [base, log] = [join(folder, 'base'), join(folder, 'wal')];
    for (const each of [base, log, join(folder, 'bin')]) await mkdir(each);
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  /** A base backup that takes a while, in which Postgres archives something. */
  const run = async (): Promise<string> => {
    const script = `#!/bin/sh\nwhile [ "$1" != --pgdata ]; do shift; done\nsleep 0.1\necho > '${log}/meanwhile'\nsleep 0.1\nmkdir "$2"\necho > "$2/base.tar.gz"\n`;
    await writeFile(join(folder, 'bin/pg_basebackup'), script, { mode: 0o755 });
    const PATH = [join(folder, 'bin'), process.env['PATH']].join(delimiter);
    const env = { ...process.env, PATH, BACKUP_FOLDER: folder };
    return (await promisify(execFile)(join(deployFolder, 'compose/back-up.sh'), ['30'], { env })).stdout.trim();
  };
  const makeOld = async (path: string, days: number): Promise<void> => {
    const time = Date.now() / 1_000 - days * 86_400;
    await utimes(path, time, time);
  };

  it('keeps the log that was archived while the oldest backup was taken, and deletes what is older', async () => {
    await writeFile(join(log, 'before'), '');
    await makeOld(join(log, 'before'), 1);
    expect(await readdir(base)).toEqual([]);
    const name = await run();
    expect(await readdir(base)).toEqual([name]);
    expect(await readdir(log)).toEqual(['meanwhile']);
  });

  it('deletes old backups, the log that only they need, and what a crash has left', async () => {
    for (const [backup, days] of [
      ['20261001T040000Z', 31],
      ['20261002T040000Z', 29],
      ['20261003T040000Z.new', 28],
    ] as const) {
      await mkdir(join(base, backup));
      await makeOld(join(base, backup), days);
    }
    for (const days of [30, 28]) {
      await writeFile(join(log, `${days}`), '');
      await makeOld(join(log, `${days}`), days);
    }
    const name = await run();
    expect((await readdir(base)).toSorted()).toEqual(['20261002T040000Z', name]);
    expect((await readdir(log)).toSorted()).toEqual(['28', 'meanwhile']);
  });
});
