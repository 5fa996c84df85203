import type { ReplayErasuresResponse } from '@scheduling/contracts/customer/v1';
import { type Broker, events, readPublished, replayConsumer } from '@scheduling/events';
import { recordAction } from '@scheduling/messaging';
import { type Database, forgetKeys } from '@scheduling/postgres';
import { sql, type Transaction } from 'kysely';
import type { CustomerSchema } from '../db/schema.ts';

/** The erased customer and the erasure's id. */
interface Erased {
  crmId: string;
  customerId: string;
  id: string;
  /** What it is about, as far as it is known. */
  subject: 'customer' | 'address';
}

/**
 * Repeats every erasure that was requested or completed since a backup was made, after any of the databases was
 * restored from it. Erasures missing from this service's restored database are recovered from the events in NATS, which
 * are kept for 7 days. The requests are republished within a second, and the other services confirm again. Rejects with
 * `broker.unavailable`.
 */
export async function replayErasures(
  database: Database<CustomerSchema>,
  broker: Broker,
  since: Date,
): Promise<ReplayErasuresResponse> {
  const published = await readPublished(broker, replayConsumer, events.customerErasureRequested, since);
  const told = published.events.map(({ crmId, customerId, erasureId, byAddress }) => ({
    crmId,
    customerId,
    id: erasureId,
    subject: byAddress ? ('address' as const) : ('customer' as const),
  }));
  return database.transaction(async (tx) => {
    const recovered = await recordUnknown(tx, told);
    const replayed = await requestAgain(tx, told, since);
    await forgetCustomers(tx, replayed);
    await forgetConfirmations(tx, replayed);
    await recordAction(tx, 'erasures.replay', since.toISOString());
    return { replayed: replayed.length, recovered, eventsReachBackTo: published.reachBackTo };
  });
}

/** Returns how many there were. */
async function recordUnknown(tx: Transaction<CustomerSchema>, told: Erased[]): Promise<number> {
  const { numAffectedRows } = await sql`
    INSERT INTO erasure (crm_id, customer_id, id, subject, state, ignore_future_appointments)
    SELECT DISTINCT ON (crm_id, customer_id) crm_id, customer_id, id, subject, 'requested', true FROM ${rowsOf(told)}
        ON CONFLICT ON CONSTRAINT erasure_customer_key DO NOTHING`.execute(tx);
  return Number(numAffectedRows);
}

/** An intent that calendar has not decided on yet is completed anyway, unless an event says that it was requested. */
async function requestAgain(tx: Transaction<CustomerSchema>, told: Erased[], since: Date): Promise<Erased[]> {
  const { rows } = await sql<Erased>`
    UPDATE erasure SET state = 'requested', completed_at = NULL, published_at = '-infinity'
     WHERE (state <> 'checking' AND (requested_at >= ${since} OR completed_at >= ${since}))
        OR (crm_id, customer_id) IN (SELECT crm_id, customer_id FROM ${rowsOf(told)})
    RETURNING crm_id, customer_id, id, subject`.execute(tx);
  return rows;
}

async function forgetCustomers(tx: Transaction<CustomerSchema>, replayed: Erased[]): Promise<void> {
  await sql`
    DELETE FROM customer USING ${rowsOf(replayed)} WHERE customer.crm_id = erased.crm_id AND customer.id = erased.customer_id`.execute(
    tx,
  );
  for (const [crmId, erased] of Map.groupBy(replayed, ({ crmId }) => crmId)) {
    await forgetKeys(
      tx,
      crmId,
      erased.map(({ customerId }) => customerId),
    );
  }
}

async function forgetConfirmations(tx: Transaction<CustomerSchema>, replayed: Erased[]): Promise<void> {
  await sql`
    DELETE FROM erasure_confirmation AS confirmation USING ${rowsOf(replayed)}
     WHERE confirmation.crm_id = erased.crm_id AND confirmation.erasure_id = erased.id`.execute(tx);
}

function rowsOf(erased: Erased[]) {
  const [crmIds, customerIds] = [erased.map(({ crmId }) => crmId), erased.map(({ customerId }) => customerId)];
  const [ids, subjects] = [erased.map(({ id }) => id), erased.map(({ subject }) => subject)];
  return sql`unnest(${crmIds}::text[], ${customerIds}::uuid[], ${ids}::uuid[], ${subjects}::text[]) AS erased (crm_id, customer_id, id, subject)`;
}
