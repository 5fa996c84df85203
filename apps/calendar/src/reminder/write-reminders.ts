import { originJson } from '@scheduling/messaging';
import { callFunction, type Database, isUnavailable } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import type { CalendarSchema } from '../db/schema.ts';
import type { ReminderMetrics } from './reminder-metrics.ts';

export interface ReminderDependencies {
  database: Database<CalendarSchema>;
  metrics: ReminderMetrics;
  logger: Logger;
}

interface Reminding {
  crmId: string;
  providerId: string;
}

/** As many calls share a statement. */
const providersPerTurn = 64;
/**
 * Of one provider and call. After an outage all providers of a statement may have so many, with several persons in each,
 * and 64 times 500 appointments of three persons do not fit into the time of a statement.
 */
const appointmentsPerCall = 100;

/**
 * Writes the reminders that are due (remind.sql), of every provider that has any in its rules. CRMs take turns. A
 * provider whose reminders cannot be written is tried again in the next round, and does not stop the others; this
 * rejects only if the database does not answer. Any number of replicas can do this at the same time.
 */
export async function writeReminders(dependencies: ReminderDependencies, signal?: AbortSignal): Promise<void> {
  let waiting = Map.groupBy(await findRemindingProviders(dependencies.database), ({ crmId }) => crmId);
  while (waiting.size > 0) {
    const left: [string, Reminding[]][] = [];
    for (const [crmId, providers] of waiting) {
      if (signal?.aborted) return;
      const behind = await remindOf(dependencies, providers.slice(0, providersPerTurn));
      const rest = [...providers.slice(providersPerTurn), ...behind];
      if (rest.length > 0) left.push([crmId, rest]);
    }
    waiting = new Map(left);
  }
}

function findRemindingProviders({ kysely }: Database<CalendarSchema>): Promise<Reminding[]> {
  return kysely.selectFrom('reminderMark').select(['crmId', 'providerId']).distinct().execute();
}

/** Returns those of whom more may be due already. */
async function remindOf(dependencies: ReminderDependencies, providers: Reminding[]): Promise<Reminding[]> {
  const { database, metrics, logger } = dependencies;
  const outcomes = await Promise.allSettled(providers.map((provider) => remind(database, provider)));
  const behind: Reminding[] = [];
  let written = 0;
  for (const [index, outcome] of outcomes.entries()) {
    const provider = providers[index]!;
    if (outcome.status === 'rejected') {
      if (isUnavailable(outcome.reason)) await database.ping();
      logger.warn({ ...provider, err: outcome.reason as unknown }, 'the reminders of a provider cannot be written');
    } else {
      written += outcome.value.written;
      if (outcome.value.isBehind) behind.push(provider);
    }
  }
  metrics.written(written);
  if (written > 0) database.committed();
  return behind;
}

function remind({ kysely }: Database<CalendarSchema>, provider: Reminding) {
  const request = { ...provider, limit: appointmentsPerCall, origin: originJson() };
  return callFunction<{ written: number; isBehind: boolean }>(kysely, {
    name: 'remind',
    request,
    locks: provider.providerId,
  });
}
