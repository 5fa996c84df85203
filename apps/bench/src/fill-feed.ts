import type { StackInfo } from '@scheduling/stack';
import { query } from '@scheduling/test-stack/databases';

/** Adds events to the feed of a CRM that look like changes of bookings, each of another one. */
export async function fillFeed(crmId: string, count: number, info: StackInfo): Promise<void> {
  await query(
    'webhook',
    `WITH counter AS (
       INSERT INTO event_counter AS counter (crm_id, last_sequence) VALUES ($1, $2)
       ON CONFLICT (crm_id) DO UPDATE SET last_sequence = counter.last_sequence + $2
       RETURNING last_sequence - $2 AS before
     )
     INSERT INTO event (crm_id, sequence, id, type, subject_id, version, appointment_id, customer_id, state, previous_state, actor, recorded_at)
     SELECT $1, before + number, uuidv7(), 'participation.changed', gen_random_uuid(), 2, gen_random_uuid(), gen_random_uuid(), 'CANCELED', 'BOOKED', 'service', now()
       FROM counter, generate_series(1, $2::int) AS number`,
    [crmId, count],
    info,
  );
}
