import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repositoryRoot, services, type StackInfo } from '@scheduling/stack';

/** What V8 writes when a process with `--cpu-prof` ends; times in microseconds of the system's monotonic clock. */
interface CpuProfile {
  nodes: CallNode[];
  startTime: number;
  samples: number[];
  timeDeltas: number[];
}

interface CallNode {
  id: number;
  callFrame: { functionName: string; url: string };
  children?: number[];
}

/** Smaller shares are not listed. */
const smallestShare = 0.03;
/** Services that did less are left out, in microseconds. */
const leastTime = 1_000_000;

/** Collects where the time of the services of a stack goes. */
export interface Profiler extends AsyncDisposable {
  /** Of the stack: each of its processes writes a profile when it ends. */
  environment: NodeJS.ProcessEnv;
  /** Only what the processes do from now on counts. */
  begin(pids: StackInfo['pids']): void;
  /** Tables by package; call it when the processes have ended. */
  report(): Promise<string>;
}

/** Disposal deletes the profiles. */
export async function createProfiler(): Promise<Profiler> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-profile-'));
  let pids: StackInfo['pids'] | undefined;
  let since = 0;
  return {
    environment: {
      NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --cpu-prof --cpu-prof-dir=${JSON.stringify(folder)}`,
    },
    begin: (ofStack) => {
      pids = ofStack;
      since = Number(process.hrtime.bigint() / 1_000n);
    },
    report: async () => {
      const files = await readdir(folder);
      const tables = services.map(async (service) => {
        const file = files.find((name) => name.split('.').includes(String(pids?.[service])));
        return file === undefined
          ? []
          : toTable(service, timesOf(JSON.parse(await readFile(join(folder, file), 'utf8')) as CpuProfile, since));
      });
      return (await Promise.all(tables)).flat().join('\n');
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

function toTable(service: string, times: Map<string, number>): string[] {
  const total = times.values().reduce((sum, each) => sum + each, 0);
  if (total < leastTime) return [];
  const shares = [...times]
    .map(([place, time]) => ({ place, share: time / total }))
    .filter(({ share }) => share >= smallestShare);
  const lines = shares
    .toSorted((one, other) => other.share - one.share)
    .map(({ place, share }) => `| ${place} | ${(100 * share).toFixed(0)} % |`);
  return [`| ${service} | share of its processor time |`, '|---|---|', ...lines, ''];
}

/** By place, in microseconds; without the time in which the process was idle. */
function timesOf({ nodes, startTime, samples, timeDeltas }: CpuProfile, since: number): Map<string, number> {
  const places = placesOf(nodes);
  const times = new Map<string, number>();
  let at = startTime;
  for (const [index, id] of samples.entries()) {
    at += timeDeltas[index]!;
    const place = places.get(id)!;
    if (at >= since && place !== '(idle)') times.set(place, (times.get(place) ?? 0) + (timeDeltas[index + 1] ?? 0));
  }
  return times;
}

/** By id. A function of V8 or Node that is not JavaScript belongs to its caller. */
function placesOf(nodes: CallNode[]): Map<number, string> {
  const places = new Map<number, string>();
  // A node comes before its children.
  for (const { id, callFrame, children = [] } of nodes) {
    const place = placeOf(callFrame) ?? places.get(id) ?? callFrame.functionName;
    for (const child of children) places.set(child, place);
    places.set(id, place);
  }
  return places;
}

/** The package, the workspace, or the module of Node. */
function placeOf({ functionName, url }: CallNode['callFrame']): string | undefined {
  // Such as `(garbage collector)`.
  if (url === '') return functionName.startsWith('(') ? functionName : undefined;
  if (url.startsWith('node:')) return `node:${url.split(/[:/]/).find((part) => !['node', 'internal'].includes(part))}`;
  const path = url.slice(url.indexOf(repositoryRoot) + repositoryRoot.length + 1);
  return /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path.split('/').slice(0, 2).join('/');
}
