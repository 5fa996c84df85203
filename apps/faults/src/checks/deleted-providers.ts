import { withClient } from '@scheduling/embedded';
import { type DatabaseService, databaseServices } from '@scheduling/stack';
import type { Evidence, Violation } from './evidence.ts';

/** Rows that keep the id of a deleted provider, and nothing else of it (privacy.md). */
const keepingIds: Record<string, string> = {
  'calendar.closed_provider': 'true',
  // Those who were erased.
  'calendar.customer': 'erased_at IS NOT NULL',
  'customer.closed_provider': 'true',
  'notification.erased_provider': 'true',
  'webhook.event': 'true',
  'webhook.incoming_event': 'true',
};

/** I21: no service has anything of a provider that identity does not have. */
export async function checkDeletedProviders({ system, passing: { crmId } }: Evidence): Promise<Violation[]> {
  const read = <Row extends object>(service: DatabaseService, query: string, values: unknown[]): Promise<Row[]> =>
    withClient(system.postgres.url(service), async (client) => (await client.query<Row>(query, values)).rows);
  const existing = await read<{ id: string }>('identity', 'SELECT id FROM provider WHERE crm_id = $1', [crmId]);
  const ids = existing.map(({ id }) => id);
  const violations: Violation[] = [];
  for (const service of databaseServices) {
    const references = await read<{ table: string; column: string }>(
      service,
      `SELECT table_name AS table, column_name AS column FROM information_schema.columns
        WHERE table_schema = 'public' AND (column_name = 'provider_id' OR table_name = 'provider' AND column_name = 'id')`,
      [],
    );
    for (const { table, column } of references) {
      const place = `${service}.${table}`;
      const query = `SELECT DISTINCT "${column}" AS id FROM "${table}"
        WHERE crm_id = $1 AND "${column}" <> ALL ($2) AND NOT (${keepingIds[place] ?? 'false'})`;
      const left = await read<{ id: string }>(service, query, [crmId, ids]);
      if (left.length > 0)
        violations.push({ invariant: 'I21', text: `${place} has rows of ${left.length} providers that are deleted` });
    }
  }
  return violations;
}
