import type { Database } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';

const everyMs = 60 * 60 * 1_000;
/** Longer than any event can come again. */
const keptDays = 30;

/** Removes what is left of mails that were finished a month ago: ids and codes. */
export function startForgettingFinishedMails({ database, logger }: { database: Database<NotificationSchema>; logger: Logger }): Disposable {
  const forget = async (): Promise<void> => {
    try {
      await database.kysely
        .deleteFrom('mail')
        .where('state', 'in', ['sent', 'failed'])
        .where('finished_at', '<', sql<Date>`now() - make_interval(days => ${keptDays})`)
        .execute();
    } catch (error) {
      logger.warn({ err: error }, 'finished mails could not be removed, trying again later');
    }
  };
  const timer = setInterval(() => void forget(), everyMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
