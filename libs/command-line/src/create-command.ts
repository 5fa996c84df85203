import { Command } from 'commander';

const usageExitCode = 2;

/** A command without subcommands: prints its help on request, and exits with code 2 on an unknown argument. */
export function createCommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .showHelpAfterError()
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : usageExitCode));
}
