import { setTimeout as delay } from 'node:timers/promises';
import { Agent } from 'undici';
import type { Case, FreshCase, ListCase, LoadCase, RestCase } from './cases.ts';
import { checkEffect, countRows } from './check-effect.ts';
import type { LimitDatabases } from './limit-databases.ts';
import { transactionsOf } from './limit-statements.ts';
import { measureLimit, measureQuery } from './limits.ts';
import { closedLoop, type LoadResult, openLoop, type Source } from './load.ts';
import { combine, type PerProcess, readCpu, watchMemory } from './processes.ts';
import type { Latency, Row } from './report.ts';
import { type BenchRequest, requestsOf } from './requests.ts';
import { finishSeeding, seedCalendar, seedCustomers } from './seed.ts';
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
  /** Has this done before the command ends, whether what is measured by then is complete or not. */
  atEnd: (work: () => Promise<void>) => void;
}

const defaultConnections = 64;
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
  const { tenants, limitTenant } = await prepare(bench, each);
  const limit = (half: number): Promise<number> =>
    measureLimit(limits, each.limit(transactionsOf(limitTenant)), { seconds: seconds / 2, firstNumber: half * numbersPerHalf, signal });
  const before = await limit(0);
  const rows: Row[] = [];
  for (const [index, target] of bench.targets.entries()) rows.push(await loadTarget(bench, target, tenants[index]!, each));
  const perSecond = (before + (await limit(1))) / 2;
  return rows.map((row) => ({ ...row, limit: { value: perSecond, unit: '/s' }, ratio: row.perSecond! / perSecond }));
}

/** More than a client completes; the participations that are moved are enough for two halves. */
const numbersPerHalf = 30_000;

async function loadTarget(bench: Bench, target: Target, tenants: Tenant[], each: LoadCase): Promise<Row> {
  const { seconds } = bench;
  const { connections = defaultConnections } = each;
  const source = createSource(target, tenants, each.request);
  const before = await countRows(target, tenants);
  const warmUp = await closedLoop(source, connections, warmUpSeconds);
  await settle(target);

  const watch = await startWatch(target);
  const most = await closedLoop(source, connections, seconds);
  await settle(target);
  const cpu = await watch.readCpu();
  const even = await openLoop(source, evenShare * most.perSecond, seconds);
  await settle(target);
  const memory = await watch.stop();
  await checkEffect(target, tenants, before, [warmUp, most, even]);
  return {
    case: each.name,
    version: target.version.name,
    perSecond: most.perSecond,
    atMaximum: latencyOf(most),
    atPart: latencyOf(even),
    ...memory,
    cpu: mapEach(cpu, (ms) => ms / most.answers),
    cpuUnit: 'ms',
    note: remarks(each.note, [most, even]),
  };
}

async function measureList(bench: Bench, each: ListCase): Promise<Row[]> {
  const { limits, signal } = bench;
  const { tenants, limitTenant } = await prepare(bench, each);
  const limit = async (): Promise<number[]> => {
    const times: number[] = [];
    for (let run = 0; run < each.repetitions; run += 1) times.push(await measureQuery(limits, each.limit(transactionsOf(limitTenant)), signal));
    return times;
  };
  const before = await limit();
  const rows: Row[] = [];
  for (const [index, target] of bench.targets.entries()) rows.push(await readLists(target, tenants[index]![0]!, each));
  const limitMs = median([...before, ...(await limit())]);
  return rows.map((row) => ({ ...row, limit: { value: limitMs, unit: 'ms' }, ratio: row.totalMs! / limitMs, note: each.note }));
}

async function readLists(target: Target, tenant: Tenant, each: ListCase): Promise<Row> {
  const request = each.request(requestsOf(tenant));
  await using agent = Object.assign(new Agent(), { [Symbol.asyncDispose]: () => agent.close() });
  await readList(agent, target, request);
  const watch = await startWatch(target);
  const reads = [];
  for (let run = 0; run < each.repetitions; run += 1) reads.push(await readList(agent, target, request));
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

/** On a stack that has just been started, while the others rest. */
async function measureFresh(bench: Bench, { version }: Target, each: FreshCase): Promise<Row> {
  const starting = startTarget(version, bench.signal);
  bench.atEnd(() => starting.then((target) => target[Symbol.asyncDispose](), () => {}));
  await using target = await starting;
  const tenants = await createTenants(target, each);
  const before = await countRows(target, tenants);
  const watch = await startWatch(target);
  const source = createSource(target, tenants, each.request);
  const parts: LoadResult[] = [];
  for (let part = 0; part < 4; part += 1) parts.push(await closedLoop(source, defaultConnections, (minutesFactor * bench.seconds) / 4));
  await settle(target);
  const { cpu, ...memory } = await watch.stop();
  await checkEffect(target, tenants, before, parts);
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
    note: remarks(`${each.note}; rate of the first quarter to that of the last: ${share.toFixed(2)}; latencies of the last`, parts),
  };
}

/** Creates and fills the tenants in each stack, and one in the databases of the limit that has as much as all of them. */
async function prepare({ targets, limits, note, signal }: Bench, each: LoadCase | ListCase): Promise<{ tenants: Tenant[][]; limitTenant: Tenant }> {
  note('seeding');
  const tenants: Tenant[][] = [];
  for (const target of targets) {
    tenants.push(await createTenants(target, each));
    await settle(target);
    signal.throwIfAborted();
  }
  const limitTenant = tenants[0]![0]!;
  await seedCalendar(limits.url('calendar'), limitTenant, each.limitSeed ?? each.seed);
  await seedCustomers(limits.url('customer'), limitTenant);
  for (const service of ['calendar', 'customer'] as const) await finishSeeding(limits.url(service));
  note('measuring');
  return { tenants, limitTenant };
}

async function createTenants({ info, superuserUrl }: Target, { tenants: count, seed }: Exclude<Case, RestCase>): Promise<Tenant[]> {
  const tenants: Tenant[] = [];
  for (let number = 0; number < count; number += 1) tenants.push(await createTenant(info));
  for (const tenant of tenants) {
    await seedCalendar(superuserUrl('calendar'), tenant, seed);
    await seedCustomers(superuserUrl('customer'), tenant);
  }
  for (const service of ['calendar', 'customer'] as const) await finishSeeding(superuserUrl(service));
  return tenants;
}

/** The tenants take turns; each counts its own requests. */
function createSource({ info }: Target, tenants: Tenant[], request: LoadCase['request']): Source {
  const requests = tenants.map(requestsOf);
  let number = 0;
  const next = (): BenchRequest => {
    const turn = number;
    number += 1;
    return request(requests[turn % tenants.length]!, Math.floor(turn / tenants.length));
  };
  return { url: info.gateway, next };
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

function remarks(note: string | undefined, loads: LoadResult[]): string {
  const refused = loads.reduce((sum, load) => sum + load.refused, 0);
  return [note, refused > 0 && `${refused} requests refused`].filter(Boolean).join('; ');
}

function latencyOf({ perSecond, latencies }: LoadResult): Latency {
  return { perSecond, p50: latencies.percentile(50) / 1_000, p99: latencies.percentile(99) / 1_000 };
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
