import { AuditServiceService } from '@scheduling/contracts/operations/v1';
import { createClient } from '@scheduling/rpc';
import type { Command } from 'commander';
import { callOptions } from '../call-options.ts';
import { type DatabaseService, databaseServices } from '@scheduling/runtime';
import { parseInstant } from '../instant.ts';
import { formatTable } from '../table.ts';
import { addressOf, output, showTime } from '../terminal.ts';

export function addAuditCommand(program: Command): void {
  program
    .command('audit')
    .description('list what operators have changed, newest first')
    .option('--since <instant>', 'from when on, such as 2026-11-21T04:00:00Z', parseInstant)
    .action(async ({ since }: { since?: Date }) => {
      const entries = (await Promise.all(databaseServices.map((service) => listEntries(service, since)))).flat();
      entries.sort((one, other) => other.recordedAt!.getTime() - one.recordedAt!.getTime());
      const rows = entries.map(({ recordedAt, operator, action, target, requestId }) => [
        showTime(recordedAt),
        operator,
        action,
        target,
        requestId,
      ]);
      output.write(formatTable(['time', 'operator', 'action', 'target', 'request'], rows));
    });
}

async function listEntries(service: DatabaseService, since: Date | undefined) {
  using client = createClient(AuditServiceService, service, addressOf(service), callOptions());
  const { entries } = await client.listAuditEntries({ since });
  return entries;
}
