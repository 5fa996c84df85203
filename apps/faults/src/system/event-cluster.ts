import { type NatsServer, signalProcess, waitUntil } from '@scheduling/embedded';
import { streamName } from '@scheduling/events';
import { createManage, type Events } from './event-server.ts';
import pLimit from 'p-limit';

/** Servers that keep copies of the stream. */
export interface EventCluster extends Events {
  /**
   * Kills some of the servers, does something, and starts them again. Resolves when every server has the whole stream.
   * False if these servers are too old to keep the stream then.
   */
  whileDown(which: Victims, action: () => Promise<unknown>): Promise<boolean>;
}

/** The one that leads the stream, so many that the others are no majority, or all. */
export type Victims = 'leader' | 'majority' | 'all';

const wholeMs = 120_000;
/**
 * The version of production. 2.9 loses events that it has acknowledged when a majority is killed, and its copies differ
 * afterwards.
 */
const leastVersion = '2.12.0';

/** @param starts starts one server each, at the same address every time */
export async function createEventCluster(
  starts: readonly (() => Promise<NatsServer>)[],
  urlOfManager: (url: string) => string,
): Promise<EventCluster> {
  const servers = await Promise.all(starts.map((start) => start()));
  const { url } = servers[0]!;
  const running = new Set(servers.keys());
  // Two faults may want the same servers.
  const oneByOne = pLimit(1);
  const manage = createManage(() => [...running].map((index) => urlOfManager(servers[index]!.url)));
  const findLeader = (): Promise<number> =>
    waitUntil(
      async () => {
        const { cluster } = await manage(({ streams }) => streams.info(streamName));
        const index = servers.findIndex(({ name }) => name === cluster?.leader);
        return index >= 0 && index;
      },
      { what: 'a leader of the stream', timeoutMs: wholeMs },
    ).then(Number);
  const chooseVictims = async (which: Victims): Promise<number[]> => {
    if (which === 'all') return [...servers.keys()];
    const leader = await findLeader();
    return which === 'leader' ? [leader] : [leader, (leader + 1) % servers.length];
  };
  const keepsStream = async (which: Victims): Promise<boolean> =>
    which === 'leader' || (await manage(async (_, { info }) => isAtLeast(info!.version, leastVersion)));
  const isWhole = async (): Promise<boolean> => {
    const { cluster } = await manage(({ streams }) => streams.info(streamName));
    const followers = cluster?.replicas ?? [];
    return (
      cluster?.leader !== undefined &&
      followers.length === servers.length - 1 &&
      followers.every(({ current, offline }) => current && !(offline ?? false))
    );
  };
  return {
    url,
    get ports() {
      return [...running].map((index) => servers[index]!.port);
    },
    manage,
    whileDown: (which, action) =>
      oneByOne(async () => {
        if (!(await keepsStream(which))) return false;
        const victims = await chooseVictims(which);
        for (const index of victims) running.delete(index);
        await Promise.all(victims.map((index) => kill(servers[index]!)));
        await action();
        await Promise.all(
          victims.map(async (index) => {
            servers[index] = await starts[index]!();
            running.add(index);
          }),
        );
        await waitUntil(isWhole, { what: 'a copy of the stream on every server', timeoutMs: wholeMs });
        return true;
      }),
    [Symbol.asyncDispose]: async () => void (await Promise.all(servers.map((server) => server.stop()))),
  };
}

function isAtLeast(version: string, least: string): boolean {
  return version.localeCompare(least, 'en', { numeric: true }) >= 0;
}

async function kill({ pid, exited }: NatsServer): Promise<void> {
  signalProcess(pid, 'SIGKILL');
  await exited;
}
