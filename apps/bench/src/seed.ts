import { withClient } from '@scheduling/embedded';
import type { Client } from 'pg';
import type { Tenant } from './tenant.ts';

/** What the tables contain for a case, before it begins. */
export interface SeedSize {
  /** Spread over the resources, then over the hours of a day, then over the days. */
  appointments?: number;
  resources?: number;
  /** Of one resource. */
  appointmentsADay?: number;
  /** In each appointment. */
  participations?: number;
  /** Of the participations. */
  state?: 'BOOKED' | 'REQUESTED';
  /** One for each resource and day. */
  timeslots?: number;
}

/** Of every tenant. Their references are `c-0`, `c-1` and so on. */
export const customers = 1_000;
const firstDay = Date.UTC(2031, 0, 1);
const dayMs = 86_400_000;

/** As `YYYY-MM-DD`. */
export function dayOf(number: number): string {
  return new Date(firstDay + number * dayMs).toISOString().slice(0, 10);
}

/** Inserts the tenant's rows into a database of calendar; the same rows every time. `url` is that of the superuser. */
export async function seedCalendar(
  url: string,
  { crmId, providerId, providerReference }: Tenant,
  size: SeedSize,
): Promise<void> {
  const {
    appointments = 0,
    resources = 10,
    appointmentsADay = 8,
    participations = 0,
    state = 'BOOKED',
    timeslots = 0,
  } = size;
  await withSeeder(url, async (client) => {
    const insert = (text: string, ...values: unknown[]) => client.query(text, [crmId, ...values]);
    await insert(
      'INSERT INTO provider (crm_id, id, reference, time_zone, version) VALUES ($1, $2, $3, $4, 1) ON CONFLICT DO NOTHING',
      providerId,
      providerReference,
      'UTC',
    );
    await insert(
      `INSERT INTO customer (crm_id, id, provider_id, reference, user_name, email, language, version)
       SELECT $1, ${idOf('n')}, $2, 'c-' || n, 'Grace Hopper', 'c-' || n || '@customers.example', 'en', 1 FROM generate_series(0, $3::int - 1) AS n`,
      providerId,
      customers,
    );
    await insert(
      `INSERT INTO appointment (crm_id, id, provider_id, reference, resource_reference, product_reference, description, starts_at, ends_at, capacity, taken, accept_bookings, content_digest)
       SELECT $1, ${idOf('n')}, $2, 'a-' || n, 'room-' || n % $4::int, 'cut', 'Haircut', starts_at, starts_at + interval '30 minutes', 1000000, $6::int, true, '\\x00'
         FROM generate_series(0, $3::int - 1) AS n,
              LATERAL (SELECT timestamptz '2031-01-01 08:00Z' + n / ($4::int * $5::int) * interval '1 day' + n / $4::int % $5::int * interval '1 hour') AS start (starts_at)`,
      providerId,
      appointments,
      resources,
      appointmentsADay,
      state === 'BOOKED' ? participations : 0,
    );
    await insert(
      `INSERT INTO participation (crm_id, id, appointment_id, customer_id, reference, state, exempt)
       SELECT $1, ${idOf('n')}, ${idOf('n / $2::int')}, ${idOf('n % $3::int')}, 'p-' || n, $5, false FROM generate_series(0, $2::int * $4::int - 1) AS n`,
      participations,
      customers,
      appointments,
      state,
    );
    await insert(
      `INSERT INTO timeslot (crm_id, id, provider_id, reference, resource_reference, starts_at, ends_at, raster, default_capacity, default_accept_bookings, state, content_digest)
       SELECT $1, ${idOf('n')}, $2, 't-' || n, 'room-' || n % $4::int, starts_at, starts_at + interval '10 hours', 30, 1, true, 'BOOKABLE', '\\x00'
         FROM generate_series(0, $3::int - 1) AS n, LATERAL (SELECT timestamptz '2031-01-01 08:00Z' + n / $4::int * interval '1 day') AS start (starts_at)`,
      providerId,
      timeslots,
      resources,
    );
  });
}

/** Inserts the tenant's customers into a database of customer. */
export async function seedCustomers(url: string, { crmId, providerId, providerReference }: Tenant): Promise<void> {
  await withSeeder(url, (client) =>
    client.query(
      `INSERT INTO customer (crm_id, id, provider_id, provider_reference, reference, user_name, email, language)
       SELECT $1, ${idOf('n')}, $2, $3, 'c-' || n, 'Grace Hopper', 'c-' || n || '@customers.example', 'en' FROM generate_series(0, $4::int - 1) AS n`,
      [crmId, providerId, providerReference, customers],
    ),
  );
}

/** Ids that ascend with the number, as those of the services do with the time. */
function idOf(number: string): string {
  return `('00000000-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`;
}

/** Leaves the tables of a database as after a while of normal operation, and nothing to write to the disk. */
export async function finishSeeding(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query('VACUUM (ANALYZE)');
    await client.query('CHECKPOINT');
  });
}

/** Foreign keys are not checked, which would take most of the time. */
function withSeeder(url: string, seed: (client: Client) => Promise<unknown>): Promise<void> {
  return withClient(url, async (client) => {
    await client.query("SET session_replication_role = 'replica'; SET synchronous_commit = off");
    await seed(client);
  });
}
