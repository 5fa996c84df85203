import type { FreshCase } from './cases.ts';
import { checkEffect, countRows } from './check-effect.ts';
import { closedLoop, type LoadResult, mergeLoads } from './load.ts';
import { type Bench, createSource, createTenants, defaultConnections } from './prepare.ts';
import { mapEach } from './processes.ts';
import { latencyOf, remarks, type Row } from './report.ts';
import { settle, startTarget, type Target } from './target.ts';
import { startWatch } from './watch.ts';

const quarters = 4;
/** How many times as long as another load each of them lasts: 30 seconds, unless the command has another length. */
const lengthFactor = 3.75;

/** On a stack that has just been started, while the others rest. */
export async function measureFresh(bench: Bench, { version }: Target, each: FreshCase): Promise<Row> {
  const starting = startTarget(version, bench.signal);
  bench.atEnd(() =>
    starting.then(
      (target) => target[Symbol.asyncDispose](),
      () => {},
    ),
  );
  await using target = await starting;
  const tenants = await createTenants(target, each);
  const before = await countRows(target, tenants);
  const source = createSource(target, tenants, each.request);
  const stopWatch = await startWatch(target);
  const loads: LoadResult[] = [];
  for (let quarter = 0; quarter < quarters; quarter += 1)
    loads.push(await closedLoop(source, defaultConnections, lengthFactor * bench.seconds));
  await settle(target);
  const { cpu, ...memory } = await stopWatch();
  await checkEffect(target, tenants, before, loads);
  const share = loads[0]!.perSecond / loads.at(-1)!.perSecond;
  const all = mergeLoads(loads);
  return {
    case: each.name,
    version: version.name,
    perSecond: all.perSecond,
    atMaximum: latencyOf(all),
    ...memory,
    cpu: mapEach(cpu, (ms) => ms / all.answers),
    cpuUnit: 'ms',
    note: remarks(`${each.note}; rate of the first quarter to that of the last: ${share.toFixed(2)}`, all),
  };
}
