/**
 * Measures how much the whole system does, how long it takes, what it costs, and how far that is from what Postgres
 * could do alone. Prints a table. Exits with 1 if an answer was wrong, if the databases do not contain exactly what was
 * answered, or with `--check` if a ratio is beyond its bound.
 *
 *   npm run bench -- --help
 */
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { createCommand, listenForInterruption } from '@scheduling/command-line';
import { repositoryRoot } from '@scheduling/stack';
import { bounds, compareWithBounds } from './bounds.ts';
import { type Case, cases } from './cases.ts';
import { createLimitDatabases } from './limit-databases.ts';
import { measure } from './measure.ts';
import type { Bench } from './prepare.ts';
import { createProfiler } from './profile.ts';
import { type Row, toMarkdown } from './report.ts';
import { startTarget, type Target, type Version } from './target.ts';

const help = `
Cases:
${cases.map(({ name }) => `  ${name}`).join('\n')}`;

const command = createCommand(
  'npm run bench --',
  'Measure throughput, latencies, processor time and memory of a stack with its own, empty data.',
)
  .argument('[case...]', 'parts of the names of the cases (default: all)')
  .option('--seconds <number>', 'length of each load', readSeconds, 8)
  .option('--json <file>', 'where the results are stored', join(repositoryRoot, 'bench.json'))
  .option(
    '--peer <folder or NAME=value>',
    'compare with another checkout, or with other settings; may be repeated',
    (value: string, all: string[] | undefined) => [...(all ?? []), value],
  )
  .option('--check', 'measure the cases with bounds for their ratios (bounds.ts), and fail beyond one')
  .option('--profile', 'also print where the processor time of each service went, by package')
  .addHelpText('after', help)
  .parse();
const options = command.opts<{ seconds: number; json: string; peer?: string[]; profile?: boolean; check?: boolean }>();
const { stop } = listenForInterruption();
const rows: Row[] = [];

try {
  await run(chooseCases(command.args));
} catch (error) {
  console.error(stop.aborted ? 'interrupted' : error);
  process.exitCode = 1;
}
// What was measured before a failure counts, too.
if (rows.length > 0) {
  console.log(toMarkdown(rows));
  await writeFile(options.json, `${JSON.stringify(rows, undefined, 2)}\n`);
}
if (options.check) {
  for (const { line, isKept } of compareWithBounds(rows)) {
    console.log(line);
    if (!isKept) process.exitCode = 1;
  }
}
// Requests of an interrupted load may still wait for answers.
process.exit();

function readSeconds(text: string): number {
  if (!(Number(text) >= 2)) throw new InvalidArgumentError('It must be a number, at least 2.');
  return Number(text);
}

function chooseCases(parts: string[]): Case[] {
  const chosen = cases.filter(
    ({ name }) =>
      (parts.length === 0 || parts.some((part) => name.includes(part))) &&
      (!options.check || bounds.some((bound) => bound.case === name)),
  );
  if (chosen.length === 0) command.error(`no case has a name with ${parts.join(' or ')}`);
  return chosen;
}

async function run(chosen: Case[]): Promise<void> {
  await using profiler = options.profile ? await createProfiler() : undefined;
  await using started = new AsyncDisposableStack();
  const targets: Target[] = [];
  for (const version of versions(options.peer ?? [], profiler?.environment)) {
    note(`starting ${version.name}`);
    targets.push(started.use(await startTarget(version, stop)));
  }
  profiler?.begin(targets[0]!.info.pids);
  const limits = await createLimitDatabases(targets[0]!.superuserUrl);
  for (const each of chosen) {
    note(each.name);
    const bench: Bench = {
      targets,
      limits,
      seconds: options.seconds,
      signal: stop,
      note: (text) => note(`  ${text}`),
      atEnd: (work) => started.defer(work),
    };
    stop.throwIfAborted();
    rows.push(...(await unlessInterrupted(measure(bench, each))).map((row) => compare(row, each, rows)));
  }
  if (profiler === undefined) return;
  await started.disposeAsync();
  console.log(await profiler.report());
}

/** The checkout of this file, and what it is compared with. */
function versions(peer: string[], profiling: NodeJS.ProcessEnv = {}): Version[] {
  const isSetting = (value: string): boolean => /^[A-Z][A-Z0-9_]*=/.test(value);
  const settings = peer.filter(isSetting);
  const folder = peer.find((value) => !isSetting(value));
  const own = { name: 'this', root: repositoryRoot, environment: profiling };
  if (peer.length === 0) return [own];
  const environment = Object.fromEntries(
    settings.map((setting) => [setting.slice(0, setting.indexOf('=')), setting.slice(setting.indexOf('=') + 1)]),
  );
  return [own, { name: peer.join(' '), root: folder === undefined ? repositoryRoot : resolve(folder), environment }];
}

/** With the ratio to the case that it is compared with, if that was measured. */
function compare(row: Row, each: Case, rows: Row[]): Row {
  const other =
    each.kind === 'load' &&
    rows.find(({ case: name, version }) => name === each.comparedWith && version === row.version);
  if (!other) return row;
  const ratio = `rate to that of "${other.case}": ${(row.perSecond! / other.perSecond!).toFixed(2)}`;
  return { ...row, note: [row.note, ratio].filter(Boolean).join('; ') };
}

/** What is measured when the interruption comes fails once its stack is stopped. */
function unlessInterrupted<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {});
  return Promise.race([
    work,
    new Promise<never>((_, reject) => {
      stop.addEventListener('abort', () => reject(stop.reason as Error), { once: true });
    }),
  ]);
}

function note(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
}
