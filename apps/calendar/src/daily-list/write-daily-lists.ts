import { originJson } from '@scheduling/messaging';
import { callFunction, type Database, isUnavailable } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import { type Kysely, sql } from 'kysely';
import { toInstant } from '../date-time.ts';
import type { CalendarSchema } from '../db/schema.ts';
import { dueTime, periodOf } from './local-day.ts';

/** As many are written in a statement. */
const listsPerCall = 500;

/** A provider with the rule, by the clock of its CRM. */
interface ListedProvider {
  crmId: string;
  providerId: string;
  timeZone: string;
  hour: number;
  /** When the hour was set. */
  setAt: Date;
  /** The day of its last list; null: it had none. */
  listedOn: string | null;
  present: Date;
  /** How far that is ahead of the real time. */
  aheadMs: number;
}

/** A list that is due, as write-daily-lists.sql takes it. */
interface DueList {
  crmId: string;
  providerId: string;
  hour: number;
  listedOn: string | null;
  date: string;
  dayStart: Date;
  dayEnd: Date;
  expiresAt: Date;
}

interface DailyListDependencies {
  database: Database<CalendarSchema>;
  logger: Logger;
}

/**
 * Writes the lists of the day that are due, in every replica (interface 6.5). Never rejects: what cannot be written is
 * tried again in the next round, and does not stop the others.
 */
export async function writeDailyLists(dependencies: DailyListDependencies): Promise<void> {
  const { database, logger } = dependencies;
  try {
    const providers = await findProviders(database.kysely);
    const due = providers.flatMap((provider) => tryDueListOf(dependencies, provider) ?? []);
    for (const [crmId, lists] of Map.groupBy(due, (list) => list.crmId)) {
      for (let from = 0; from < lists.length; from += listsPerCall)
        await tryWriteLists(dependencies, crmId, lists.slice(from, from + listsPerCall));
    }
  } catch (error) {
    logger.warn({ err: error }, notWritten);
  }
}

const notWritten = 'the daily lists cannot be written';

/** Mark and provider are found one by one (OFFSET 0), whatever the statistics say of the tables. */
async function findProviders(db: Kysely<CalendarSchema>): Promise<ListedProvider[]> {
  const { rows } = await sql<ListedProvider>`
    SELECT rules.crm_id, rules.provider_id, provider.time_zone, rules.daily_list AS hour, mark.set_at, mark.listed_on,
           clock.present, (extract(epoch FROM clock.present - clock.real_present) * 1000)::float8 AS ahead_ms
      FROM booking_rules AS rules
     CROSS JOIN LATERAL (SELECT * FROM daily_list_mark WHERE crm_id = rules.crm_id AND provider_id = rules.provider_id OFFSET 0) AS mark
     CROSS JOIN LATERAL (SELECT time_zone FROM provider WHERE crm_id = rules.crm_id AND id = rules.provider_id OFFSET 0) AS provider
      JOIN (
        SELECT crm_id, scheduling_now(crm_id) AS present, scheduling_now() AS real_present
          FROM (SELECT DISTINCT crm_id FROM booking_rules WHERE daily_list IS NOT NULL) AS crm
        OFFSET 0) AS clock ON clock.crm_id = rules.crm_id
     WHERE rules.daily_list IS NOT NULL`.execute(db);
  return rows;
}

function tryDueListOf({ logger }: DailyListDependencies, provider: ListedProvider): DueList | undefined {
  try {
    return dueListOf(provider);
  } catch (error) {
    const { crmId, providerId } = provider;
    logger.warn({ err: error, crmId, providerId }, notWritten);
    return undefined;
  }
}

/**
 * The list of the present day, if its hour has come and it has not been written. An hour that was set later than that
 * begins on the next day; if the clock of a sandbox was set back since, it was set long ago.
 */
function dueListOf({
  crmId,
  providerId,
  timeZone,
  hour,
  setAt,
  listedOn,
  present,
  aheadMs,
}: ListedProvider): DueList | undefined {
  const day = toInstant(present).toZonedDateTimeISO(timeZone).toPlainDate();
  const date = day.toString();
  if (date === listedOn) return undefined;
  const due = dueTime(day, hour, timeZone);
  if (present < due || (setAt > due && setAt <= present)) return undefined;
  const { dayStart, dayEnd } = periodOf(day, timeZone);
  const expiresAt = new Date(dayEnd.getTime() - aheadMs);
  return { crmId, providerId, hour, listedOn, date, dayStart, dayEnd, expiresAt };
}

/** Rejects only if the database does not answer. */
async function tryWriteLists(
  { database, logger }: DailyListDependencies,
  crmId: string,
  lists: DueList[],
): Promise<void> {
  const request = { crmId, lists, origin: originJson() };
  try {
    const written = await callFunction<number>(database.kysely, { name: 'write_daily_lists', request, locks: crmId });
    if (written > 0) database.committed();
  } catch (error) {
    if (isUnavailable(error)) await database.ping();
    logger.warn({ err: error, crmId }, notWritten);
  }
}
