import { createCommand, print, readNumber, repositoryRoot, untilInterrupted } from '../command.ts';
import { describeSoak, findFaults } from './report.ts';
import { runSoak } from './run-soak.ts';

interface Options {
  minutes: number;
  load: number;
  restart: boolean;
}

const options = createCommand('soak', 'Start a system, use it evenly for a long time, and look at what it answers and what its processes need.')
  .option('--minutes <number>', 'how long', readNumber, 30)
  .option('--load <percent>', 'how much of what it can do, which is measured first', readNumber, 40)
  .option('--restart', 'replace the processes of all services meanwhile, one after the other, again and again', false)
  .parse()
  .opts<Options>();

const report = await untilInterrupted((signal) => runSoak({ ...options, root: repositoryRoot, onProgress: print, signal }));
for (const line of ['', ...describeSoak(report)]) print(line);
process.exitCode = findFaults(report).length === 0 ? 0 : 1;
