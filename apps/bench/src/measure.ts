import { setTimeout as delay } from 'node:timers/promises';
import type { Case } from './cases.ts';
import { measureBackground } from './measure-background.ts';
import { measureFresh } from './measure-fresh.ts';
import { measureLists } from './measure-lists.ts';
import { measureLoad } from './measure-load.ts';
import type { Bench } from './prepare.ts';
import { mapEach } from './processes.ts';
import type { Row } from './report.ts';
import { settle, type Target } from './target.ts';
import { startWatch } from './watch.ts';

const restSeconds = 30;

/** Measures one case on each stack. Only one of them is loaded at a time. */
export async function measure(bench: Bench, each: Case): Promise<Row[]> {
  switch (each.kind) {
    case 'rest':
      return forEachTarget(bench, (target) => measureRest(target, each.name));
    case 'list':
      return measureLists(bench, each);
    case 'load':
      return measureLoad(bench, each);
    case 'fresh':
      return forEachTarget(bench, (target) => measureFresh(bench, target, each));
    case 'background':
      return forEachTarget(bench, (target) => measureBackground(bench, target, each));
  }
}

async function forEachTarget({ targets }: Bench, use: (target: Target) => Promise<Row>): Promise<Row[]> {
  const rows: Row[] = [];
  for (const target of targets) rows.push(await use(target));
  return rows;
}

async function measureRest(target: Target, name: string): Promise<Row> {
  await settle(target);
  const stopWatch = await startWatch(target);
  await delay(restSeconds * 1_000);
  const { cpu, ...memory } = await stopWatch();
  return {
    case: name,
    version: target.version.name,
    cpu: mapEach(cpu, (ms) => ms / (restSeconds * 10)),
    cpuUnit: '%',
    ...memory,
  };
}
