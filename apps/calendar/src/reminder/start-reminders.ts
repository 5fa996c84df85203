import { type Loop, startLoop } from '@scheduling/runtime';
import { type ReminderDependencies, writeReminders } from './write-reminders.ts';

const everyMs = 30_000;

/** Writes the reminders that are due, in every replica. Whoever sets the clock of a sandbox wakes one. */
export function startReminders(dependencies: ReminderDependencies): Loop {
  return startLoop({
    name: 'the writing of reminders',
    logger: dependencies.logger,
    everyMs,
    run: async (_limit, signal) => {
      await writeReminders(dependencies, signal);
      return 0;
    },
  });
}
