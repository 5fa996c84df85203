import { join } from 'node:path';
import { waitUntil } from '@scheduling/embedded';
import { heldBytes } from '@scheduling/testing/held-memory';
import { expect } from 'vitest';
import { query } from '@scheduling/test-stack/databases';
import type { TestStack } from '@scheduling/test-stack/start-test-stack';

const services = ['gateway', 'calendar'] as const;

export type Memory = Record<(typeof services)[number], number>;

/** The objects in a process and the buffers outside of its heap, without garbage. */
export async function heldMemory(stack: TestStack): Promise<Memory> {
  return { gateway: await heldBy(stack, 'gateway'), calendar: await heldBy(stack, 'calendar') };
}

const maxGrowthBytes = 24 * 1_048_576;

export function expectLittleGrowth(before: Memory, during: Memory): void {
  for (const service of services) {
    expect(during[service] - before[service], `${service}: ${JSON.stringify({ before, during })}`).toBeLessThan(
      maxGrowthBytes,
    );
  }
}

async function heldBy(stack: TestStack, service: keyof Memory): Promise<number> {
  const { pids } = await stack.currentInfo();
  return heldBytes({ pid: pids[service]!, logFile: join(stack.dataDir, 'logs', `${service}.log`) });
}

const restMs = 500;

/**
 * Returns when calendar has run no query of a list for half a second, with the time (as of `performance.now()`) when
 * the last one was seen.
 */
export async function waitUntilListsRest(stack: TestStack): Promise<number> {
  let lastSeen = performance.now();
  return waitUntil(
    async () => {
      const [row] = await query<{ running: number }>(
        'calendar',
        `SELECT count(*)::int AS running FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND query ~ 'FROM read_(appointments|timeslots)[(]'
            AND (state <> 'idle' OR state_change > clock_timestamp() - interval '100 ms')`,
        [],
        stack.info,
      );
      if (row!.running > 0) lastSeen = performance.now();
      return performance.now() - lastSeen > restMs && lastSeen;
    },
    { what: 'the queries of lists to stop', timeoutMs: 60_000, intervalMs: 20 },
  );
}
