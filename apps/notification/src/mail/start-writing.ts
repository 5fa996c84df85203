import {
  type DeliveryKind,
  dueAfter,
  type LeasedRow,
  type LeasedTable,
  type Outcome,
  startDelivery,
} from '@scheduling/delivery';
import { DomainError } from '@scheduling/errors';
import type { Database } from '@scheduling/postgres';
import { describeError, type Logger } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';
import { suspiciousFailures } from './mail-table.ts';
import type { MailTimings } from './timings.ts';

/** A mail that is to be written. */
export interface RowToWrite extends LeasedRow {
  template: string;
  attempts: number;
  /** How many of the attempts did not fail because something did not answer. */
  failures: number;
}

/** Mails that are to be written, and how. */
export interface Writing<Row extends RowToWrite, Written> {
  database: Database<NotificationSchema>;
  table: LeasedTable;
  /** Undefined: there is nothing to send. Rejects if it cannot be written now. */
  write: (row: Row) => Promise<Written | undefined>;
  /** Replaces the row by what was written. Has no effect if the lease is lost. */
  store: (row: Row, written: Written | undefined) => Promise<void>;
  timings: MailTimings;
  logger: Logger;
}

/** It is logged, so it does not contain the mail. `needless`: there is nothing to send. */
type Result = Outcome & ({ outcome: 'written' | 'needless' } | Retry);

interface Retry {
  outcome: 'retry';
  afterMs: number;
  reason: string;
  /** Whether this is not just a dependency that does not answer. */
  isFailure: boolean;
}

/** How many mails are written concurrently, half of them of one CRM at most. */
const writtenConcurrently = 10;
const firstRetryMs = 200;
const longestRetryMs = 30_000;

/** Writes mails. CRMs take turns, so one with thousands of them delays only its own. */
export function startWriting<Row extends RowToWrite, Written extends object>(
  writing: Writing<Row, Written>,
): AsyncDisposable {
  const { database, table, timings, logger } = writing;
  const written = new WeakMap<Row, Written>();
  const kind: DeliveryKind<Row, Result> = {
    name: 'mail',
    verb: { base: 'write', done: ['written', 'needless'] },
    table,
    attempt: async (row, _signal, stopping) => {
      try {
        const mail = await writing.write(row);
        if (mail === undefined) return { outcome: 'needless' };
        written.set(row, mail);
        return { outcome: 'written' };
      } catch (error) {
        return decideAfterFailure(error, row, stopping, logger);
      }
    },
    record: async (row, result) => {
      if (result.outcome === 'retry') return postpone(writing, row, result);
      await writing.store(row, written.get(row));
      return database.committed();
    },
    describe: ({ id, template, attempts }) => ({ id, template, attempts }),
    onResult: () => undefined,
  };
  return startDelivery({ kind, database, connections: writtenConcurrently, timings, logger });
}

/**
 * Whatever the error, the mail is written in the end: what does not answer will, and what is wrong will be corrected.
 */
function decideAfterFailure(
  error: unknown,
  { crmId, id, attempts, failures }: RowToWrite,
  stopping: AbortSignal,
  logger: Logger,
): Retry {
  const isFailure = !(error instanceof DomainError && error.category === 'unavailable');
  if (isFailure && failures + 1 >= suspiciousFailures)
    logger.error({ err: error, crmId, id, failures }, 'the mail cannot be written');
  const afterMs = stopping.aborted ? 0 : Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(attempts, 10));
  return {
    outcome: 'retry',
    afterMs,
    reason: error instanceof DomainError ? error.code : describeError(error).type,
    isFailure,
  };
}

/** Has no effect if the lease is lost. */
async function postpone<Row extends RowToWrite>(
  { database, table }: Pick<Writing<Row, object>, 'database' | 'table'>,
  { crmId, id, lease }: Row,
  { afterMs, isFailure }: Retry,
): Promise<void> {
  await sql`
    UPDATE ${sql.table(table.name)}
       SET lease = NULL, due_at = ${dueAfter(afterMs, table)}, attempts = attempts + 1, failures = failures + ${Number(isFailure)}
     WHERE crm_id = ${crmId} AND id = ${id} AND lease = ${lease}`.execute(database.kysely);
}
