import { Command } from 'commander';

const usageExitCode = 2;

/** A command without subcommands: shows its help when asked for it, and ends with code 2 on an argument that it does not know. */
export function createCommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .showHelpAfterError()
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : usageExitCode));
}
