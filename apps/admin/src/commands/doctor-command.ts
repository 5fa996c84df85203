import { EnvironmentError } from '@scheduling/runtime';
import type { Command } from 'commander';
import { readConfig, type System } from '../config.ts';
import type { Finding, Level } from '../doctor/finding.ts';
import { print, style } from '../terminal.ts';

const help = `
Set those of these variables that you have; the rest is not checked:
  PUBLIC_URL                                              the gateway
  PAGE_URL                                                the pages of persons, if they are not at PUBLIC_URL
  IDENTITY_ADDRESS, CALENDAR_ADDRESS, CUSTOMER_ADDRESS,
  NOTIFICATION_ADDRESS, WEBHOOK_ADDRESS                   gRPC port for operators, host:port
  NATS_URL, SMTP_URL                                      nats://…, smtp://… or smtps://…
  GRPC_TLS_CERT_FILE, GRPC_TLS_KEY_FILE, GRPC_TLS_CA_FILE a certificate for the name admin, if the services use mutual TLS
Beside a running "npm start", "npm run admin -- doctor" sets them to its addresses.

It changes nothing. Exit code 1: a fault, act now. 0: no fault; warnings can wait until tomorrow.`;

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check a running system: what is wrong, and what to do about it')
    .addHelpText('after', help)
    .action(async () => {
      const system = readConfig(process.env);
      requireAddress(system);
      // No other command needs the clients of NATS and mail servers, which take a while to load.
      const { examine } = await import('../doctor/examine.ts');
      const findings = await examine(system);
      show(findings);
      // A connection to a hanging server cannot be cancelled and would keep the process alive until the server is gone.
      process.exit(findings.some(({ level }) => level === 'fault') ? 1 : 0);
    });
}

function requireAddress({ gateway, page, services, nats, smtp }: System): void {
  if ([gateway, page, nats, smtp, ...Object.values(services)].some((given) => given !== undefined)) return;
  throw new EnvironmentError(['at least one address is required; "doctor --help" lists the variables']);
}

const words: Record<Level, string> = { ok: 'ok', warning: 'warning', fault: 'FAULT', 'not checked': 'not checked' };
const colours = { ok: 'green', warning: 'yellow', fault: 'red', 'not checked': 'dim' } as const;

function show(findings: Finding[]): void {
  const checkWidth = Math.max(...findings.map(({ check }) => check.length));
  const wordWidth = Math.max(...findings.map(({ level }) => words[level].length));
  for (const { check, level, seen, remedy } of findings) {
    print(`${check.padEnd(checkWidth)}  ${style(colours[level], words[level].padEnd(wordWidth))}  ${seen}`);
    if (remedy !== undefined) print(`${' '.repeat(checkWidth + wordWidth + 4)}${style('bold', `→ ${remedy}`)}`);
  }
  const count = (level: Level): number => findings.filter((finding) => finding.level === level).length;
  print(
    `\n${count('fault')} faults, ${count('warning')} warnings, ${count('ok')} ok, ${count('not checked')} not checked`,
  );
}
