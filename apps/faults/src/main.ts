import { repositoryRoot } from '@scheduling/stack';
import { InvalidArgumentError, Option } from 'commander';
import { randomInt } from 'node:crypto';
import { createCommand, print, readNumber, untilInterrupted } from './command.ts';
import type { Fault } from './faults/fault.ts';
import { faults } from './faults/plan.ts';
import { describeReports, describeViolations } from './report.ts';
import { type FaultReport, runFaults } from './run-faults.ts';
import { type ServerKind, serverKinds } from './system/servers.ts';

interface Options {
  seed?: readonly number[];
  minutes: number;
  servers: ServerKind;
  only?: readonly string[];
  repeat?: number;
}

const command = createCommand(
  'faults',
  'Start a system, inject faults while clients use it, and check its invariants from outside.',
)
  .option(
    '--seed <number>',
    'determines the faults and what clients do; a range such as 1-30 makes one run per seed (default: random)',
    readSeeds,
  )
  .option('--minutes <number>', 'how long faults are injected, per seed', readNumber, 1)
  .addOption(
    new Option('--servers <kind>', 'a single Postgres and a single NATS, or a pair and a cluster')
      .choices(serverKinds)
      .default('single'),
  )
  .option('--only <ids>', 'only these kinds of faults, such as F1,F5 (default: all)', (text) => text.split(','))
  .option('--repeat <number>', 'inject each kind so many times, one at a time, instead of for some minutes', readNumber)
  .addHelpText('after', serverKinds.map(describeKinds).join('\n'));
const { seed: seeds = [randomInt(1_000_000)], minutes, servers, only, repeat } = command.parse().opts<Options>();
const kinds = only === undefined ? faults[servers] : only.map(findKind);

const reports = await untilInterrupted(async (signal) => {
  const made: FaultReport[] = [];
  for (const seed of seeds) {
    print(`seed ${seed}`);
    const report = await runFaults({
      seed,
      minutes,
      servers,
      kinds,
      repeat,
      passingClients: 2,
      root: repositoryRoot,
      onProgress: print,
      signal,
    });
    print(`seed ${seed}: ${report.violations.length} violations`);
    for (const line of describeViolations(report)) print(line);
    print('');
    made.push(report);
  }
  return made;
});
for (const line of describeReports(
  reports,
  repeat === undefined ? `${minutes} min each` : `each fault ${repeat} times`,
))
  print(line);
// Once more: whoever sees only the end of the output has them.
for (const line of reports.flatMap(describeViolations)) print(line);
process.exitCode = reports.every(({ violations }) => violations.length === 0) ? 0 : 1;

/** One, or all of a range. */
function readSeeds(text: string): number[] {
  const [first, last = first, ...more] = text.split('-').map(readNumber) as [number, ...number[]];
  if (more.length > 0 || last < first) throw new InvalidArgumentError('must be a number or a range such as 1-30');
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

function describeKinds(kind: ServerKind): string {
  const lines = faults[kind].map(({ id, name }) => `  ${id.padEnd(4)} ${name}`);
  return `\nKinds of faults with ${kind} servers:\n${lines.join('\n')}`;
}

/** Ends the command if there is no such fault with these servers. */
function findKind(id: string): Fault {
  const fault = faults[servers].find((each) => each.id === id.toUpperCase());
  return fault ?? command.error(`error: unknown fault ${id} with ${servers} servers`);
}
