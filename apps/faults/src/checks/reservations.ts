import { waitUntil, withClient } from '@scheduling/embedded';
import type { System } from '../system/start-system.ts';
import type { Violation } from './evidence.ts';

/** A reservation is over after 3 minutes and removed within another 5 seconds (interface 3.1). */
const removalMs = 15_000;

/**
 * I7: no reservation stays. The database's clock, which decides about them, is put forward by 4 minutes. Last of all:
 * it changes what is there.
 */
export async function checkReservations({ postgres, groups }: System): Promise<Violation[]> {
  await withClient(postgres.url('postgres'), (client) =>
    client.query(`ALTER DATABASE calendar SET scheduling.clock_offset = '4 minutes'`),
  );
  // The offset counts for new connections, and a process that runs expects none to be over before the first one should
  // be.
  await groups.calendar.replaceAll();
  const left = async () =>
    withClient(postgres.url('calendar'), async (client) => {
      const { rows } = await client.query<{ reserved: number; miscounted: number }>(
        `SELECT (SELECT count(*)::int FROM participation WHERE state = 'RESERVED') AS reserved,
                (SELECT count(*)::int FROM appointment AS a WHERE taken <> (
                  SELECT count(*) FROM participation AS p WHERE p.crm_id = a.crm_id AND p.appointment_id = a.id AND p.state IN ('BOOKED', 'RESERVED')
                )) AS miscounted`,
      );
      return rows[0]!;
    });
  try {
    await waitUntil(async () => Object.values(await left()).every((count) => count === 0), {
      what: 'the end of all reservations',
      timeoutMs: removalMs,
    });
    return [];
  } catch {
    const { reserved, miscounted } = await left();
    return [
      {
        invariant: 'I7',
        text: `${reserved} reservations are left, and ${miscounted} appointments have a wrong number of seats taken`,
      },
    ];
  }
}
