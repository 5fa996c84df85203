import { waitUntil } from '@scheduling/embedded';
import { type ConsumingService, consumingServices } from '@scheduling/events';
import { type DatabaseService, databaseServices } from '@scheduling/stack';
import { sumSamples } from '@scheduling/testing';
import { inject } from 'vitest';
import type { TestCrm } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';

/** All rows of some CRMs in the databases, and all events about them. */
export async function snapshot(crms: TestCrm[]): Promise<Record<string, string[]>> {
  const crmIds = crms.map(({ crmId }) => crmId);
  const entries = await Promise.all(
    databaseServices.map(async (service) => [service, await rowsOf(service, crmIds)] as const),
  );
  return Object.fromEntries(entries);
}

async function rowsOf(service: DatabaseService, crmIds: string[]): Promise<string[]> {
  const statement = (statements[service] ??= await selectRows(service));
  return (await query<{ row: string }>(service, statement, [crmIds])).map(({ row }) => row);
}

/** The statement for each database, made once: to list the columns takes longer than to read the rows. */
const statements: Partial<Record<DatabaseService, string>> = {};

async function selectRows(service: DatabaseService): Promise<string> {
  const tables = await query<{ name: string }>(
    service,
    `SELECT c.table_name AS name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
      WHERE c.table_schema = 'public' AND c.column_name = 'crm_id' AND t.table_type = 'BASE TABLE' ORDER BY 1`,
  );
  const rows = tables.map(
    ({ name }) =>
      `SELECT '${name} ' || (to_jsonb(t) - '${columnsOfItsOwn(name)}'::text[])::text AS row FROM "${name}" t WHERE crm_id = ANY ($1)`,
  );
  const events = `SELECT 'outbox ' || id || ' ' || subject FROM outbox WHERE data ->> 'crmId' = ANY ($1)`;
  return `${[...rows, events].join(' UNION ALL ')} ORDER BY 1`;
}

/**
 * What changes by itself, as an array of Postgres: every request updates when a key was last used, and timeslots of
 * opening hours are made each day, and when the clock of their sandbox is set.
 */
function columnsOfItsOwn(table: string): string {
  return table === 'resource_hours' ? '{revision,made_from,made_until,due_at}' : '{last_used_at}';
}

/** Waits until the events of these CRMs have been processed everywhere, and their mails have been sent. */
export async function waitUntilQuiet(crms: TestCrm[]): Promise<void> {
  let last: unknown;
  await waitUntil(
    async () => {
      const [{ mails }] = (await query<{ mails: number }>(
        'notification',
        `
        SELECT count(*)::int AS mails
          FROM (SELECT crm_id, state FROM mail UNION ALL SELECT crm_id, state FROM unwritten_mail) AS mail
         WHERE crm_id = ANY ($1) AND state = 'pending'`,
        [crms.map(({ crmId }) => crmId)],
      )) as [{ mails: number }];
      const unsent = await Promise.all(
        databaseServices.map((service) => query(service, 'SELECT id FROM outbox WHERE sent_at IS NULL')),
      );
      const lags = await Promise.all(consumingServices.map(readLag));
      const now = JSON.stringify(await snapshot(crms));
      const quiet =
        mails === 0 && unsent.every((rows) => rows.length === 0) && lags.every((lag) => lag === 0) && now === last;
      last = now;
      return quiet;
    },
    { what: 'the events to be processed', timeoutMs: 60_000, intervalMs: 500 },
  );
}

/** The number of events that a service has not processed yet. */
async function readLag(service: ConsumingService): Promise<number | undefined> {
  const response = await fetch(`${inject('stack').operations[service]}/metrics`);
  return sumSamples(await response.text(), 'scheduling_consumer_lag_events');
}
