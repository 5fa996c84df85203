import type { Crm } from '@scheduling/contracts/identity/v1';
import { type Command, InvalidArgumentError } from 'commander';
import { formatTable } from '../table.ts';
import { output, print, style, withAdmin } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';

interface CrmOptions {
  name?: string;
  language?: string;
  timeZone?: string;
  senderName?: string;
  senderAddress?: string;
  rateLimit?: number;
  anonymiseAfterDays?: number;
  notifyOnCustomerDeletion?: boolean;
  logoUrl?: string;
  colour?: string;
  imprint?: string;
  privacyUrl?: string;
}

interface NewCrmOptions extends CrmOptions {
  sandbox?: boolean;
}

/** The values that identity gives to a new CRM. */
const defaults = {
  name: 'the crmId',
  language: 'de',
  timeZone: 'Europe/Berlin',
  senderName: 'the name',
  senderAddress: "the service's own",
  rateLimit: '6000',
  anonymiseAfterDays: '0',
  logoUrl: 'none',
  colour: "the service's own",
  imprint: 'none',
  privacyUrl: 'none',
};

export function addCrmCommands(crm: Command): void {
  addShowCommand(crm);
  const create = crm
    .command('create <crmId>')
    .description('create a CRM')
    .option(
      '--sandbox',
      'for tests: its mails reach nobody and can be read over the API, and its clock can be set; cannot be changed later',
    );
  withSettings(create, (setting) => ` (default: ${defaults[setting]})`).action(
    (crmId: string, { sandbox, ...options }: NewCrmOptions) =>
      withAdmin(async (admin) => {
        await admin.createCrm({ ...toRequest(crmId, options), sandbox });
        print(
          `${style('green', '✔')} Created ${sandbox ? 'sandbox' : 'CRM'} ${style('bold', crmId)}. Create its first key: npm run admin -- key create ${crmId}`,
        );
      }),
  );
  // The positive form comes first: alone, the negative one would make `true` the default.
  const update = crm
    .command('update <crmId>')
    .description('change settings of a CRM; options left out keep their value')
    .option('--notify-on-customer-deletion', 'mail customers who are deleted while they have future appointments');
  withSettings(update, () => '').action((crmId: string, options: CrmOptions) =>
    withAdmin(async (admin) => {
      await admin.updateCrm(toRequest(crmId, options));
      const within = options.anonymiseAfterDays === undefined ? '30 seconds' : 'an hour';
      print(`${style('green', '✔')} Changed CRM ${style('bold', crmId)}. It takes effect within ${within}.`);
    }),
  );
  crm
    .command('list')
    .description('list all CRMs with their most important settings')
    .action(() =>
      withAdmin(async (admin) => {
        const { crms } = await admin.listCrms({});
        const rows = crms.map((each) => [
          each.crmId,
          each.sandbox ? `${each.name} (sandbox)` : each.name,
          each.language,
          each.timeZone,
          each.senderAddress || '-',
          each.requestsPerMinute === undefined ? 'unlimited' : String(each.requestsPerMinute),
          each.anonymiseAfterDays === undefined ? '-' : `${each.anonymiseAfterDays} days`,
        ]);
        output.write(
          formatTable(['crmId', 'name', 'language', 'time zone', 'sender', 'requests/min', 'anonymised after'], rows),
        );
      }),
    );
}

function addShowCommand(crm: Command): void {
  crm
    .command('show <crmId>')
    .description('show all settings of a CRM')
    .action((crmId: string) =>
      withAdmin(async (admin) => {
        const { crms } = await admin.listCrms({});
        const found = crms.find((each) => each.crmId === crmId);
        if (found === undefined) throw new UsageError(`There is no CRM ${crmId}.`);
        output.write(formatTable(['setting', 'value'], describeSettings(found)));
      }),
    );
}

/** A text of several lines has as many rows. */
function describeSettings(crm: Crm): string[][] {
  const rows: [string, string | undefined][] = [
    ['name', crm.name],
    ['sandbox', crm.sandbox ? 'yes' : 'no'],
    ['language', crm.language],
    ['time zone', crm.timeZone],
    ['sender name', crm.senderName],
    ['sender address', crm.senderAddress],
    ['requests/min', crm.requestsPerMinute === undefined ? 'unlimited' : String(crm.requestsPerMinute)],
    ['anonymised after', crm.anonymiseAfterDays === undefined ? undefined : `${crm.anonymiseAfterDays} days`],
    ['mail on deletion', crm.notifyOnCustomerDeletion ? 'yes' : 'no'],
    ['logo', crm.logoUrl],
    ['colour', crm.colour],
    ['imprint', crm.imprint],
    ['privacy notice', crm.privacyUrl],
  ];
  return rows.flatMap(([name, value]) =>
    (value || '-').split('\n').map((line, index) => [index === 0 ? name : '', line]),
  );
}

/** `describeDefault` comes after the text of an option: only a new CRM has defaults. */
function withSettings(command: Command, describeDefault: (setting: keyof typeof defaults) => string): Command {
  return command
    .option('--name <name>', `name in mails${describeDefault('name')}`)
    .option('--language <tag>', `language of mails and of new users${describeDefault('language')}`)
    .option('--time-zone <zone>', `IANA time zone of providers created without one${describeDefault('timeZone')}`)
    .option('--sender-name <name>', `sender name of mails${describeDefault('senderName')}`)
    .option('--sender-address <address>', `sender address of mails${describeDefault('senderAddress')}`)
    .option(
      '--rate-limit <requests>',
      `requests per minute per key; 0 = unlimited${describeDefault('rateLimit')}`,
      wholeNumber('unlimited'),
    )
    .option(
      '--anonymise-after-days <days>',
      `days from the end of an appointment until its bookings are anonymised; 0 = no period of its own${describeDefault('anonymiseAfterDays')}`,
      wholeNumber('no period of its own'),
    )
    .option(
      '--logo-url <url>',
      `https URL of the logo in mails, an image of 3:1 that is shown with 180 x 60 pixels${describeDefault('logoUrl')}`,
    )
    .option('--colour <colour>', `background of white text in mails, as #rrggbb${describeDefault('colour')}`)
    .option(
      '--imprint <text>',
      `legal notice at the foot of mails and of the verification page, up to 20 lines${describeDefault('imprint')}`,
    )
    .option(
      '--privacy-url <url>',
      `https URL of the privacy notice, which pages for persons link to${describeDefault('privacyUrl')}`,
    )
    .option(
      '--no-notify-on-customer-deletion',
      'send no mail to customers who are deleted while they have future appointments',
    );
}

function toRequest(crmId: string, { rateLimit, ...settings }: CrmOptions) {
  return { ...settings, crmId, requestsPerMinute: rateLimit };
}

function wholeNumber(zero: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < 0)
      throw new InvalidArgumentError(`It must be a whole number; 0 = ${zero}.`);
    return value;
  };
}
