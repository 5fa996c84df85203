import { type Loop, startLoop } from '@scheduling/runtime';
import { writeDailyLists } from '../daily-list/write-daily-lists.ts';
import { remindOfRequests } from './remind-of-requests.ts';
import { type ReminderDependencies, writeReminders } from './write-reminders.ts';

/**
 * With the time that a round takes, and the mail, a reminder is sent within half a minute (interface 6.3). One of a minute
 * is of no use later than that, and is left out.
 */
const everyMs = 20_000;

/** Writes the reminders that are due, also of requests, in every replica. Whoever sets the clock of a sandbox wakes one. */
export function startReminders(dependencies: ReminderDependencies): Loop {
  return startLoop({
    name: 'the writing of reminders',
    logger: dependencies.logger,
    everyMs,
    run: async (_limit, signal) => {
      await writeReminders(dependencies, signal);
      await remindOfRequests(dependencies, signal);
      await writeDailyLists(dependencies);
      return 0;
    },
  });
}
