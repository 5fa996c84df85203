import { MailServiceService, MailState } from '@scheduling/contracts/notification/v1';
import { createClient } from '@scheduling/rpc';
import { type Command, Option } from 'commander';
import { callOptions } from '../call-options.ts';
import { formatTable } from '../table.ts';
import { addressOf, output, showTime } from '../terminal.ts';

const states = { failed: MailState.FAILED, pending: MailState.PENDING, sent: MailState.SENT };

export function addMailCommand(program: Command): void {
  program
    .command('mails')
    .description('list the newest mails that failed for good, or those in another state')
    .addOption(new Option('--state <state>', 'state of the mails').choices(Object.keys(states)).default('failed'))
    .action(async ({ state }: { state: keyof typeof states }) => {
      using client = createClient(MailServiceService, 'notification', addressOf('notification'), callOptions());
      const { mails } = await client.listMails({ state: states[state] });
      const rows = mails.map(({ crmId, id, template, attempts, lastError, createdAt, finishedAt }) => [
        crmId,
        id,
        template,
        showTime(createdAt),
        showTime(finishedAt),
        String(attempts),
        lastError ?? '-',
      ]);
      output.write(formatTable(['crmId', 'mail', 'template', 'stored', 'finished', 'attempts', 'error'], rows));
    });
}
