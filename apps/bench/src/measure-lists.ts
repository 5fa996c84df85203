import { Agent } from 'undici';
import type { ListCase } from './cases.ts';
import { transactionsOf } from './limit-statements.ts';
import { measureQuery } from './limits.ts';
import { type Bench, prepare } from './prepare.ts';
import { mapEach } from './processes.ts';
import type { Row } from './report.ts';
import { type BenchRequest, requestsOf } from './requests.ts';
import type { Target } from './target.ts';
import type { Tenant } from './tenant.ts';
import { startWatch } from './watch.ts';

/**
 * The same list several times, between the two halves of the limit. The versions take turns, so that what else the
 * machine does is the same for all of them.
 */
export async function measureLists(bench: Bench, each: ListCase): Promise<Row[]> {
  const { limits, signal } = bench;
  const { repetitions } = each;
  const { tenants, limitTenant } = await prepare(bench, each);
  const limit = async (): Promise<number[]> => {
    const times: number[] = [];
    for (let run = 0; run < repetitions; run += 1)
      times.push(await measureQuery(limits, each.limit(transactionsOf(limitTenant)), signal));
    return times;
  };
  const before = await limit();
  const readers = await Promise.all(
    bench.targets.map((target, index) => startReading(target, tenants[index]![0]!, each)),
  );
  for (let run = 0; run < repetitions; run += 1) {
    for (const reader of run % 2 === 0 ? readers : readers.toReversed()) await reader.read();
  }
  const rows = await Promise.all(readers.map((reader) => reader.stop()));
  const limitMs = median([...before, ...(await limit())]);
  return rows.map((row) => ({ ...row, limit: { value: limitMs, unit: 'ms' }, ratio: row.totalMs! / limitMs }));
}

interface Reader {
  read: () => Promise<void>;
  stop: () => Promise<Row>;
}

/** The first reading does not count. */
async function startReading(target: Target, tenant: Tenant, { name, note, request }: ListCase): Promise<Reader> {
  const list = request(requestsOf(tenant));
  const agent = new Agent();
  await readList(agent, target, list);
  const stopWatch = await startWatch(target);
  const reads: Awaited<ReturnType<typeof readList>>[] = [];
  return {
    read: async () => {
      reads.push(await readList(agent, target, list));
    },
    stop: async () => {
      const { cpu, ...memory } = await stopWatch();
      await agent.close();
      return {
        case: name,
        version: target.version.name,
        firstByteMs: median(reads.map(({ firstByteMs }) => firstByteMs)),
        totalMs: median(reads.map(({ totalMs }) => totalMs)),
        ...memory,
        cpu: mapEach(cpu, (ms) => ms / reads.length),
        cpuUnit: 'ms',
        note,
      };
    },
  };
}

async function readList(agent: Agent, { info }: Target, { path, headers, check }: BenchRequest) {
  const startedMs = performance.now();
  const response = await agent.request({ origin: info.gateway, method: 'GET', path, headers });
  const chunks: Buffer[] = [];
  let firstByteMs = 0;
  for await (const chunk of response.body) {
    if (chunks.length === 0) firstByteMs = performance.now() - startedMs;
    chunks.push(chunk as Buffer);
  }
  const totalMs = performance.now() - startedMs;
  if (!check(response.statusCode, Buffer.concat(chunks).toString())) throw new Error(`${path} was refused`);
  return { firstByteMs, totalMs };
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
