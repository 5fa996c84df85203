import { timeOf } from './appointments.ts';
import { path } from './client.ts';
import type { Block, Provider } from './model.ts';
import { listSlots, presentDayMs, resources, whileSomeBook } from './slots.ts';
import type { Worker } from './worker.ts';

const halfHourMs = 30 * 60_000;
/** With more, nothing would be left to book. */
const mostBlocks = 4;

/** Of up to two hours of the present day. Some book a slot in it: at the same moment, and when it is there. */
export async function createBlock(worker: Worker): Promise<void> {
  const { provider, journal, random } = worker;
  if (existingBlocks(provider).length >= mostBlocks) return deleteBlock(worker);
  const { tenant } = provider;
  const resource = random.pick(resources);
  const slots = await listSlots(worker, resource);
  const operation = journal.begin('create block');
  const startMs = slots.length > 0 ? Date.parse(random.pick(slots).start) : presentDayMs(provider) + 20 * halfHourMs;
  const endMs = startMs + random.integer(1, 4) * halfHourMs;
  const block: Block = {
    reference: tenant.newReference('block'),
    resource,
    startMs,
    endMs,
    created: operation,
    conflicts: undefined,
    deleted: undefined,
  };
  provider.blocks.push(block);
  const body = { reference: block.reference, start: timeOf(startMs), end: timeOf(endMs) };
  const request = { method: 'POST', path: blocksPath(provider, resource), body } as const;
  const withKey = random.chance(0.3);
  const inside = slots.filter(({ start, end }) => Date.parse(start) < endMs && Date.parse(end) > startMs);
  await whileSomeBook(worker, inside, async () => {
    const answer = await tenant.client.change(operation, request, { withKey });
    block.conflicts = (answer?.body as Partial<Block> | undefined)?.conflicts;
  });
}

/** One that somebody of the provider has made. */
export async function deleteBlock(worker: Worker): Promise<void> {
  const { provider, journal, random } = worker;
  const existing = existingBlocks(provider);
  if (existing.length === 0) return createBlock(worker);
  const block = random.pick(existing);
  block.deleted = journal.begin('delete block');
  const to = blocksPath(provider, block.resource) + path`/${block.reference}`;
  await provider.tenant.client.change(block.deleted, { method: 'DELETE', path: to }, { goneStatus: 404 });
}

export function blocksPath({ at }: Provider, resource: string): string {
  return at + path`/resource/${resource}/blocks`;
}

/** Those whose end nobody has begun. */
function existingBlocks({ blocks }: Provider): Block[] {
  return blocks.filter(({ created, deleted }) => created.outcome === 'ok' && deleted === undefined);
}
