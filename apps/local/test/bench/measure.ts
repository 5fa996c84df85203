import { setTimeout as delay } from 'node:timers/promises';
import { Agent } from 'undici';
import type { Case, FreshCase, ListCase, LoadCase } from './cases.ts';
import { checkEffect, countRows } from './check-effect.ts';
import type { LimitDatabases } from './limit-databases.ts';
import { transactionsOf } from './limit-statements.ts';
import { measureLimit, measureQuery } from './limits.ts';
import { closedLoop, type LoadResult, openLoop, type Source } from './load.ts';
import { combine, type PerProcess, readCpu, watchMemory } from './processes.ts';
import type { Latency, Row } from './report.ts';
import { requestsOf } from './requests.ts';
import { seedCalendar, seedCustomers, type SeedSize } from './seed.ts';
import { settle, startTarget, type Target } from './target.ts';
import { createTenant, type Tenant } from './tenant.ts';

export interface Bench {
  /** This version, and the one that it is compared with. */
  targets: Target[];
  limits: LimitDatabases;
  /** Of each load. */
  seconds: number;
  signal: AbortSignal;
  note: (text: string) => void;
}

const connections = 64;
const warmUpSeconds = 2;
const evenShare = 0.4;
const restSeconds = 30;
/** The first minutes last so many times as long as another load. */
const minutesFactor = 15;

/** Measures one case on each stack, one after the other. */
export async function measure(bench: Bench, each: Case): Promise<Row[]> {
  switch (each.kind) {
    case 'rest':
      return forEachTarget(bench, (target) => measureRest(target, each.name));
    case 'list':
      return measureList(bench, each);
    case 'load':
      return measureLoad(bench, each);
    case 'fresh':
      return forEachTarget(bench, (target) => measureFresh(bench, target, each));
  }
}

async function forEachTarget(bench: Bench, use: (target: Target) => Promise<Row>): Promise<Row[]> {
  const rows: Row[] = [];
  for (const target of bench.targets) rows.push(await use(target));
  return rows;
}

async function measureRest(target: Target, name: string): Promise<Row> {
  await settle(target);
  const watch = await startWatch(target);
  await delay(restSeconds * 1_000);
  const { cpu, ...memory } = await watch.stop();
  return { case: name, version: target.version.name, cpu: mapEach(cpu, (ms) => ms / (restSeconds * 10)), cpuUnit: '%', ...memory };
}

async function measureLoad(bench: Bench, each: LoadCase): Promise<Row[]> {
  const { limits, seconds, signal } = bench;
  const tenants = await prepare(bench, each.seed);
  const limit = (half: number): Promise<number> =>
    measureLimit(limits, each.limit(transactionsOf(tenants[0]!)), { seconds: seconds / 2, firstNumber: half * numbersPerHalf, signal });
  const before = await limit(0);
  const rows: Row[] = [];
  for (const [index, target] of bench.targets.entries()) rows.push(await loadTarget(bench, target, tenants[index]!, each));
  const perSecond = (before + (await limit(1))) / 2;
  return rows.map((row) => ({ ...row, limit: { value: perSecond, unit: '/s' }, ratio: row.perSecond! / perSecond, note: each.note }));
}

/** More than a client completes; the participations that are moved are enough for two halves. */
const numbersPerHalf = 30_000;

async function loadTarget(bench: Bench, target: Target, tenant: Tenant, each: LoadCase): Promise<Row> {
  const { seconds } = bench;
  const requests = requestsOf(tenant);
  let number = 0;
  const source: Source = { url: target.info.gateway, key: tenant.key, next: () => each.request(requests, number++) };
  const before = await countRows(target, tenant);
  const warmUp = await closedLoop(source, connections, warmUpSeconds);
  await settle(target);

  const watch = await startWatch(target);
  const most = await closedLoop(source, connections, seconds);
  await settle(target);
  const cpu = await watch.readCpu();
  const even = await openLoop(source, evenShare * most.perSecond, seconds);
  await settle(target);
  const memory = await watch.stop();
  await checkEffect(target, tenant, before, [warmUp, most, even]);
  return {
    case: each.name,
    version: target.version.name,
    perSecond: most.perSecond,
    atMaximum: latencyOf(most),
    atPart: latencyOf(even),
    ...memory,
    cpu: mapEach(cpu, (ms) => ms / most.answers),
    cpuUnit: 'ms',
  };
}

async function measureList(bench: Bench, each: ListCase): Promise<Row[]> {
  const { limits, signal } = bench;
  const tenants = await prepare(bench, each.seed);
  const limit = async (): Promise<number[]> => {
    const times: number[] = [];
    for (let run = 0; run < each.repetitions; run += 1) times.push(await measureQuery(limits, each.limit(transactionsOf(tenants[0]!)), signal));
    return times;
  };
  const before = await limit();
  const rows: Row[] = [];
  for (const [index, target] of bench.targets.entries()) rows.push(await readLists(target, tenants[index]!, each));
  const limitMs = median([...before, ...(await limit())]);
  return rows.map((row) => ({ ...row, limit: { value: limitMs, unit: 'ms' }, ratio: row.totalMs! / limitMs, note: each.note }));
}

async function readLists(target: Target, tenant: Tenant, each: ListCase): Promise<Row> {
  const request = each.request(requestsOf(tenant));
  await using agent = Object.assign(new Agent(), { [Symbol.asyncDispose]: () => agent.close() });
  await readList(agent, target, tenant, request);
  const watch = await startWatch(target);
  const reads = [];
  for (let run = 0; run < each.repetitions; run += 1) reads.push(await readList(agent, target, tenant, request));
  const { cpu, ...memory } = await watch.stop();
  return {
    case: each.name,
    version: target.version.name,
    firstByteMs: median(reads.map(({ firstByteMs }) => firstByteMs)),
    totalMs: median(reads.map(({ totalMs }) => totalMs)),
    ...memory,
    cpu: mapEach(cpu, (ms) => ms / each.repetitions),
    cpuUnit: 'ms',
  };
}

async function readList(agent: Agent, { info }: Target, { key }: Tenant, { path, check }: ReturnType<ListCase['request']>) {
  const startedMs = performance.now();
  const response = await agent.request({ origin: info.gateway, method: 'GET', path, headers: { 'x-service-client-id': key } });
  const chunks: Buffer[] = [];
  let firstByteMs = 0;
  for await (const chunk of response.body) {
    if (chunks.length === 0) firstByteMs = performance.now() - startedMs;
    chunks.push(chunk as Buffer);
  }
  const totalMs = performance.now() - startedMs;
  check(response.statusCode, Buffer.concat(chunks).toString());
  return { firstByteMs, totalMs };
}

/** On a stack that has just been started, while the others rest. */
async function measureFresh(bench: Bench, { version }: Target, each: FreshCase): Promise<Row> {
  await using target = await startTarget(version, bench.signal);
  const tenant = await createTenant(target.info);
  await seedCalendar(target.superuserUrl('calendar'), tenant, each.seed);
  const requests = requestsOf(tenant);
  const before = await countRows(target, tenant);
  const watch = await startWatch(target);
  const source = { url: target.info.gateway, key: tenant.key, next: () => each.request(requests) };
  const parts: LoadResult[] = [];
  for (let part = 0; part < 4; part += 1) parts.push(await closedLoop(source, connections, (minutesFactor * bench.seconds) / 4));
  await settle(target);
  const { cpu, ...memory } = await watch.stop();
  await checkEffect(target, tenant, before, parts);
  const answers = parts.reduce((sum, part) => sum + part.answers, 0);
  const share = parts[0]!.perSecond / parts.at(-1)!.perSecond;
  return {
    case: each.name,
    version: version.name,
    perSecond: parts.reduce((sum, part) => sum + part.perSecond, 0) / parts.length,
    atMaximum: latencyOf(parts.at(-1)!),
    ...memory,
    cpu: mapEach(cpu, (ms) => ms / answers),
    cpuUnit: 'ms',
    note: `${each.note}; rate of the first quarter to that of the last: ${share.toFixed(2)}; latencies of the last`,
  };
}

/** Creates and fills a tenant in each stack, and the same rows as in the first one for its limit. */
async function prepare({ targets, limits, note, signal }: Bench, size: SeedSize): Promise<Tenant[]> {
  note('seeding');
  const tenants: Tenant[] = [];
  for (const [index, target] of targets.entries()) {
    const tenant = await createTenant(target.info);
    const urls = { calendar: [target.superuserUrl('calendar')], customer: [target.superuserUrl('customer')] };
    if (index === 0) for (const service of ['calendar', 'customer'] as const) urls[service].push(limits.url(service));
    for (const url of urls.calendar) await seedCalendar(url, tenant, size);
    for (const url of urls.customer) await seedCustomers(url, tenant);
    signal.throwIfAborted();
    tenants.push(tenant);
    await settle(target);
  }
  note('measuring');
  return tenants;
}

/** Follows the processes of a stack until `stop`. */
async function startWatch({ info: { pids }, idleMemory }: Target) {
  const stopMemory = watchMemory(pids);
  const before = await readCpu(pids);
  const readUsed = async (): Promise<PerProcess> => combine(await readCpu(pids), before, (now, then) => now - then);
  return {
    readCpu: readUsed,
    stop: async () => {
      const [cpu, memory] = [await readUsed(), await stopMemory()];
      return { cpu, memory, growth: combine(memory, idleMemory, (peak, idle) => peak - idle) };
    },
  };
}

function mapEach(values: PerProcess, change: (value: number) => number): PerProcess {
  return combine(values, values, change);
}

function latencyOf({ perSecond, latencies }: LoadResult): Latency {
  return { perSecond, p50: latencies.percentile(50) / 1_000, p99: latencies.percentile(99) / 1_000 };
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
