import { currentContext } from '@scheduling/runtime';
import type { Kysely, Selectable, Transaction } from 'kysely';
import type { AuditEntryTable, MessagingSchema } from './schema.ts';

/** What operators can change. */
type Action =
  | 'crm.create'
  | 'crm.update'
  | 'dead-letter.drop'
  | 'dead-letter.retry'
  | 'erasures.replay'
  | 'key.create'
  | 'key.revoke'
  | 'key-revocations.replay'
  | 'provider.erase'
  | 'provider-deletions.replay'
  | 'user-deletions.replay';

const maxListed = 500;

/**
 * Records in the transaction of a change which operator made it. Never contains a key or personal data of customers and
 * users.
 *
 * @param target the ids, references or prefixes of what was changed
 */
export async function recordAction<Schema extends MessagingSchema>(
  tx: Transaction<Schema>,
  action: Action,
  ...target: string[]
): Promise<void> {
  const { operator = 'unknown', requestId = '' } = currentContext() ?? {};
  await (tx as unknown as Kysely<MessagingSchema>)
    .insertInto('auditEntry')
    .values({ operator, action, target: target.join(' '), requestId })
    .execute();
}

/** The same for an action in parts: of those that follow each other, the first one is recorded. */
export async function recordPart<Schema extends MessagingSchema>(
  tx: Transaction<Schema>,
  action: Action,
  target: string,
): Promise<void> {
  const [newest] = await listAuditEntries(tx as unknown as Kysely<MessagingSchema>, undefined, 1);
  const { operator = 'unknown' } = currentContext() ?? {};
  if (newest?.operator === operator && newest.action === action && newest.target === target) return;
  await recordAction(tx, action, target);
}

/** The newest 500 since then, newest first. */
export async function listAuditEntries(
  db: Kysely<MessagingSchema>,
  since: Date | undefined,
  limit = maxListed,
): Promise<Selectable<AuditEntryTable>[]> {
  const all = db.selectFrom('auditEntry').selectAll().orderBy('id', 'desc').limit(limit);
  return (since === undefined ? all : all.where('recordedAt', '>=', since)).execute();
}
