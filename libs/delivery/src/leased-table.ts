import { type Kysely, type RawBuilder, sql } from 'kysely';

/**
 * A table whose rows are delivered to external systems. It has the columns of {@link LeasedColumns}, an index on `(crm_id, due_at)` and one on `(lease)`,
 * both `WHERE state = 'pending'`. In the expressions `item` is the row.
 */
export interface LeasedTable {
  name: string;
  /** Rows with the same lane are delivered sequentially: those to one person, or of one webhook. */
  lane: RawBuilder<string>;
  /** Rows with the same host share its connections. */
  host: RawBuilder<string>;
  /** A row that has to wait for another one. */
  isBlocked?: RawBuilder<boolean>;
}

export interface LeasedColumns {
  crmId: string;
  id: string;
  /** Fencing token of the process that holds the row until `due_at`. */
  lease: string | null;
  /** After this the row is no longer delivered. */
  expiresAt: Date | null;
  requestId: string;
  traceparent: string | null;
}

/** A row leased by this process. */
export interface LeasedRow extends LeasedColumns {
  lane: string;
  host: string;
}

export interface LeasedRows<Row> {
  rows: Row[];
  /** Some due rows were not leased, because of others of the same lane or host, or of another process: those behind them may be. */
  passedOver: boolean;
}

/** The maximum number of concurrent deliveries of one process: in total, per CRM and per host. */
export interface DeliveryLimits {
  total: number;
  perCrm: number;
  perHost: number;
}

/**
 * Leases due rows, at most `free`. CRMs take turns, so one with thousands of rows delays only itself; the CRMs are found
 * by skipping through the index, not by reading the queue. A lease is a token, valid until `due_at`: a process that lost it cannot record a result.
 */
export async function leaseDueRows<Row extends LeasedRow>(
  db: Kysely<unknown>,
  { name, lane, host, isBlocked = sql<boolean>`false` }: LeasedTable,
  { limits, free, leaseMs, inFlight }: { limits: DeliveryLimits; free: number; leaseMs: number; inFlight: Iterable<Pick<LeasedRow, 'crmId' | 'lane' | 'host'>> },
): Promise<LeasedRows<Row>> {
  const busy = [...inFlight];
  const crms = JSON.stringify(countBy(busy, (row) => row.crmId));
  const hosts = countBy(busy, (row) => row.host);
  const fullHosts = Object.keys(hosts).filter((each) => hosts[each]! >= limits.perHost);
  const lanes = busy.map((row) => row.lane);
  const table = sql.table(name);
  const { rows } = await sql<Row & { considered: number }>`
    WITH RECURSIVE crm AS (
      (SELECT crm_id FROM ${table} WHERE state = 'pending' ORDER BY crm_id LIMIT 1)
      UNION ALL
      SELECT (SELECT item.crm_id FROM ${table} AS item WHERE state = 'pending' AND item.crm_id > crm.crm_id ORDER BY item.crm_id LIMIT 1)
      FROM crm WHERE crm.crm_id IS NOT NULL
    ), next_of_crm AS (
      SELECT due.*, row_number() OVER (PARTITION BY due.crm_id ORDER BY due.due_at, due.id) AS crm_turn
      FROM crm CROSS JOIN LATERAL (
        SELECT crm_id, id, due_at, ${lane} AS lane, ${host} AS host
        FROM ${table} AS item
        WHERE item.crm_id = crm.crm_id AND state = 'pending' AND due_at <= now()
          AND ${lane} <> ALL (${lanes}::text[]) AND ${host} <> ALL (${fullHosts}::text[]) AND NOT (${isBlocked})
        ORDER BY due_at
        LIMIT greatest(0, ${limits.perCrm}::int - coalesce((${crms}::jsonb ->> crm.crm_id)::int, 0))
      ) AS due
      WHERE crm.crm_id IS NOT NULL
    ), turns AS (
      SELECT *,
        row_number() OVER (PARTITION BY lane ORDER BY due_at, id) AS lane_turn,
        row_number() OVER (PARTITION BY host ORDER BY crm_turn, due_at, id) + coalesce((${JSON.stringify(hosts)}::jsonb ->> host)::int, 0) AS host_turn
      FROM next_of_crm
    ), chosen AS (
      SELECT crm_id, id FROM turns
      WHERE lane_turn = 1 AND host_turn <= ${limits.perHost}
      ORDER BY crm_turn, due_at
      LIMIT ${free}
    ), leased AS (
      SELECT item.crm_id, item.id FROM ${table} AS item JOIN chosen USING (crm_id, id)
      WHERE state = 'pending' AND due_at <= now()
      FOR UPDATE OF item SKIP LOCKED
    )
    UPDATE ${table} AS item SET lease = gen_random_uuid(), due_at = ${dueAfter(leaseMs)}
    FROM leased WHERE item.crm_id = leased.crm_id AND item.id = leased.id
    RETURNING item.*, ${lane} AS lane, ${host} AS host, (SELECT count(*) FROM turns) AS considered`.execute(db);
  return { rows, passedOver: rows.length < (rows[0]?.considered ?? 0) };
}

/** Extends the leases of deliveries in progress. A lease that was lost stays lost. A row that is locked is being finished or removed. */
export async function renewLeases(db: Kysely<unknown>, { name }: LeasedTable, rows: Iterable<LeasedColumns>, leaseMs: number): Promise<void> {
  const leases = [...rows].map((row) => row.lease);
  if (leases.length === 0) return;
  const table = sql.table(name);
  await sql`
    WITH held AS (
      SELECT crm_id, id FROM ${table} WHERE state = 'pending' AND lease = ANY(${leases}::uuid[]) FOR UPDATE SKIP LOCKED
    )
    UPDATE ${table} AS item SET due_at = ${dueAfter(leaseMs)}
    FROM held WHERE item.crm_id = held.crm_id AND item.id = held.id`.execute(db);
}

/** A row that expires before then is checked again when it expires. */
export function dueAfter(delayMs: number): RawBuilder<Date> {
  return sql<Date>`least(now() + make_interval(secs => ${delayMs / 1_000}), expires_at)`;
}

function countBy<T>(items: T[], keyOf: (item: T) => string): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(items, keyOf)].map(([key, group]) => [key, group.length]));
}
