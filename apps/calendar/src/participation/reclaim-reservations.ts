import { originJson } from '@scheduling/messaging';
import { callFunction } from '@scheduling/postgres';
import type { CalendarDependencies } from '../dependencies.ts';

/** See reclaim-reservations.sql. */
export async function reclaimReservations(
  { database: { kysely }, bookings }: CalendarDependencies,
  crmId: string,
  references: string[],
): Promise<void> {
  const request = { crmId, references, origin: originJson() };
  const { reclaimed } = await callFunction<{ reclaimed: number }>(kysely, {
    name: 'reclaim_reservations',
    request,
    locks: '',
  });
  bookings.expired(kysely, reclaimed);
}
