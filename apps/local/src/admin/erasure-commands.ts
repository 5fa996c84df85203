import { ErasureServiceService } from '@scheduling/contracts/customer/v1';
import { createClient, type RpcClient } from '@scheduling/rpc';
import { type Command, InvalidArgumentError } from 'commander';
import { formatTable } from '../table.ts';
import { callOptions } from './call-options.ts';
import { addressOf, output, print, showTime, style } from './terminal.ts';

export function addErasureCommands(erasures: Command): void {
  erasures.action(() =>
    withErasures(async (client) => {
      const { erasures: listed } = await client.listErasures({});
      const rows = listed.map(({ crmId, erasureId, requestedAt, completedAt, awaiting }) => [
        crmId,
        erasureId,
        showTime(requestedAt),
        completedAt ? 'complete' : `open for ${secondsSince(requestedAt!)} s`,
        awaiting.join(', ') || '-',
      ]);
      output.write(formatTable(['crmId', 'erasure', 'requested', 'state', 'still owed by'], rows, output));
    }),
  );
  erasures
    .command('replay')
    .description('after a restore: have everything erased again that was erased since the backup')
    .requiredOption('--since <instant>', 'when the backup was made, such as 2026-11-21T04:00:00Z', parseInstant)
    .action(({ since }: { since: Date }) =>
      withErasures(async (client) => {
        const { replayed, recovered, eventsReachBackTo } = await client.replayErasures({ since });
        print(`${style('green', '✔')} ${replayed} erasures are repeated, ${recovered} of them known from events only.`);
        print('  "npm run admin -- erasures" shows when they are complete.');
        if (eventsReachBackTo === undefined || eventsReachBackTo > since) {
          const held = eventsReachBackTo ? `events from ${showTime(eventsReachBackTo)} on` : 'no events';
          print(`${style('yellow', '!')} NATS holds ${held}: if the database of customer was restored too, the CRMs have to repeat what they deleted before.`);
        }
      }),
    );
}

async function withErasures(use: (client: RpcClient<ErasureServiceService>) => Promise<void>): Promise<void> {
  using client = createClient(ErasureServiceService, 'customer', await addressOf('customer'), callOptions());
  await use(client);
}

function parseInstant(text: string): Date {
  try {
    return new Date(Temporal.Instant.from(text).epochMilliseconds);
  } catch {
    throw new InvalidArgumentError('It must be an instant with its zone, such as 2026-11-21T04:00:00Z.');
  }
}

function secondsSince(time: Date): number {
  return Math.round((Date.now() - time.getTime()) / 1_000);
}
