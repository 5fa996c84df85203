import type { Database } from '@scheduling/postgres';
import {
  type ActiveSpan,
  inSpan,
  type Logger,
  type Loop,
  newRequestId,
  runWithContext,
  type SpanOptions,
  startLoop,
} from '@scheduling/runtime';
import type { Kysely } from 'kysely';
import { setTimeout as delay } from 'node:timers/promises';
import {
  databaseTime,
  type DeliveryLimits,
  leaseDueRows,
  type LeasedRow,
  type LeasedTable,
  putBackBlockedRows,
  releaseLeases,
  renewLeases,
} from './leased-table.ts';

/** The result of an attempt. A kind of delivery adds its own fields. */
export interface Outcome {
  outcome: string;
  /** When to retry the row. */
  afterMs?: number;
  /** Nothing can be delivered at the moment, whatever the row: the delivery pauses. */
  serverAway?: boolean;
}

/** What is delivered and how, such as mail by SMTP. */
export interface DeliveryKind<Row extends LeasedRow, Result extends Outcome> {
  /** For log lines and spans: `mail`. */
  name: string;
  /** What is done with a row, for spans, and the outcomes of a success, for log lines; `send` and `sent` by default. */
  verb?: { base: string; done: [string, ...string[]] };
  table: LeasedTable;
  /**
   * Tries once and never rejects. The row may have waited since it was leased: if others change or remove rows, an
   * attempt first reads whether it still holds the lease. `signal` aborts on a timeout of the attempt or when the
   * process stops; `stopping` only on the latter.
   */
  attempt: (row: Row, signal: AbortSignal, stopping: AbortSignal) => Promise<Result>;
  /** Records the result, unless the lease is lost. */
  record: (row: Row, result: Result) => Promise<void>;
  /** The attributes of the row for log lines and spans: ids and codes, no personal data. */
  describe: (row: Row) => Record<string, string | number>;
  /** Called with the result of every attempt, for metrics. */
  onResult: (result: Result) => void;
}

/** In milliseconds. */
export interface DeliveryTimings {
  /** How often due rows are polled if neither a commit of this process nor a retry wakes the delivery. */
  pollMs: number;
  /** A dead process's rows become available after this; a live process renews its leases three times as often. */
  leaseMs: number;
  attemptMs: number;
  /**
   * Nothing is delivered for this long when the server is unavailable; the pause doubles each time, up to the longest.
   */
  firstPauseMs: number;
  longestPauseMs: number;
  /** How long a stop waits for deliveries in progress. */
  stopMs: number;
}

export interface DeliveryOptions<Schema, Row extends LeasedRow, Result extends Outcome> {
  kind: DeliveryKind<Row, Result>;
  database: Database<Schema>;
  /**
   * The number of concurrent deliveries. One CRM or one host gets half of them at most, so that hanging ones leave room
   * for others.
   */
  connections: number;
  timings: DeliveryTimings;
  logger: Logger;
}

const defaultVerb = { base: 'send', done: ['sent'] };
const recordRetryMs = 500;
const recordMs = 2_000;
const longestTimerMs = 24 * 60 * 60 * 1_000;
const timerSlackMs = 5;
/** Rows that are stored or finished in quick succession are leased with one statement. */
const gatherMs = 100;
/** How many rows are leased for each connection, so that there is something to deliver until the next lease. */
const rowsPerConnection = 8;

/**
 * Delivers the rows of a table at least once. Several processes share the work: an attempt holds a lease, and one that
 * lost it cannot record a result. Disposal waits some seconds for deliveries in progress; the other rows are released.
 */
export function startDelivery<Schema, Row extends LeasedRow, Result extends Outcome>(
  options: DeliveryOptions<Schema, Row, Result>,
): AsyncDisposable {
  const delivery = new Delivery(options.kind, options.database.kysely as unknown as Kysely<unknown>, options);
  options.database.onCommit(delivery.wake);
  return delivery;
}

class Delivery<Row extends LeasedRow, Result extends Outcome> implements AsyncDisposable {
  readonly #kind: DeliveryKind<Row, Result>;
  readonly #db: Kysely<unknown>;
  readonly #timings: DeliveryTimings;
  readonly #logger: Logger;
  /** What is delivered at the same time. */
  readonly #limits: DeliveryLimits;
  /** What is leased at the same time. */
  readonly #leaseLimits: DeliveryLimits;
  readonly #inFlight = new Set<Row>();
  /** Leased rows whose delivery has not begun. */
  readonly #waiting = new Set<Row>();
  readonly #running = new Set<Promise<void>>();
  /** Timers that wake the loop when a row is to be retried. */
  readonly #retries = new Set<NodeJS.Timeout>();
  readonly #stopping = new AbortController();
  readonly #loop: Loop;
  readonly #renewal: NodeJS.Timeout;
  /** How many times in succession the server was unavailable. */
  #serverAway = 0;
  /** Until then the server counts as unavailable, on the clock of {@link performance}. */
  #pausedUntilMs = 0;

  constructor(
    kind: DeliveryKind<Row, Result>,
    db: Kysely<unknown>,
    options: { connections: number; timings: DeliveryTimings; logger: Logger },
  ) {
    const { connections, timings, logger } = options;
    const half = Math.ceil(connections / 2);
    this.#kind = kind;
    this.#db = db;
    this.#timings = timings;
    this.#logger = logger;
    this.#limits = { total: connections, perCrm: half, perHost: half };
    this.#leaseLimits = {
      total: connections * rowsPerConnection,
      perCrm: half * rowsPerConnection,
      perHost: half * rowsPerConnection,
    };
    this.#loop = startLoop({
      name: `the delivery of ${kind.name}`,
      logger,
      everyMs: () => (this.#serverAway > 0 ? this.#pauseMs() : timings.pollMs),
      gatherMs,
      run: () => this.#deliverDue(),
    });
    this.#renewal = setInterval(() => void this.#renew(), timings.leaseMs / 3);
  }

  readonly wake = (): void => this.#loop.wake();

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await this.#release();
    await this.#settleWithin(this.#timings.stopMs);
    this.#stopping.abort();
    await this.#settleWithin(recordMs);
    for (const timer of this.#retries) clearTimeout(timer);
    clearInterval(this.#renewal);
  }

  /** Leases due rows, and starts to deliver as many as may be delivered at the same time. */
  async #deliverDue(): Promise<number> {
    if (this.#isPaused()) return 0;
    this.#startWaiting();
    const leased = [...this.#inFlight, ...this.#waiting];
    // A single row tests whether the server is available again.
    const free = (this.#serverAway > 0 ? 1 : this.#leaseLimits.total) - leased.length;
    if (free <= 0) return 0;
    const request = { limits: this.#leaseLimits, free, leaseMs: this.#timings.leaseMs, leased };
    const { rows, passedOver } = await leaseDueRows<Row>(this.#db, this.#kind.table, request);
    for (const row of rows) this.#waiting.add(row);
    this.#startWaiting();
    // There may be more, and room for them.
    if (rows.length < free && (passedOver || (await this.#putBackBlocked([...leased, ...rows])))) this.wake();
    return 0;
  }

  /** Whether other rows are considered now. */
  async #putBackBlocked(leased: Row[]): Promise<boolean> {
    return (await putBackBlockedRows(this.#db, this.#kind.table, { limits: this.#leaseLimits, leased })) > 0;
  }

  #startWaiting(): void {
    const total = this.#serverAway > 0 ? 1 : this.#limits.total;
    while (this.#inFlight.size < total && !this.#isPaused()) {
      const row = this.#next();
      if (row === undefined) return;
      this.#waiting.delete(row);
      this.#start(row);
    }
  }

  /** CRMs take turns: the first waiting row of the one with the fewest deliveries in progress. */
  #next(): Row | undefined {
    let next: Row | undefined;
    let fewest = this.#limits.perCrm;
    for (const row of this.#waiting) {
      const ofCrm = countWhere(this.#inFlight, ({ crmId }) => crmId === row.crmId);
      if (ofCrm >= fewest || countWhere(this.#inFlight, ({ host }) => host === row.host) >= this.#limits.perHost)
        continue;
      [next, fewest] = [row, ofCrm];
    }
    return next;
  }

  #start(row: Row): void {
    this.#inFlight.add(row);
    const { name, verb = defaultVerb, describe } = this.#kind;
    const attributes = () =>
      Object.fromEntries(Object.entries(describe(row)).map(([key, value]) => [`scheduling.${name}.${key}`, value]));
    const span: SpanOptions = { kind: 'CLIENT', attributes, parent: row.traceparent ?? undefined };
    const delivering = runWithContext({ requestId: row.requestId ?? newRequestId() }, () =>
      inSpan(`${verb.base} ${name}`, span, (active) => this.#deliver(row, active)),
    ).finally(() => {
      this.#inFlight.delete(row);
      this.#running.delete(delivering);
      this.#startWaiting();
      this.wake();
    });
    this.#running.add(delivering);
  }

  async #deliver(row: Row, span: ActiveSpan): Promise<void> {
    const { name, verb = defaultVerb, describe, onResult } = this.#kind;
    const result = await this.#attempt(row);
    this.#noteServer(result);
    span.set({ [`scheduling.${name}.outcome`]: result.outcome });
    onResult(result);
    const facts: object = { ...describe(row), crmId: row.crmId, ...result };
    if (verb.done.includes(result.outcome)) this.#logger.info(facts, `${name} ${result.outcome}`);
    else this.#logger.warn(facts, `${name} not ${verb.done[0]}`);
    await this.#record(row, result);
    if (result.afterMs !== undefined) this.#wakeAfter(result.afterMs);
  }

  async #attempt(row: Row): Promise<Result> {
    const remainingMs = row.expiresAt
      ? row.expiresAt.getTime() - databaseTime(row).getTime()
      : Number.POSITIVE_INFINITY;
    const limit = new AbortController();
    // Unlike that of `AbortSignal.timeout`, this timer can be cleared: an attempt takes much less time than it may, and
    // thousands would be kept for minutes.
    const timer = setTimeout(() => limit.abort(), Math.max(0, Math.min(this.#timings.attemptMs, remainingMs)));
    try {
      return await this.#kind.attempt(
        row,
        AbortSignal.any([limit.signal, this.#stopping.signal]),
        this.#stopping.signal,
      );
    } finally {
      clearTimeout(timer);
    }
  }

  #noteServer({ serverAway }: Outcome): void {
    if (serverAway === true) {
      this.#serverAway += 1;
      this.#pausedUntilMs = performance.now() + this.#pauseMs();
    } else if (serverAway === undefined) {
      this.#serverAway = 0;
    }
  }

  /** Once the row is due by the database's clock, which counts from the time of the record. */
  #wakeAfter(delayMs: number): void {
    if (delayMs > longestTimerMs) return;
    const timer = setTimeout(() => {
      this.#retries.delete(timer);
      this.wake();
    }, delayMs + timerSlackMs);
    this.#retries.add(timer);
  }

  #isPaused(): boolean {
    return performance.now() < this.#pausedUntilMs;
  }

  #pauseMs(): number {
    return Math.min(this.#timings.longestPauseMs, this.#timings.firstPauseMs * 2 ** Math.min(this.#serverAway - 1, 20));
  }

  /** An unrecorded result would cause the row to be redelivered; until it is recorded, the lease is renewed. */
  async #record(row: Row, result: Result): Promise<void> {
    const { name, describe, record } = this.#kind;
    const deadlineMs = performance.now() + this.#timings.attemptMs;
    while (performance.now() < deadlineMs) {
      try {
        await record(row, result);
        return;
      } catch (error) {
        this.#logger.warn({ err: error, ...describe(row) }, `the result of ${name} could not be recorded, retrying`);
        await delay(recordRetryMs, undefined, { ref: false });
      }
    }
  }

  async #renew(): Promise<void> {
    try {
      await renewLeases(this.#db, this.#kind.table, [...this.#inFlight, ...this.#waiting], this.#timings.leaseMs);
    } catch (error) {
      this.#logger.warn({ err: error }, `the leases of ${this.#kind.name} could not be renewed`);
    }
  }

  /** What is not released becomes available when its lease ends. */
  async #release(): Promise<void> {
    const rows = [...this.#waiting];
    this.#waiting.clear();
    try {
      await releaseLeases(this.#db, this.#kind.table, rows);
    } catch (error) {
      this.#logger.warn({ err: error }, `the leases of ${this.#kind.name} could not be released`);
    }
  }

  async #settleWithin(timeoutMs: number): Promise<void> {
    await Promise.race([Promise.allSettled(this.#running), delay(timeoutMs, undefined, { ref: false })]);
  }
}

function countWhere<T>(items: Iterable<T>, isCounted: (item: T) => boolean): number {
  let count = 0;
  for (const item of items) if (isCounted(item)) count += 1;
  return count;
}
