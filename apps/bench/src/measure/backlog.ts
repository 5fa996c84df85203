/**
 * Measures how much the event feed slows bookings down after an outage: webhook is paused while bookings are made, then
 * resumed, while bookings arrive at 20 % of the maximum. Prints for every few seconds how long they took, how many
 * events were recorded, and the memory of webhook.
 *
 *   npx node apps/bench/src/measure/backlog.ts [events]
 */
import { repositoryRoot } from '@scheduling/stack';
import { whilePaused } from '@scheduling/testing/while-paused';
import { query } from '@scheduling/test-stack/databases';
import { closedLoop, openLoop } from '../load.ts';
import { createSource, createTenants, defaultConnections } from '../prepare.ts';
import { readMemory } from '../processes.ts';
import { latencyOf } from '../report.ts';
import { settle, settleFeed, startTarget } from '../target.ts';

const backlog = Number(process.argv[2] ?? 100_000);
const share = 0.2;
const warmUpSeconds = 10;
const partSeconds = 5;
const partsBefore = 3;
const appointments = 5_000;

await using target = await startTarget(
  { name: 'this', root: repositoryRoot, environment: {} },
  new AbortController().signal,
);
const { info } = target;
const tenants = await createTenants(target, { tenants: 4, seed: { appointments } });
const source = createSource(target, tenants, (requests) => requests.book(appointments));
const { perSecond } = await closedLoop(source, defaultConnections, warmUpSeconds);
await settleFeed(target);
const rate = share * perSecond;
console.log(`${perSecond.toFixed(0)} bookings per second at most; from now on ${rate.toFixed(0)}`);
console.log('  p50 ms  p99 ms  recorded/s  memory MiB');
for (let part = 0; part < partsBefore; part += 1) await measurePart();
await settleFeed(target);

const before = await countRecorded();
const made = await whilePaused([info.pids.webhook!], async () => {
  let answers = 0;
  while (answers < backlog) answers += (await closedLoop(source, defaultConnections, partSeconds)).answers;
  await settle(target);
  return answers;
});
console.log(`${made} events wait`);
const startedAt = performance.now();
let events = made;
// Those of the last second may be on their way.
do events += await measurePart();
while ((await countRecorded()) - before < events - rate);
console.log(`they and the new ones were recorded after ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);

/** How many bookings were made. */
async function measurePart(): Promise<number> {
  const recordedBefore = await countRecorded();
  const load = await openLoop(source, rate, partSeconds);
  const { p50, p99 } = latencyOf(load);
  const recorded = ((await countRecorded()) - recordedBefore) / partSeconds;
  const { webhook } = await readMemory(info.pids);
  const columns = [p50.toFixed(1).padStart(8), p99.toFixed(1).padStart(6), recorded.toFixed(0).padStart(10)];
  console.log(`${columns.join('  ')}  ${webhook?.toFixed(0).padStart(10)}`);
  return load.answers;
}

async function countRecorded(): Promise<number> {
  const [row] = await query<{ count: string }>(
    'webhook',
    'SELECT coalesce(sum(last_sequence), 0) AS count FROM event_counter',
    [],
    info,
  );
  return Number(row!.count);
}
