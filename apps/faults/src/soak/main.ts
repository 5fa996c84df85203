import { repositoryRoot } from '@scheduling/stack';
import { createCommand, print, readNumber, untilInterrupted } from '../command.ts';
import { describeSoak, findFaults } from './report.ts';
import { runSoak } from './run-soak.ts';

interface Options {
  minutes: number;
  load: number;
  restart: boolean;
}

const options = createCommand(
  'soak',
  'Start a system, send it a constant load for a long time, and report failed requests and the resources of each process.',
)
  .option('--minutes <number>', 'duration', readNumber, 30)
  .option('--load <percent>', 'load in percent of the capacity, which is measured first', readNumber, 40)
  .option('--restart', 'meanwhile, repeatedly replace all service processes, one at a time', false)
  .parse()
  .opts<Options>();

const report = await untilInterrupted((signal) =>
  runSoak({ ...options, root: repositoryRoot, onProgress: print, signal }),
);
for (const line of ['', ...describeSoak(report)]) print(line);
process.exitCode = findFaults(report).length === 0 ? 0 : 1;
