import type { Metrics } from '@scheduling/runtime';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import type { Pool } from 'pg';
import { Gauge, Histogram } from 'prom-client';

/** Counts the connections of a pool, and returns the pool with a timed `connect()`. */
export function measurePool(pool: Pool, metrics: Metrics): PostgresPool {
  const registers = [metrics];
  new Gauge({
    name: 'scheduling_postgres_pool_connections',
    help: 'Open connections to Postgres, by whether they are in use',
    labelNames: ['state'],
    registers,
    collect() {
      this.set({ state: 'idle' }, pool.idleCount);
      this.set({ state: 'used' }, pool.totalCount - pool.idleCount);
    },
  });
  new Gauge({
    name: 'scheduling_postgres_pool_connections_max',
    help: 'Maximum number of connections to Postgres of this process',
    registers,
    collect() {
      this.set(pool.options.max);
    },
  });
  new Gauge({
    name: 'scheduling_postgres_pool_waiting',
    help: 'Operations currently waiting for a connection to Postgres',
    registers,
    collect() {
      this.set(pool.waitingCount);
    },
  });
  const waits = new Histogram({
    name: 'scheduling_postgres_pool_wait_seconds',
    help: 'Time operations waited for a connection to Postgres, by whether they got one',
    labelNames: ['outcome'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2],
    registers,
  });
  return {
    options: pool.options,
    connect: () => timed(waits, () => pool.connect()),
    end: () => pool.end(),
  };
}

async function timed(
  waits: Histogram<'outcome'>,
  connect: () => Promise<PostgresPoolClient>,
): Promise<PostgresPoolClient> {
  const stop = waits.startTimer();
  try {
    const client = await connect();
    stop({ outcome: 'connected' });
    return client;
  } catch (error) {
    stop({ outcome: 'failed' });
    throw error;
  }
}
