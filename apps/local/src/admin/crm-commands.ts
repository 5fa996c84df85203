import { type Command, InvalidArgumentError } from 'commander';
import { formatTable } from '../table.ts';
import { output, print, style, withAdmin } from './terminal.ts';

interface CrmOptions {
  name?: string;
  language?: string;
  timeZone?: string;
  senderName?: string;
  senderAddress?: string;
  rateLimit?: number;
  notifyOnCustomerDeletion?: boolean;
}

export function addCrmCommands(crm: Command): void {
  withSettings(crm.command('create <crmId>').description('make a CRM')).action((crmId: string, options: CrmOptions) =>
    withAdmin(async (admin) => {
      await admin.createCrm(toRequest(crmId, options));
      print(`${style('green', '✔')} CRM ${style('bold', crmId)} is made. Its first key: npm run admin -- key create ${crmId}`);
    }),
  );
  // The positive form comes first: alone, the negative one would make `true` the default.
  const update = crm
    .command('update <crmId>')
    .description('change the settings that are given')
    .option('--notify-on-customer-deletion', 'send a mail to a customer who is deleted from future appointments');
  withSettings(update).action((crmId: string, options: CrmOptions) =>
    withAdmin(async (admin) => {
      await admin.updateCrm(toRequest(crmId, options));
      print(`${style('green', '✔')} CRM ${style('bold', crmId)} is changed; every gateway knows within 30 seconds.`);
    }),
  );
  crm
    .command('list')
    .description('show all CRMs')
    .action(() =>
      withAdmin(async (admin) => {
        const { crms } = await admin.listCrms({});
        const rows = crms.map((each) => [
          each.crmId,
          each.name,
          each.language,
          each.timeZone,
          each.senderAddress || '-',
          each.requestsPerMinute === undefined ? 'none' : String(each.requestsPerMinute),
        ]);
        output.write(formatTable(['crmId', 'name', 'language', 'time zone', 'sender', 'requests/min'], rows, output));
      }),
    );
}

function withSettings(command: Command): Command {
  return command
    .option('--name <name>', 'shown in mails (default: the crmId)')
    .option('--language <tag>', 'of mails and new users (default: de)')
    .option('--time-zone <zone>', 'IANA name, of providers that name none (default: Europe/Berlin)')
    .option('--sender-name <name>', 'of mails (default: the name)')
    .option('--sender-address <address>', "of mails (default: the service's own)")
    .option('--rate-limit <requests>', 'a minute and key; 0: none (default: 6000)', parseRateLimit)
    .option('--no-notify-on-customer-deletion', 'send no mail to a customer who is deleted from future appointments');
}

function toRequest(crmId: string, { rateLimit, ...settings }: CrmOptions) {
  return { crmId, ...settings, requestsPerMinute: rateLimit };
}

function parseRateLimit(text: string): number {
  const requests = Number(text);
  if (!Number.isInteger(requests) || requests < 0) throw new InvalidArgumentError('It must be a whole number, 0 for no limit.');
  return requests;
}
