import { ErasureServiceService } from '@scheduling/contracts/customer/v1';
import { createClient, type RpcClient } from '@scheduling/rpc';
import type { Command } from 'commander';
import { callOptions } from '../call-options.ts';
import { parseInstant } from '../instant.ts';
import { formatTable } from '../table.ts';
import { addressOf, output, print, showTime, style, withAdmin } from '../terminal.ts';
import { warnUnlessKnown } from '../warn-unless-known.ts';

export function addErasureCommands(erasures: Command): void {
  erasures.action(() =>
    withErasures(async (client) => {
      const { erasures: listed } = await client.listErasures({});
      const rows = listed.map(({ crmId, erasureId, requestedAt, requestedBy, completedAt, awaiting }) => [
        crmId,
        erasureId,
        showTime(requestedAt),
        requestedBy ?? '-',
        completedAt ? 'complete' : `open for ${secondsSince(requestedAt!)} s`,
        awaiting.join(', ') || '-',
      ]);
      output.write(formatTable(['crmId', 'erasure', 'requested', 'by', 'state', 'waiting for'], rows));
    }),
  );
  erasures
    .command('replay')
    .description(
      'after restoring a backup: repeat every erasure of a customer, and every deletion of a user or a provider, made since it was taken',
    )
    .requiredOption('--since <instant>', 'when the backup was taken, such as 2026-11-21T04:00:00Z', parseInstant)
    .action(async ({ since }: { since: Date }) => {
      await replayErasures(since);
      await replayUserDeletions(since);
      await replayProviderDeletions(since);
    });
}

function replayErasures(since: Date): Promise<void> {
  return withErasures(async (client) => {
    const { replayed, recovered, eventsReachBackTo } = await client.replayErasures({ since });
    print(`${style('green', '✔')} Repeating ${replayed} erasures, ${recovered} of them found only in events.`);
    print('  Check their progress: npm run admin -- erasures');
    warnUnlessKnown(
      since,
      eventsReachBackTo,
      'If the database of customer was restored too, the CRMs must repeat the deletions that they made before that.',
    );
  });
}

function replayUserDeletions(since: Date): Promise<void> {
  return withAdmin(async (admin) => {
    const parts = await replayInParts((continuation) => admin.replayUserDeletions({ since, continuation }));
    reportReplayed(parts, 'deletions of users');
    listKept(
      'These users own an account or a provider, and are not deleted. Their CRMs must replace their data with that of a successor (Update user).',
      ['crmId', 'user', 'owns'],
      parts.flatMap(({ owners }) => owners.map(({ crmId, userId, owned }) => [crmId, userId, owned])),
    );
    warnUnlessKnown(
      since,
      parts.at(-1)!.eventsReachBackTo,
      'The CRMs must repeat the deletions of users that they made before that.',
    );
  });
}

function replayProviderDeletions(since: Date): Promise<void> {
  return withAdmin(async (admin) => {
    const parts = await replayInParts((continuation) => admin.replayProviderDeletions({ since, continuation }));
    reportReplayed(parts, 'deletions of providers');
    listKept(
      'These providers exist again, and are not deleted. Their CRMs must repeat the deletions: if notification was not restored, no mails are sent for them.',
      ['crmId', 'provider', 'reference'],
      parts.flatMap(({ existing }) =>
        existing.map(({ crmId, providerId, reference }) => [crmId, providerId, reference]),
      ),
    );
    warnUnlessKnown(
      since,
      parts.at(-1)!.eventsReachBackTo,
      'Notification and webhook keep what the backup has of providers that were deleted before that. If identity was restored, the CRMs must repeat these deletions.',
    );
  });
}

interface ReplayedPart {
  replayed: number;
  eventsReachBackTo?: Date | undefined;
  continuation?: string | undefined;
}

async function replayInParts<Part extends ReplayedPart>(
  replay: (continuation: string | undefined) => Promise<Part>,
): Promise<Part[]> {
  const parts = [await replay(undefined)];
  while (parts.at(-1)!.continuation !== undefined) parts.push(await replay(parts.at(-1)!.continuation));
  return parts;
}

function reportReplayed(parts: ReplayedPart[], deletions: string): void {
  const replayed = parts.reduce((sum, part) => sum + part.replayed, 0);
  print(`${style('green', '✔')} Repeating ${replayed} ${deletions}.`);
}

/** Nothing if there are none. */
function listKept(reason: string, header: string[], rows: string[][]): void {
  if (rows.length === 0) return;
  print(`${style('yellow', '!')} ${reason}`);
  output.write(formatTable(header, rows));
}

async function withErasures(use: (client: RpcClient<ErasureServiceService>) => Promise<void>): Promise<void> {
  using client = createClient(ErasureServiceService, 'customer', addressOf('customer'), callOptions());
  await use(client);
}

function secondsSince(time: Date): number {
  return Math.round((Date.now() - time.getTime()) / 1_000);
}
