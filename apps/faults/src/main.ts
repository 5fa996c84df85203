import { repositoryRoot } from '@scheduling/stack';
import { InvalidArgumentError } from 'commander';
import { randomInt } from 'node:crypto';
import { createCommand, print, readNumber, untilInterrupted } from './command.ts';
import type { Fault } from './faults/fault.ts';
import { faults } from './faults/plan.ts';
import { describeReports, describeViolations } from './report.ts';
import { type FaultReport, runFaults } from './run-faults.ts';

interface Options {
  seed?: readonly number[];
  minutes: number;
  only?: readonly Fault[];
}

const {
  seed: seeds = [randomInt(1_000_000)],
  minutes,
  only: kinds = faults,
} = createCommand(
  'faults',
  'Start a system, inject faults while clients use it, and check its invariants from outside.',
)
  .option(
    '--seed <number>',
    'determines the faults and what clients do; a range such as 1-30 makes one run per seed (default: random)',
    readSeeds,
  )
  .option('--minutes <number>', 'how long faults are injected, per seed', readNumber, 1)
  .option('--only <ids>', 'only these kinds of faults, such as F1,F5 (default: all)', readKinds)
  .addHelpText('after', `\nKinds of faults:\n${faults.map(({ id, name }) => `  ${id.padEnd(4)} ${name}`).join('\n')}`)
  .parse()
  .opts<Options>();

const reports = await untilInterrupted(async (signal) => {
  const made: FaultReport[] = [];
  for (const seed of seeds) {
    print(`seed ${seed}`);
    const report = await runFaults({ seed, minutes, kinds, root: repositoryRoot, onProgress: print, signal });
    print(`seed ${seed}: ${report.violations.length} violations`);
    for (const line of describeViolations(report)) print(line);
    print('');
    made.push(report);
  }
  return made;
});
for (const line of describeReports(reports, minutes)) print(line);
process.exitCode = reports.every(({ violations }) => violations.length === 0) ? 0 : 1;

/** One, or all of a range. */
function readSeeds(text: string): number[] {
  const [first, last = first, ...more] = text.split('-').map(readNumber) as [number, ...number[]];
  if (more.length > 0 || last < first) throw new InvalidArgumentError('must be a number or a range such as 1-30');
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

function readKinds(text: string): Fault[] {
  return text.split(',').map((id) => {
    const fault = faults.find((each) => each.id === id.toUpperCase());
    if (fault === undefined) throw new InvalidArgumentError(`unknown fault ${id}`);
    return fault;
  });
}
