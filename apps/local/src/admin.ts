import { DomainError } from '@scheduling/errors';
import { Command } from 'commander';
import { addCrmCommands } from './admin/crm-commands.ts';
import { addDeadLetterCommands } from './admin/dead-letter-commands.ts';
import { addDoctorCommand } from './admin/doctor-command.ts';
import { addErasureCommands } from './admin/erasure-commands.ts';
import { addKeyCommands } from './admin/key-commands.ts';
import { addMailCommand } from './admin/mail-command.ts';
import { UsageError } from './config.ts';

const program = new Command('npm run admin --').description('What operators do on a running system.').showHelpAfterError('(--help shows the commands)');
addCrmCommands(program.command('crm').description('the customer-relationship systems that use the service'));
addKeyCommands(program.command('key').description('the API keys of a CRM'));
addErasureCommands(program.command('erasures').description('the erasures of deleted customers that are open or were completed within 7 days'));
addDeadLetterCommands(program.command('dead-letters').description('the events that a service could not process and put aside'));
addMailCommand(program);
addDoctorCommand(program);

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${explain(error)}\n`);
  process.exitCode = 1;
}

function explain(error: unknown): string {
  if (error instanceof DomainError) {
    const fields = error.errors.map(({ pointer, detail }) => `${pointer.replace(/^\//, '')}: ${detail}`);
    return [error.message, ...fields].join('; ');
  }
  if (error instanceof UsageError) return error.message;
  return error instanceof Error ? `unexpected: ${error.message}` : String(error);
}
