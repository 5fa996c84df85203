import { withClient } from '@scheduling/embedded';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Client } from 'pg';
import { limitClients, type Transaction } from './limit-statements.ts';
import type { LimitDatabases } from './limit-databases.ts';

/** A transaction, and which share of all requests it is in a mix. */
export interface LimitPart {
  share: number;
  transaction: Transaction;
}

/** A part of the time for which a limit is measured. */
export interface Span {
  seconds: number;
  /** Of the clients' first transaction. */
  firstNumber: number;
  signal: AbortSignal;
}

interface Run {
  transactions: number;
  perSecond: number;
}

const secondsOfPart = 1;

/**
 * How many transactions per second Postgres completes if nothing but SQL is involved. For a mix, each part is measured
 * on its own, and the time of an average request is the sum of their shares.
 */
export async function measureLimit(databases: LimitDatabases, parts: LimitPart[], span: Span): Promise<number> {
  let secondsPerRequest = 0;
  for (const { share, transaction } of parts) {
    const { perSecond } = await checked(databases, transaction, {
      ...span,
      seconds: Math.max(secondsOfPart, Math.round(span.seconds / parts.length)),
    });
    secondsPerRequest += share / perSecond;
  }
  return 1 / secondsPerRequest;
}

async function checked(databases: LimitDatabases, transaction: Transaction, span: Span): Promise<Run> {
  const url = databases.url(transaction.database);
  const count = (): Promise<number> => countRows(url, transaction.adds?.table);
  const before = await count();
  const run = (await databases.hasProgram('pgbench'))
    ? await runPgbench(url, transaction, span)
    : await runClients(url, transaction, span);
  const added = (await count()) - before;
  const expected = run.transactions * (transaction.adds?.rows ?? 0);
  if (added !== expected)
    throw new Error(`the limit added ${added} rows to ${transaction.adds?.table}, not ${expected}`);
  return run;
}

async function countRows(url: string, table: string | undefined): Promise<number> {
  if (table === undefined) return 0;
  return withClient(url, async (client) =>
    Number((await client.query<{ count: string }>(`SELECT count(*) FROM ${table}`)).rows[0]!.count),
  );
}

async function runPgbench(url: string, transaction: Transaction, { seconds, firstNumber, signal }: Span): Promise<Run> {
  const args = [
    '-n',
    '-M',
    'prepared',
    '-c',
    String(limitClients),
    '-j',
    '1',
    '-T',
    String(seconds),
    '-D',
    `n=${firstNumber}`,
    '-f',
    '-',
    url,
  ];
  const running = promisify(execFile)('pgbench', args, { signal });
  running.child.stdin!.end(scriptOf(transaction));
  const { stdout, stderr } = await running;
  const read = (pattern: RegExp): number => {
    const found = pattern.exec(stdout)?.[1];
    if (found === undefined) throw new Error(`pgbench printed no result:\n${stdout}${stderr}`);
    return Number(found);
  };
  return { transactions: read(/actually processed: (\d+)/), perSecond: read(/tps = ([\d.]+)/) };
}

function scriptOf({ variables = {}, statements }: Transaction): string {
  const settings = Object.entries(variables).map(([name, count]) => `\\set ${name} random(0, ${count - 1})`);
  const lines = statements.map((statement) => (isStored(statement) ? statement : `${statement};`));
  return [...settings, ...lines, '\\set n :n + 1', ''].join('\n');
}

function isStored(statement: string): boolean {
  return statement.endsWith('\\gset');
}

/** The same without pgbench. */
async function runClients(url: string, transaction: Transaction, { seconds, firstNumber, signal }: Span): Promise<Run> {
  const startedMs = performance.now();
  const endMs = startedMs + seconds * 1_000;
  const clients = Array.from({ length: limitClients }, (_, number) =>
    withClient(url, async (client) => {
      let n = firstNumber;
      for (; performance.now() < endMs && !signal.aborted; n += 1)
        await runOnce(client, transaction, { n, client_id: number });
      return n - firstNumber;
    }),
  );
  const transactions = (await Promise.all(clients)).reduce((sum, each) => sum + each, 0);
  signal.throwIfAborted();
  return { transactions, perSecond: transactions / ((performance.now() - startedMs) / 1_000) };
}

async function runOnce(
  client: Client,
  { variables = {}, statements }: Transaction,
  given: Record<string, unknown>,
): Promise<void> {
  const values: Record<string, unknown> = { ...given };
  for (const [name, count] of Object.entries(variables)) values[name] = Math.floor(Math.random() * count);
  for (const [index, statement] of statements.entries()) {
    const names: string[] = [];
    const text = statement
      .replace(/ \\gset$/, '')
      .replaceAll(/(?<!:):([a-z]\w*)/g, (_, name: string) => `$${names.push(name)}`);
    const { rows } = await client.query<Record<string, unknown>>({
      name: String(index),
      text,
      values: names.map((name) => values[name]),
    });
    if (isStored(statement)) Object.assign(values, rows[0]);
  }
}

/** The milliseconds in which psql, or a client in this process without it, fetches all rows of a query. */
export async function measureQuery(databases: LimitDatabases, text: string, signal: AbortSignal): Promise<number> {
  const url = databases.url('calendar');
  if (!(await databases.hasProgram('psql'))) return withClient(url, (client) => timeQuery(client, text));
  const { stdout } = await promisify(execFile)(
    'psql',
    ['-XAtq', '-o', '/dev/null', '-c', '\\timing on', '-c', text, url],
    { signal },
  );
  return Number(/Time: ([\d.]+) ms/.exec(stdout)?.[1]);
}

async function timeQuery(client: Client, text: string): Promise<number> {
  const startedMs = performance.now();
  await client.query(text);
  return performance.now() - startedMs;
}
