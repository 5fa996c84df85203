import type { LoadCase } from './cases.ts';
import { checkEffect, countRows } from './check-effect.ts';
import { transactionsOf } from './limit-statements.ts';
import { measureLimit } from './limits.ts';
import { closedLoop, evenShare, type LoadResult, mergeLoads, openLoop, type Source } from './load.ts';
import { type Bench, createSource, defaultConnections, prepare } from './prepare.ts';
import { mapEach } from './processes.ts';
import { latencyOf, remarks, type Row } from './report.ts';
import { settle, type Target } from './target.ts';
import type { Tenant } from './tenant.ts';
import { mergeUsages, startWatch, type Usage } from './watch.ts';

const warmUpSeconds = 2;
/** More than a client of the limit completes in a half; the participations that it moves are enough for two. */
const numbersPerHalf = 30_000;

/** A stack with what was measured on it so far. */
interface Subject {
  target: Target;
  tenants: Tenant[];
  source: Source;
  before: Awaited<ReturnType<typeof countRows>>;
  warmUp: LoadResult;
  most: LoadResult[];
  /** Until all that follows from the answers was done, too, such as sending the mails. */
  secondsAtMost: number;
  usagesAtMost: Usage[];
  even: LoadResult[];
  usagesAtEven: Usage[];
}

/** Half of the limit, as many requests as possible, an even load, and the other half of the limit. */
export async function measureLoad(bench: Bench, each: LoadCase): Promise<Row[]> {
  const { limits, seconds, signal } = bench;
  const { connections = defaultConnections } = each;
  const { tenants, limitTenant } = await prepare(bench, each);
  const limit = (half: number): Promise<number> =>
    measureLimit(limits, each.limit(transactionsOf(limitTenant)), {
      seconds: seconds / 2,
      firstNumber: half * numbersPerHalf,
      signal,
    });
  const subjects: Subject[] = [];
  for (const [index, target] of bench.targets.entries()) subjects.push(await warmUp(target, tenants[index]!, each));

  const before = await limit(0);
  await takeTurns(subjects, seconds, async (subject, length) => {
    const { target, source, most, usagesAtMost } = subject;
    const beganMs = performance.now();
    usagesAtMost.push(await watched(target, async () => most.push(await closedLoop(source, connections, length))));
    subject.secondsAtMost += (performance.now() - beganMs) / 1_000;
  });
  // The same rate for all, so that their latencies can be compared.
  const rate = evenShare * Math.min(...subjects.map(({ most }) => mergeLoads(most).perSecond));
  await takeTurns(subjects, seconds, async ({ target, source, even, usagesAtEven }, length) => {
    usagesAtEven.push(await watched(target, async () => even.push(await openLoop(source, rate, length))));
  });
  const perSecond = (before + (await limit(1))) / 2;

  for (const subject of subjects)
    await checkEffect(subject.target, subject.tenants, subject.before, [
      subject.warmUp,
      ...subject.most,
      ...subject.even,
    ]);
  return subjects.map((subject) => toRow(each, subject, perSecond));
}

async function warmUp(
  target: Target,
  tenants: Tenant[],
  { request, connections = defaultConnections }: LoadCase,
): Promise<Subject> {
  const source = createSource(target, tenants, request);
  const before = await countRows(target, tenants);
  const result = await closedLoop(source, connections, warmUpSeconds);
  await settle(target);
  return {
    target,
    tenants,
    source,
    before,
    warmUp: result,
    most: [],
    secondsAtMost: 0,
    usagesAtMost: [],
    even: [],
    usagesAtEven: [],
  };
}

/**
 * One after the other; two of them twice, in reverse order the second time, so that neither is always the later one.
 */
async function takeTurns(
  subjects: Subject[],
  seconds: number,
  load: (subject: Subject, seconds: number) => Promise<void>,
): Promise<void> {
  const turns = subjects.length === 1 ? subjects : [...subjects, ...subjects.toReversed()];
  for (const subject of turns) await load(subject, (seconds * subjects.length) / turns.length);
}

/** Also what is done after the last answer, such as publishing the events. */
async function watched(target: Target, load: () => Promise<unknown>): Promise<Usage> {
  const stop = await startWatch(target);
  await load();
  await settle(target);
  return stop();
}

function toRow({ name, note }: LoadCase, subject: Subject, limit: number): Row {
  const [most, even] = [mergeLoads(subject.most), mergeLoads(subject.even)];
  const usageAtMost = mergeUsages(subject.usagesAtMost);
  const { memory, growth } = mergeUsages([usageAtMost, ...subject.usagesAtEven]);
  const mailsPerSecond = most.effect.mails / subject.secondsAtMost;
  return {
    case: name,
    version: subject.target.version.name,
    perSecond: most.perSecond,
    atMaximum: latencyOf(most),
    atPart: latencyOf(even),
    limit: { value: limit, unit: '/s' },
    ratio: most.perSecond / limit,
    cpu: mapEach(usageAtMost.cpu, (ms) => ms / most.answers),
    cpuUnit: 'ms',
    memory,
    growth,
    note: remarks(
      mailsPerSecond === 0 ? note : `${Math.round(mailsPerSecond)} mails per second until all were sent`,
      most,
      even,
    ),
  };
}
