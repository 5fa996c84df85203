import { type Kysely, type QueryResult, type RawBuilder, sql } from 'kysely';

/**
 * A table, not partitioned, whose rows are delivered to external systems. It has the columns of {@link LeasedColumns},
 * `state` and `due_at`, an index on `(crm_id, due_at)` and one on `(lease)`, both `WHERE state = 'pending'`. In the
 * expressions `item` is the row.
 *
 * As long as Postgres's statistics say that the table is nearly empty, any index that begins with `crm_id` seems as
 * good as the right one, and thousands of new rows would be read for each of thousands. So a statement reads rows that
 * it has found again by their `ctid`, and {@link inIndexOrder} has those with an `ORDER BY` and `LIMIT` read from the
 * index that has this order.
 */
export interface LeasedTable {
  name: string;
  /** Rows with the same lane are delivered sequentially: those to one person, or of one webhook. */
  lane: RawBuilder<string>;
  /** Rows with the same host share its connections. */
  host: RawBuilder<string>;
  /** Whether it has a column `expires_at`, after which a row is no longer delivered. */
  expires: boolean;
  /** A row that has to wait for another one. */
  isBlocked?: RawBuilder<boolean>;
  /** When the other one is due. Null: it is being delivered, or will be soon. */
  blockedUntil?: RawBuilder<Date | null>;
}

export interface LeasedColumns {
  crmId: string;
  id: string;
  /** Fencing token of the process that holds the row until `due_at`. */
  lease: string | null;
}

/** A row leased by this process. */
export interface LeasedRow extends LeasedColumns {
  lane: string;
  host: string;
  expiresAt?: Date | null;
  /** When it was leased, by the database's clock, and at the same moment by that of `performance`. */
  leasedAt: Date;
  leasedMs: number;
  /** Of the request that stored the row, with its span, if there is one. */
  requestId?: string;
  traceparent?: string | null;
}

export interface LeasedRows<Row> {
  rows: Row[];
  /**
   * Some due rows were not leased, because of others of the same lane or host, or of another process: those behind them
   * may be.
   */
  passedOver: boolean;
}

/** The maximum number of rows that one process leases or delivers at the same time: in total, per CRM and per host. */
export interface DeliveryLimits {
  total: number;
  perCrm: number;
  perHost: number;
}

/**
 * How many due rows of a CRM are considered: those behind them are not found as long as these all have to wait for
 * their lanes and hosts.
 */
const maxConsidered = 1_000;
const shortestPutBack = sql`interval '1 second'`;
/** What a row waits for can end before it is due. */
const longestPutBack = sql`interval '5 minutes'`;

/**
 * Leases due rows, at most `free`. CRMs take turns, so one with thousands of rows delays only itself. Not the whole
 * queue is read: the CRMs are found by skipping through the index, and only the first due rows of each are considered.
 * A lease is a token, valid until `due_at`: a process that lost it cannot record a result.
 */
export async function leaseDueRows<Row extends LeasedRow>(
  db: Kysely<unknown>,
  { name, lane, host, expires, isBlocked = sql<boolean>`false` }: LeasedTable,
  {
    limits,
    free,
    leaseMs,
    leased,
  }: {
    limits: DeliveryLimits;
    free: number;
    leaseMs: number;
    leased: readonly Pick<LeasedRow, 'crmId' | 'lane' | 'host'>[];
  },
): Promise<LeasedRows<Row>> {
  const crms = JSON.stringify(countBy(leased, (row) => row.crmId));
  const hosts = countBy(leased, (row) => row.host);
  const fullHosts = Object.keys(hosts).filter((each) => hosts[each]! >= limits.perHost);
  const lanes = leased.map((row) => row.lane);
  const table = sql.table(name);
  const { rows } = await inIndexOrder(
    db,
    sql<Row & { considered: number }>`
    WITH RECURSIVE ${firstOfCrms(table)}, due_crm AS (
      SELECT crm_id, ceil(2.0 * ${free}::int / count(*) OVER ())::int AS twice_its_share FROM crm WHERE due_at <= now()
    ), next_of_crm AS (
      SELECT due.*, row_number() OVER (PARTITION BY due.crm_id ORDER BY due.due_at, due.id) AS crm_turn
      FROM due_crm CROSS JOIN LATERAL (
        SELECT crm_id, id, tid, due_at, ${lane} AS lane, ${host} AS host
        FROM (${considered(table)}) AS item
        WHERE ${lane} <> ALL (${lanes}::text[]) AND ${host} <> ALL (${fullHosts}::text[]) AND NOT (${isBlocked})
        ORDER BY due_at
        LIMIT least(twice_its_share, greatest(0, ${limits.perCrm}::int - coalesce((${crms}::jsonb ->> due_crm.crm_id)::int, 0)))
      ) AS due
    ), turns AS (
      SELECT *,
        row_number() OVER (PARTITION BY lane ORDER BY due_at, id) AS lane_turn,
        row_number() OVER (PARTITION BY host ORDER BY crm_turn, due_at, id) + coalesce((${JSON.stringify(hosts)}::jsonb ->> host)::int, 0) AS host_turn
      FROM next_of_crm
    ), chosen AS (
      SELECT tid FROM turns
      WHERE lane_turn = 1 AND host_turn <= ${limits.perHost}
      ORDER BY crm_turn, due_at
      LIMIT ${free}
    ), leased AS (
      SELECT item.ctid AS tid FROM ${table} AS item JOIN chosen ON item.ctid = tid
      WHERE state = 'pending' AND due_at <= now()
      FOR UPDATE OF item SKIP LOCKED
    )
    UPDATE ${table} AS item SET lease = gen_random_uuid(), due_at = ${dueAfter(leaseMs, { expires })}
    FROM leased WHERE item.ctid = tid
    RETURNING item.*, ${lane} AS lane, ${host} AS host, now() AS leased_at, (SELECT count(*) FROM turns) AS considered`,
  );
  const leasedMs = performance.now();
  for (const row of rows) row.leasedMs = leasedMs;
  return { rows, passedOver: rows.length < (rows[0]?.considered ?? 0) };
}

/**
 * Puts back those of the considered rows that have to wait for other ones, until these are due: otherwise a CRM with
 * many of them would get nothing else delivered. Only of CRMs that have more due rows than are considered, and fewer
 * leased ones than they may, so normally it writes nothing. Returns how many it has put back.
 */
export async function putBackBlockedRows(
  db: Kysely<unknown>,
  { name, expires, isBlocked, blockedUntil = sql<null>`NULL::timestamptz` }: LeasedTable,
  { limits, leased }: { limits: Pick<DeliveryLimits, 'perCrm'>; leased: readonly Pick<LeasedRow, 'crmId'>[] },
): Promise<number> {
  if (isBlocked === undefined) return 0;
  const table = sql.table(name);
  const counts = countBy(leased, (row) => row.crmId);
  const fullCrms = Object.keys(counts).filter((each) => counts[each]! >= limits.perCrm);
  const due = sql<Date>`greatest(now() + ${shortestPutBack}, least(blocked_until, now() + ${longestPutBack}))`;
  const { numAffectedRows = 0n } = await inIndexOrder(
    db,
    sql`
    WITH RECURSIVE ${firstOfCrms(table)}, due_crm AS (
      SELECT crm_id FROM crm
      WHERE due_at <= now() AND crm_id <> ALL (${fullCrms}::text[]) AND EXISTS (
        SELECT FROM ${table} AS item WHERE item.crm_id = crm.crm_id AND state = 'pending' AND item.due_at <= now() OFFSET ${maxConsidered}
      )
    ), blocked AS (
      SELECT due.* FROM due_crm CROSS JOIN LATERAL (
        SELECT tid, coalesce(${blockedUntil}, now()) AS blocked_until FROM (${considered(table)}) AS item WHERE ${isBlocked}
      ) AS due
    ), locked AS (
      SELECT item.ctid AS tid, blocked_until FROM ${table} AS item JOIN blocked ON item.ctid = tid
      WHERE state = 'pending' AND lease IS NULL AND due_at <= now()
      LIMIT ${maxConsidered}
      FOR UPDATE OF item SKIP LOCKED
    )
    UPDATE ${table} AS item SET due_at = ${atExpiry(due, { expires })}
    FROM locked WHERE item.ctid = tid`,
  );
  return Number(numAffectedRows);
}

/** Executes a statement with a plan that sorts only what no index has in order. */
function inIndexOrder<Row>(db: Kysely<unknown>, statement: RawBuilder<Row>): Promise<QueryResult<Row>> {
  return db.transaction().execute(async (tx) => {
    await sql`SET LOCAL enable_sort = off`.execute(tx);
    return statement.execute(tx);
  });
}

/** The CRMs with pending rows, and when the first one of each is due. */
function firstOfCrms(table: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`crm AS (
      (SELECT crm_id, due_at FROM ${table} WHERE state = 'pending' ORDER BY crm_id, due_at LIMIT 1)
      UNION ALL
      SELECT next.crm_id, next.due_at FROM crm CROSS JOIN LATERAL (
        SELECT crm_id, due_at FROM ${table} AS item WHERE state = 'pending' AND item.crm_id > crm.crm_id ORDER BY crm_id, due_at LIMIT 1
      ) AS next
    )`;
}

/** The first due rows of the CRM of `due_crm`. */
function considered(table: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
          SELECT *, ctid AS tid FROM ${table} AS item WHERE item.crm_id = due_crm.crm_id AND state = 'pending' AND due_at <= now() ORDER BY due_at LIMIT ${maxConsidered}
        `;
}

/**
 * The time by the database's clock. That of this process may be wrong, and must not decide what expires or what
 * strangers verify.
 */
export function databaseTime({ leasedAt, leasedMs }: Pick<LeasedRow, 'leasedAt' | 'leasedMs'>): Date {
  return new Date(leasedAt.getTime() + performance.now() - leasedMs);
}

/** Extends the leases of rows. A lease that was lost stays lost. */
export function renewLeases(
  db: Kysely<unknown>,
  table: LeasedTable,
  rows: Iterable<LeasedColumns>,
  leaseMs: number,
): Promise<void> {
  return changeLeased(db, table, rows, sql`due_at = ${dueAfter(leaseMs, table)}`);
}

/** Makes rows that are not being delivered available again, to any process. */
export function releaseLeases(db: Kysely<unknown>, table: LeasedTable, rows: Iterable<LeasedColumns>): Promise<void> {
  return changeLeased(db, table, rows, sql`lease = NULL, due_at = now()`);
}

/** A row that is locked is being finished or removed. */
async function changeLeased(
  db: Kysely<unknown>,
  { name }: LeasedTable,
  rows: Iterable<LeasedColumns>,
  changes: RawBuilder<unknown>,
): Promise<void> {
  const leases = [...rows].map((row) => row.lease);
  if (leases.length === 0) return;
  const table = sql.table(name);
  await sql`
    WITH held AS (
      SELECT ctid AS tid FROM ${table} WHERE state = 'pending' AND lease = ANY(${leases}::uuid[]) FOR UPDATE SKIP LOCKED
    )
    UPDATE ${table} AS item SET ${changes}
    FROM held WHERE item.ctid = tid`.execute(db);
}

export function dueAfter(delayMs: number, table: Pick<LeasedTable, 'expires'>): RawBuilder<Date> {
  return atExpiry(sql<Date>`now() + make_interval(secs => ${delayMs / 1_000})`, table);
}

/** A row that expires before then is checked again when it expires. */
function atExpiry(due: RawBuilder<Date>, { expires }: Pick<LeasedTable, 'expires'>): RawBuilder<Date> {
  return expires ? sql<Date>`least(${due}, expires_at)` : due;
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(items, keyOf)].map(([key, group]) => [key, group.length]));
}
