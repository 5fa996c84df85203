import { styler } from './reporter.ts';
import type { StackInfo } from '@scheduling/stack';

const commands = [
  ['npm run demo', 'books an appointment step by step'],
  ['npm run webhook-inbox', 'prints every event that a webhook sends to the CRM'],
  ['npm run admin -- --help', 'lists the admin commands'],
] as const;

/** What a user wants to know once everything is running. */
export function readyBanner(info: StackInfo, warnings: readonly string[], stream: NodeJS.WriteStream): string {
  const style = styler(stream);
  const rows: [string, string][] = [
    ['gateway', info.gateway],
    ['API docs', info.docs],
    ['pages', info.page],
    ...(info.bookingPage === null ? [] : [['demo page', info.bookingPage] satisfies [string, string]]),
    ['inbox', info.inbox ?? `${new URL(info.smtp).host} (from SMTP_URL)`],
    ['crmId', info.crmId],
    ['API key', info.apiKey],
  ];
  return [
    '',
    style(['bold', 'green'], '  Ready.'),
    '',
    ...warnings.flatMap((warning) => [style('yellow', `  ! ${warning}`), '']),
    ...rows.map(([name, value]) => `  ${style('dim', name.padEnd(9))} ${style('bold', value)}`),
    '',
    '  A first request:',
    '',
    firstRequest(info),
    '',
    ...commands.map(([command, effect]) => `  ${style('cyan', command.padEnd(24))} ${effect}`),
    '',
    '  Ctrl-C stops everything and keeps the data.',
    '',
    '',
  ].join('\n');
}

/** Returns 201, or 200 if it is pasted again. */
export function firstRequest({ gateway, crmId, apiKey }: StackInfo): string {
  const user = { reference: 'ada@demo', email: 'ada@example.com', username: 'ada', lastName: 'Lovelace' };
  return `curl -i ${gateway}/crms/${crmId}/user -H 'X-SERVICE-CLIENT-ID: ${apiKey}' -H 'Content-Type: application/json' -d '${JSON.stringify(user)}'`;
}
