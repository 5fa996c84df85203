import { ErasureServiceService } from '@scheduling/contracts/customer/v1';
import type { DeletedOwner, ReplayUserDeletionsResponse } from '@scheduling/contracts/identity/v1';
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
      'after restoring a backup: repeat every erasure of a customer, and every deletion of a user, made since it was taken',
    )
    .requiredOption('--since <instant>', 'when the backup was taken, such as 2026-11-21T04:00:00Z', parseInstant)
    .action(async ({ since }: { since: Date }) => {
      await replayErasures(since);
      await replayUserDeletions(since);
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
    const owners: DeletedOwner[] = [];
    let replayed = 0;
    let part: ReplayUserDeletionsResponse | undefined;
    do {
      part = await admin.replayUserDeletions({ since, continuation: part?.continuation });
      replayed += part.replayed;
      owners.push(...part.owners);
    } while (part.continuation !== undefined);
    print(`${style('green', '✔')} Repeating ${replayed} deletions of users.`);
    warnOfOwners(owners);
    warnUnlessKnown(
      since,
      part.eventsReachBackTo,
      'The CRMs must repeat the deletions of users that they made before that.',
    );
  });
}

function warnOfOwners(owners: DeletedOwner[]): void {
  if (owners.length === 0) return;
  print(
    `${style('yellow', '!')} These users own an account or a provider, and are not deleted. Their CRMs must replace their data with that of a successor (Update user).`,
  );
  output.write(
    formatTable(
      ['crmId', 'user', 'owns'],
      owners.map(({ crmId, userId, owned }) => [crmId, userId, owned]),
    ),
  );
}

async function withErasures(use: (client: RpcClient<ErasureServiceService>) => Promise<void>): Promise<void> {
  using client = createClient(ErasureServiceService, 'customer', addressOf('customer'), callOptions());
  await use(client);
}

function secondsSince(time: Date): number {
  return Math.round((Date.now() - time.getTime()) / 1_000);
}
