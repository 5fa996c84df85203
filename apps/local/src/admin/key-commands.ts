import type { ApiKey } from '@scheduling/contracts/identity/v1';
import type { Command } from 'commander';
import { parseExpiry } from '../expiry.ts';
import { formatTable } from '../table.ts';
import { output, print, showTime, style, withAdmin } from './terminal.ts';

export function addKeyCommands(key: Command): void {
  key
    .command('create <crmId>')
    .description('make a key and show it, once')
    .option('--expires <when>', 'a date or instant in ISO 8601, or how long from now: 90d, 12h, P1Y (default: never)')
    .action((crmId: string, { expires }: { expires?: string }) =>
      withAdmin(async (admin) => {
        const expiresAt = expires === undefined ? undefined : parseExpiry(expires, Temporal.Now.instant());
        const created = await admin.createKey({ crmId, expiresAt });
        print(created.key);
        process.stderr.write('This is the only time that the key is shown: keep it now.\n');
      }),
    );
  key
    .command('list <crmId>')
    .description('show the keys of a CRM, without their secrets')
    .action((crmId: string) =>
      withAdmin(async (admin) => {
        const { apiKeys } = await admin.listKeys({ crmId });
        const rows = apiKeys.map((each) => [each.prefix, stateOf(each), showTime(each.createdAt), showTime(each.expiresAt), showTime(each.lastUsedAt)]);
        output.write(formatTable(['prefix', 'state', 'created', 'expires', 'last used'], rows, output));
      }),
    );
  key
    .command('revoke <prefix>')
    .description('make a key useless, within 5 seconds')
    .action((prefix: string) =>
      withAdmin(async (admin) => {
        await admin.revokeKey({ prefix });
        print(`${style('green', '✔')} The key ${style('bold', prefix)} is revoked; it works for 5 more seconds at most.`);
      }),
    );
}

function stateOf({ revokedAt, expiresAt }: ApiKey): string {
  if (revokedAt) return `revoked ${showTime(revokedAt)}`;
  return expiresAt && expiresAt.getTime() <= Date.now() ? 'expired' : 'active';
}
