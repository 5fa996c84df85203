import { whilePaused } from '@scheduling/testing/while-paused';
import type { BackgroundCase } from './cases.ts';
import { checkEffect, countRows } from './check-effect.ts';
import { closedLoop, evenShare, type LoadResult, mergeLoads, openLoop } from './load.ts';
import { type Bench, createSource, createTenants, defaultConnections } from './prepare.ts';
import { mapEach } from './processes.ts';
import { latencyOf, remarks, type Row } from './report.ts';
import { settle, settleFeed, type Target } from './target.ts';
import { mergeUsages, startWatch, type Usage } from './watch.ts';

/** Until the code is compiled, and the tables have the size at which their statistics no longer change soon. */
const warmUpSeconds = 10;
/** Each part with the service has a neighbour without it: what else the machine does changes from minute to minute. */
const pairs = 5;

interface Part {
  load: LoadResult;
  usage: Usage;
}

/**
 * An even load of 40 % of the maximum, in parts with and without the service. The ratios are those of the median pair.
 */
export async function measureBackground(bench: Bench, target: Target, each: BackgroundCase): Promise<Row> {
  const tenants = await createTenants(target, each);
  await settle(target);
  const before = await countRows(target, tenants);
  const source = createSource(target, tenants, each.request);
  const warmUp = await closedLoop(source, defaultConnections, warmUpSeconds);
  await settleFeed(target);
  const rate = evenShare * warmUp.perSecond;
  const pid = target.info.pids[each.service];
  if (pid === null) throw new Error(`${each.service} is no process of this stack`);

  const measurePart = async (): Promise<Part> => {
    const stop = await startWatch(target);
    const load = await openLoop(source, rate, bench.seconds / 2);
    await settle(target);
    return { load, usage: await stop() };
  };
  const measures = {
    with: measurePart,
    without: () => whilePaused([pid], measurePart),
  };
  const parts: { with: Part; without: Part }[] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    const measured: Partial<Record<keyof typeof measures, Part>> = {};
    for (const name of pair % 2 === 0 ? (['with', 'without'] as const) : (['without', 'with'] as const)) {
      bench.signal.throwIfAborted();
      measured[name] = await measures[name]();
      await settleFeed(target);
    }
    parts.push(measured as Required<typeof measured>);
  }
  const loads = parts.flatMap((pair) => [pair.with.load, pair.without.load]);
  await checkEffect(target, tenants, before, [warmUp, ...loads]);

  const [withIt, without] = (['with', 'without'] as const).map((name) =>
    mergeLoads(parts.map((pair) => pair[name].load)),
  );
  const { cpu, ...memory } = mergeUsages(parts.map((pair) => pair.with.usage));
  const { p50, p99 } = latencyOf(without!);
  const ratios = {
    p99: medianRatio(parts, ({ load }) => latencyOf(load).p99),
    postgres: medianRatio(parts, ({ load, usage }) => (usage.cpu.postgres ?? Number.NaN) / load.answers),
  };
  return {
    case: each.name,
    version: target.version.name,
    perSecond: warmUp.perSecond,
    atPart: latencyOf(withIt!),
    cpu: mapEach(cpu, (ms) => ms / withIt!.answers),
    cpuUnit: 'ms',
    ...memory,
    background: ratios,
    note: remarks(
      `${each.note}; without ${each.service}: ${p50.toFixed(1)} / ${p99.toFixed(1)} at 40 %; with it, p99 is ${ratios.p99.toFixed(2)} times that and Postgres works ${ratios.postgres.toFixed(2)} times as long (medians of ${pairs} pairs)`,
      warmUp,
      ...loads,
    ),
  };
}

function medianRatio(parts: { with: Part; without: Part }[], valueOf: (part: Part) => number): number {
  const ratios = parts.map((pair) => valueOf(pair.with) / valueOf(pair.without));
  return ratios.toSorted((one, other) => one - other)[Math.floor(ratios.length / 2)]!;
}
