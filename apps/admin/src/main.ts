import { Command } from 'commander';
import { DomainError } from '@scheduling/errors';
import { isUnimplemented } from '@scheduling/rpc';
import { EnvironmentError, newRequestId, runWithContext } from '@scheduling/runtime';
import { addAuditCommand } from './commands/audit-command.ts';
import { addCrmCommands } from './commands/crm-commands.ts';
import { addDeadLetterCommands } from './commands/dead-letter-commands.ts';
import { addDoctorCommand } from './commands/doctor-command.ts';
import { addErasureCommands } from './commands/erasure-commands.ts';
import { addHoursCommand } from './commands/hours-command.ts';
import { addKeyCommands } from './commands/key-commands.ts';
import { addMailCommand } from './commands/mail-command.ts';
import { addProviderCommand } from './commands/provider-command.ts';
import { readConfig } from './config.ts';
import { UsageError } from './usage-error.ts';

const otherPort =
  'There is no such RPC at this address. Services have a separate port for operators: ADMIN_PORT, 50052 unless it is set.';

const program = new Command('npm run admin --')
  .description('Administer a running system.')
  .showHelpAfterError('(--help shows the commands)');
addCrmCommands(program.command('crm').description('create, change and list CRMs, the tenants of the service'));
addKeyCommands(program.command('key').description('create, list and revoke the API keys of a CRM'));
addErasureCommands(
  program
    .command('erasures')
    .description('list the erasures of deleted customers: the open ones, and those completed in the last 7 days'),
);
addDeadLetterCommands(
  program.command('dead-letters').description('list, retry and drop events that a service failed to process'),
);
addMailCommand(program);
addHoursCommand(program);
addProviderCommand(program);
addAuditCommand(program);
addDoctorCommand(program);

try {
  const { operator } = readConfig(process.env);
  await runWithContext({ requestId: newRequestId(), operator }, () => program.parseAsync());
} catch (error) {
  process.stderr.write(`${explain(error)}\n`);
  process.exitCode = 1;
}

function explain(error: unknown): string {
  if (isUnimplemented(error)) return otherPort;
  if (error instanceof DomainError) {
    const fields = error.errors.map(({ pointer, detail }) => `  ${pointer.replace(/^\//, '')}: ${detail}`);
    return [error.message, ...fields].join('\n');
  }
  if (error instanceof EnvironmentError || error instanceof UsageError) return error.message;
  return error instanceof Error ? `unexpected: ${error.message}` : String(error);
}
