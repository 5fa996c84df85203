import { type ApiKey, KeyScope } from '@scheduling/contracts/identity/v1';
import { type Command, Option } from 'commander';
import { parseExpiry } from '../expiry.ts';
import { parseInstant } from '../instant.ts';
import { formatTable } from '../table.ts';
import { output, print, showTime, style, withAdmin } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';
import { warnUnlessKnown } from '../warn-unless-known.ts';

const scopes = { read: KeyScope.READ, book: KeyScope.BOOK, all: KeyScope.ALL } as const;

type Scope = keyof typeof scopes;

export function addKeyCommands(key: Command): void {
  addCreateCommand(key);
  key
    .command('list <crmId>')
    .description('list the keys of a CRM, without their secrets')
    .action((crmId: string) =>
      withAdmin(async (admin) => {
        const { apiKeys } = await admin.listKeys({ crmId });
        const rows = apiKeys.map((each) => [
          each.prefix,
          stateOf(each),
          scopeOf(each),
          showTime(each.createdAt),
          showTime(each.expiresAt),
          showTime(each.lastUsedAt),
        ]);
        output.write(formatTable(['prefix', 'state', 'scope', 'created', 'expires', 'last used'], rows));
      }),
    );
  key
    .command('revoke <prefix>')
    .description('revoke a key (takes effect within 5 seconds)')
    .action((prefix: string) =>
      withAdmin(async (admin) => {
        await admin.revokeKey({ prefix });
        print(`${style('green', '✔')} Revoked key ${style('bold', prefix)}. It stops working within 5 seconds.`);
      }),
    );
  key
    .command('replay')
    .description('after restoring a backup: revoke every key again that was revoked since it was taken')
    .requiredOption('--since <instant>', 'when the backup was taken, such as 2026-11-21T04:00:00Z', parseInstant)
    .action(({ since }: { since: Date }) =>
      withAdmin(async (admin) => {
        const { revoked, eventsReachBackTo } = await admin.replayKeyRevocations({ since });
        print(`${style('green', '✔')} Revoked ${revoked.length} ${revoked.length === 1 ? 'key' : 'keys'} again.`);
        if (revoked.length > 0)
          output.write(
            formatTable(
              ['crmId', 'prefix'],
              revoked.map(({ crmId, prefix }) => [crmId, prefix]),
            ),
          );
        warnUnlessKnown(
          since,
          eventsReachBackTo,
          "Keys that were revoked before that work again. Identity's log has a line for each: called by an operator.",
        );
      }),
    );
}

function addCreateCommand(key: Command): void {
  key
    .command('create <crmId>')
    .description('create a key and print it; it cannot be shown again')
    .option(
      '--expires <when>',
      'expiry: an ISO 8601 date or instant, or a duration such as 90d, 12h or P1Y (default: never)',
    )
    .addOption(
      new Option('--scope <scope>', 'what the key permits; book is reading, and bookings and customers')
        .choices(Object.keys(scopes))
        .default('all' satisfies Scope),
    )
    .action((crmId: string, { expires, scope }: { expires?: string; scope: Scope }) =>
      withAdmin(async (admin) => {
        const expiresAt = expires === undefined ? undefined : parseExpiry(expires, Temporal.Now.instant());
        const created = await admin.createKey({ crmId, expiresAt, scope: scopes[scope] });
        if (scopeOf(created.apiKey!) !== scope) {
          await admin.revokeKey({ prefix: created.apiKey!.prefix });
          throw new UsageError(
            'This identity service is older than scopes, and creates only keys that may do everything. Update it first.',
          );
        }
        print(created.key);
        process.stderr.write('Store the key now: it cannot be shown again.\n');
      }),
    );
}

/** An older identity service has no scopes: its keys may do everything. */
function scopeOf({ scope = KeyScope.ALL }: ApiKey): string {
  return Object.entries(scopes).find(([, message]) => message === scope)?.[0] ?? 'unknown';
}

function stateOf({ revokedAt, expiresAt }: ApiKey): string {
  if (revokedAt) return `revoked ${showTime(revokedAt)}`;
  return expiresAt && expiresAt.getTime() <= Date.now() ? 'expired' : 'active';
}
