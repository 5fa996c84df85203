import { originJson } from '@scheduling/messaging';
import { sql, type Transaction } from 'kysely';
import { timeOf } from '../db/clock.ts';
import type { CalendarSchema } from '../db/schema.ts';
import type { CalendarDependencies } from '../dependencies.ts';

/**
 * Removes the expired reservations with these references, so that the references are free again before the sweeper
 * runs.
 */
export async function reclaimReservations(
  { database, bookings }: CalendarDependencies,
  crmId: string,
  references: string[],
): Promise<void> {
  await database.transaction(async (tx) => {
    const appointments = await tx
      .selectFrom('appointment')
      .select('id')
      .where('crmId', '=', crmId)
      .where('id', 'in', (query) =>
        query
          .selectFrom('participation')
          .select('appointmentId')
          .where('crmId', '=', crmId)
          .where(sql<boolean>`reference = ANY(${references})`)
          .where('reservedUntil', '<=', timeOf(crmId)),
      )
      .orderBy('id')
      .forNoKeyUpdate()
      .execute();
    // A separate statement: it must see what was committed before the locks were granted.
    for (const { id } of appointments) bookings.expired(tx, await reclaimOf(tx, crmId, id));
  });
}

/**
 * Returns how many reservations of the appointment had expired. The caller holds the lock on it, and reads it
 * afterwards: it may have ended with them, and be gone.
 */
export async function reclaimOf(
  tx: Transaction<CalendarSchema>,
  crmId: string,
  appointmentId: string,
): Promise<number> {
  const request = JSON.stringify({ crmId, appointmentId, origin: originJson() });
  const { rows } = await sql<{
    result: { reclaimed: number };
  }>`SELECT reclaim_reservations(${request}) AS result`.execute(tx);
  return rows[0]!.result.reclaimed;
}
