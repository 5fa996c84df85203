import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { eventually, sumSamples } from '@scheduling/testing';
import { printedCommands } from '@scheduling/testing/printed-commands';
import { beforeAll, describe, expect, it } from 'vitest';
import { repositoryRoot } from '../kustomizations.ts';
import { query, runAdmin } from './composed-system.ts';
import { compose, composeCommand, docker, listContainers, type Project } from './docker.ts';
import { createSalon, type Salon } from './salon.ts';

const run = promisify(execFile);
const backingUp = printedCommands('back up');
const watching = printedCommands('watch backups');
const restoring = printedCommands('restore');
const starting = printedCommands('start after a restore');
const repeating = printedCommands('repeat after a restore');
const opening = printedCommands('open after a restore');

/**
 * Two disasters of one machine, and what docs/operations.md says to do then: after a mistake back to a time, and after
 * the loss of the disk to the end of the archive, from a backup of what the first restore has left.
 */
export function describeRestores(system: () => Project): void {
  describe('restored with the commands of docs/operations.md', () => {
    let project: Project;
    let salon: Salon;
    let revokedKey: string;
    let backup: string;

    beforeAll(async () => {
      project = system();
      salon = await createSalon(project);
    });

    it('to a time, knows what is older, and again forgets persons and keys', async () => {
      const SINCE = new Date().toISOString();
      for (const person of ['ada', 'grace']) await salon.book(person);
      revokedKey = await createKey(project, salon);
      backup = await asPrinted(project, backingUp);
      await salon.book('linus');
      await everyoneIsMailed(project, salon, ['ada', 'grace', 'linus']);
      const UNTIL = await query(project, 'SELECT clock_timestamp()');

      await salon.book('edsger');
      await salon.erase('ada');
      await revoke(project, revokedKey);
      const lost = await createSalon(project);
      await everyoneIsErased(project);
      expect(await salon.isKnown('ada')).toBe(false);
      await archiveEverything(project);

      expect(await asPrinted(project, restoring, { BACKUP: backup, UNTIL })).toContain(backup);
      await startMailServer(project);
      await asPrinted(project, starting);
      expect(await salon.bookings()).toEqual(['ada', 'grace', 'linus']);
      expect(await salon.isKnown('ada')).toBe(true);
      expect(await salon.statusWith(revokedKey)).toBe(200);
      expect(await lost.statusWith(lost.apiKey)).toBe(401);

      await asPrinted(project, repeating, { SINCE });
      await everyoneIsErased(project);
      backup = lastLine(await checkAndOpen(project));
      expect(await salon.bookings()).toEqual(['grace', 'linus']);
      expect(await salon.isKnown('ada')).toBe(false);
      await isRefused(salon, revokedKey);
      await everyoneIsMailed(project, salon, []);
      await eventually(() => asPrinted(project, watching));
    });

    it('to the end of the archive, has everything', async () => {
      const SINCE = new Date().toISOString();
      const key = await createKey(project, salon);
      await salon.book('edsger');
      const other = await createSalon(project);
      await other.book('barbara');
      await salon.erase('grace');
      await revoke(project, key);
      await everyoneIsErased(project);
      // She is told that she does not take part any more.
      await everyoneIsMailed(project, salon, ['edsger', 'grace']);
      await everyoneIsMailed(project, other, ['barbara']);
      await archiveEverything(project);
      await losePostgres(project);

      const isComplete = async (): Promise<void> => {
        expect(await salon.bookings()).toEqual(['edsger', 'linus']);
        expect(await other.bookings()).toEqual(['barbara']);
        for (const person of ['ada', 'grace']) expect(await salon.isKnown(person)).toBe(false);
        for (const each of [revokedKey, key]) await isRefused(salon, each);
      };
      await asPrinted(project, restoring, { BACKUP: backup });
      await startMailServer(project);
      await asPrinted(project, starting);
      await isComplete();
      await asPrinted(project, repeating, { SINCE });
      await everyoneIsErased(project);
      await checkAndOpen(project);
      await isComplete();
    });

    it('works as before, and has told nobody anything twice', async () => {
      await salon.book('alan');
      await everyoneIsMailed(project, salon, ['alan']);
      await eventually(async () => expect(await salon.told()).toEqual(['alan', 'edsger', 'linus']));
    });
  });
}

/** Runs commands of the documents, for the containers of this project and the folder of its backups. */
export async function asPrinted(
  project: Project,
  commands: string,
  variables: Record<string, string> = {},
): Promise<string> {
  const script = [
    'set -euo pipefail',
    '[ "$(id -u)" != 0 ] || sudo() { "$@"; }',
    `scheduling() { docker ${composeCommand(project).join(' ')} "$@"; }`,
    commands.replaceAll('/var/backups/scheduling', project.environment['BACKUPS']!),
  ];
  const env = { ...process.env, ...project.environment, USER: 'operator', ...variables };
  try {
    const { stdout } = await run('bash', ['-c', script.join('\n')], { cwd: repositoryRoot, env });
    return stdout.trim();
  } catch (error) {
    // The doctor writes there what is wrong.
    throw new Error((error as { stdout: string }).stdout, { cause: error });
  }
}

/** As operators do: the doctor first, until it finds no fault. */
function checkAndOpen(project: Project): Promise<string> {
  return eventually(() => asPrinted(project, opening));
}

function lastLine(text: string): string {
  return text.split('\n').at(-1)!;
}

async function createKey(project: Project, { crmId }: Salon): Promise<string> {
  return (await runAdmin(project, 'key', 'create', crmId)).trim();
}

function revoke(project: Project, key: string): Promise<string> {
  return runAdmin(project, 'key', 'revoke', key.slice(0, 12));
}

function isRefused(salon: Salon, key: string): Promise<void> {
  return eventually(async () => expect(await salon.statusWith(key)).toBe(401));
}

function everyoneIsErased(project: Project): Promise<void> {
  return eventually(async () => expect(await runAdmin(project, 'erasures')).not.toContain('open for'));
}

/** And no mail waits. */
function everyoneIsMailed(project: Project, salon: Salon, persons: string[]): Promise<void> {
  return eventually(async () => {
    expect(await salon.mailed()).toEqual(persons);
    expect(await query(project, `SELECT count(*) FROM mail WHERE state = 'pending'`, 'notification')).toBe('0');
  });
}

/** As happens every 5 minutes. */
async function archiveEverything(project: Project): Promise<void> {
  const startedAtMs = performance.now();
  const file = await query(project, 'SELECT pg_walfile_name(pg_switch_wal())');
  const isArchived = `SELECT last_archived_wal COLLATE "C" >= '${file}' AND failed_count = 0 FROM pg_stat_archiver`;
  await eventually(async () => expect(await query(project, isArchived)).toBe('t'));
  const scrape = `fetch('http://127.0.0.1:9090/metrics').then(async (response) => console.log(await response.text()))`;
  const metrics = await compose(project, 'exec', '-T', 'calendar', 'node', '--eval', scrape);
  const age = sumSamples(metrics, 'scheduling_postgres_archive_age_seconds');
  expect(age).toBeLessThan((performance.now() - startedAtMs) / 1_000);
}

/** With its disk. What is left are the backups, which belong to another user when they have been copied back. */
async function losePostgres(project: Project): Promise<void> {
  const [container = ''] = await listContainers(project, 'postgres');
  await docker(['rm', '--force', container]);
  await docker(['volume', 'rm', `${project.name}_postgres`]);
  const chown = ['--entrypoint', 'chown', 'postgres', '-R', 'root:root', '/backup'];
  await compose(project, 'run', '--rm', '--no-deps', '-T', ...chown);
}

/** In production it is not one of these containers. */
async function startMailServer(project: Project): Promise<void> {
  await compose(project, 'up', '--detach', '--wait', 'inbox');
}
