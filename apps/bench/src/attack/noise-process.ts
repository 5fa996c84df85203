// A process of its own, so that making the noise takes no time of the process that measures.
import { makeNoise, type Target } from './noise.ts';
import { noises } from './noises.ts';

const [name, target] = process.argv.slice(2) as [string, string];
const ended = new AbortController();
process.once('SIGTERM', () => ended.abort());
const statuses = await makeNoise(
  noises.find((noise) => noise.name === name)!,
  JSON.parse(target) as Target,
  ended.signal,
);
process.stdout.write(JSON.stringify(statuses), () => process.exit());
