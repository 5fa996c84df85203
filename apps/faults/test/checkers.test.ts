import { rm } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { faults } from '../src/faults/plan.ts';
import { runFaults } from '../src/run-faults.ts';
import type { ServerKind } from '../src/system/servers.ts';
import { type Defect, type Mutation, mutations } from './mutations.ts';
import { createCopy } from './patched-copy.ts';

const minutes = 0.5;
/**
 * So much has to happen that a defect has an effect. A machine that is busy needs more than a minute for it while
 * processes are killed.
 */
const minChanges = 800;
const seed = 7;

/** All, or two that follow from a number. */
const chosen = process.env['FAULT_CHECKS'] ?? 'all';

function chooseMutations(): [string, Mutation][] {
  const all = Object.entries(mutations);
  if (chosen === 'all') return all;
  return [0, 1].map((index) => all[(Number(chosen) + index) % all.length]!);
}

interface Outcome {
  /** The invariants that were violated. */
  violated: Set<string>;
  /** How many changes the clients made. */
  changes: number;
}

/** Runs a copy of the code under these faults. */
async function runCopy(defects: Defect[], kinds: string[], servers: ServerKind): Promise<Outcome> {
  await using copy = await createCopy(defects);
  const report = await runFaults({
    seed,
    minutes,
    minChanges,
    servers,
    // Where they are not needed, they would keep defects that need many changes at the same moment from having an effect.
    passingClients: defects.some(({ violates }) => violates.includes('I21')) ? 2 : 0,
    kinds: faults[servers].filter(({ id }) => kinds.includes(id)),
    root: copy.root,
    onProgress: () => undefined,
    signal: new AbortController().signal,
  });
  await rm(report.folder, { recursive: true, force: true });
  return {
    violated: new Set(report.violations.map(({ invariant }) => invariant)),
    changes: report.journal.operations.length,
  };
}

// One after the other: two systems whose processes are killed all the time keep each other from getting anything done.
describe('the checks', { timeout: 900_000 }, () => {
  it.each(chooseMutations())('notice %s', async (_, { kinds, servers = 'single', and = [], ...first }) => {
    const defects = [first, ...and];
    const { violated, changes } = await runCopy(defects, kinds, servers);
    for (const { violates } of defects.filter((defect) => defect.violates.length > 0)) {
      expect(
        violated.intersection(new Set(violates)),
        `only ${[...violated].join(', ')} after ${changes} changes`,
      ).not.toEqual(new Set());
    }
  });
});
