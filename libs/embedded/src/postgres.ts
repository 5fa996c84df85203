import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Child, type ChildExit, type OnSpawn, spawnChild, waitUntilReady } from './child.ts';
import { freePort } from './free-port.ts';
import { createOwnedDatabase } from './owned-database.ts';
import { findPostgresAccount, type PostgresAccount } from './postgres-account.ts';
import { findPostgresBinaries, type PostgresBinaries } from './postgres-binaries.ts';
import { processCommand, processIsAlive, stopProcess } from './process-table.ts';
import { withClient } from './with-client.ts';

const run = promisify(execFile);

export interface PostgresServer extends AsyncDisposable {
  /** As in the options, but absolute. */
  dataDir: string;
  port: number;
  pid: number;
  exited: Promise<ChildExit>;
  /** The address of a database for the superuser. */
  url(database: string): string;
  /**
   * Creates a database unless it exists, and returns its address for the role that owns it, which has a new password
   * and no access to others.
   */
  createDatabase(name: string): Promise<string>;
  stop(): Promise<void>;
}

export interface PostgresOptions {
  /** The cluster is stored in `<dataDir>/postgres`, its password in `<dataDir>/postgres-password`. */
  dataDir: string;
  port?: number;
  log?: (message: string) => void;
  /**
   * False: commits survive the end of the process, but not a crash of the machine, because nothing waits for the disk.
   * For tests.
   */
  durable?: boolean;
  /** Parameters of `postgresql.conf`, in addition to those of this module. */
  settings?: Record<string, string>;
  onSpawn?: OnSpawn;
}

interface Installation {
  durable: boolean;
  settings: Record<string, string>;
  binaries: PostgresBinaries;
  account: PostgresAccount;
  clusterDir: string;
  passwordFile: string;
  logFile: string;
}

const user = 'scheduling';
const startTimeoutMs = 30_000;
const connecting = { connectionTimeoutMillis: startTimeoutMs };
/** One that has not answered by then is asked again. */
const probing = { connectionTimeoutMillis: 2_000 };
const stopTimeoutMs = 5_000;
/**
 * A new server rejects the data while the postmaster of an old one still has its pid, which exists until its parent
 * reaps it, and until the last backend has noticed that its postmaster is gone. On a busy machine both take seconds.
 */
const takeoverMs = 60_000;
const takeoverPollMs = 200;
const isHeldByOldServer = /lock file "postmaster\.pid" already exists|pre-existing shared memory block/;

/**
 * Starts Postgres on 127.0.0.1 and returns when it answers queries. The first start creates the cluster; later ones
 * reuse its data, even after a crash. A server that an earlier, killed command left running on the same folder is
 * stopped first, waiting up to 60 s for its end.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const dataDir = resolve(options.dataDir);
  const installation: Installation = {
    durable: options.durable ?? true,
    settings: options.settings ?? {},
    binaries: await findPostgresBinaries(),
    account: await findPostgresAccount(),
    clusterDir: clusterIn(dataDir),
    passwordFile: passwordFileIn(dataDir),
    logFile: join(dataDir, 'logs', 'postgres.log'),
  };
  await mkdir(dataDir, { recursive: true });
  await stopLeftover(installation);
  const log = options.log ?? (() => {});
  await ensureCluster(installation, log);

  const password = (await readFile(installation.passwordFile, 'utf8')).trim();
  const port = options.port ?? (await freePort());
  const urlFor = (role: string, secret: string, database: string): string =>
    `postgres://${encodeURIComponent(role)}:${secret}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
  const url = (database: string): string => urlFor(user, password, database);
  const createDatabase = async (name: string): Promise<string> => {
    const secret = await withClient(url('postgres'), (client) => createOwnedDatabase(client, name), connecting);
    return urlFor(name, secret, name);
  };
  const serverArgs = serverArguments(installation, port);
  const child = await launch(installation, serverArgs, url('postgres'), log, options.onSpawn);
  // SIGINT is Postgres' "fast" shutdown: sessions are terminated, data is flushed, no recovery is needed.
  const stop = (): Promise<void> => child.stop('SIGINT', stopTimeoutMs);
  return {
    dataDir,
    port,
    pid: child.pid,
    exited: child.exited,
    url,
    createDatabase,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

export function clusterIn(dataDir: string): string {
  return join(dataDir, 'postgres');
}

export function passwordFileIn(dataDir: string): string {
  return join(dataDir, 'postgres-password');
}

async function stopLeftover({ clusterDir }: Installation): Promise<void> {
  const pid = await readLockFile(clusterDir);
  if (pid === undefined || !(await processIsAlive(pid))) return;
  const command = (await processCommand(pid)) ?? '';
  if (command.includes('postgres') && command.includes(clusterDir)) await stopProcess(pid, 'SIGINT', stopTimeoutMs);
}

/** The pid of the postmaster that runs, or ran, this cluster. Undefined if there was none, or it was shut down. */
async function readLockFile(clusterDir: string): Promise<number | undefined> {
  const text = await readFile(join(clusterDir, 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number(text.split('\n')[0]);
  return Number.isInteger(pid) && pid > 0 ? pid : undefined;
}

async function ensureCluster(installation: Installation, log: (message: string) => void): Promise<void> {
  const { account, binaries, clusterDir, passwordFile } = installation;
  const existing = await readFile(join(clusterDir, 'PG_VERSION'), 'utf8').catch(() => undefined);
  if (existing === undefined) {
    log('creating the database cluster');
    return createCluster(installation);
  }
  const { stdout } = await run(binaries.postgres, ['--version']);
  const major = /(\d+)\.?\d*/.exec(stdout.replace(/^.*\)/, ''))?.[1];
  if (existing.trim() !== major) {
    throw new Error(
      `${clusterDir} was written by Postgres ${existing.trim()}, this is Postgres ${major}: start with empty data, or move the folder away first.`,
    );
  }
  await account.own(clusterDir);
  await account.own(passwordFile);
}

/**
 * Created in a temporary folder and renamed at the end, so that an interrupted first start leaves nothing that looks
 * like a cluster.
 */
async function createCluster({ account, binaries, clusterDir, passwordFile, durable }: Installation): Promise<void> {
  const newDir = `${clusterDir}.new`;
  await rm(newDir, { recursive: true, force: true });
  await mkdir(newDir, { mode: 0o700 });
  await writeFile(passwordFile, randomBytes(24).toString('hex'), { mode: 0o600 });
  await account.own(newDir);
  await account.own(passwordFile);
  const [program, ...args] = asCommand(account, binaries.initdb, [
    `--pgdata=${newDir}`,
    `--username=${user}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The built-in provider sorts and folds case identically on every machine.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ]);
  await run(program, args, { cwd: newDir, env: programEnvironment(), uid: account.uid, gid: account.gid });
  await rename(newDir, clusterDir);
}

function serverArguments({ clusterDir, durable, settings }: Installation, port: number): string[] {
  const all = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    // The path of a socket is limited to 107 characters; a data folder's may be longer.
    unix_socket_directories: '',
    max_connections: '200',
    shared_buffers: `${sharedBuffersMiB()}MB`,
    password_encryption: 'scram-sha-256',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // The log must contain no statements and no values of rows: they are personal data.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    ...(durable ? {} : { fsync: 'off', full_page_writes: 'off' }),
    ...settings,
  };
  return ['-D', clusterDir, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/**
 * A sixteenth of the memory, which is cautious on a machine that does other things. Only what is used of it is taken.
 */
function sharedBuffersMiB(): number {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return Math.round(Math.min(512, Math.max(128, memory / 16 / 1_048_576)));
}

async function launch(
  installation: Installation,
  serverArgs: string[],
  adminUrl: string,
  log: (message: string) => void,
  onSpawn: OnSpawn | undefined,
): Promise<Child> {
  const { account, binaries, clusterDir, logFile } = installation;
  const [command, ...args] = asCommand(account, binaries.postgres, serverArgs);
  const { uid, gid } = account;
  const deadline = performance.now() + takeoverMs;
  for (let isWaiting = false; ; isWaiting = true) {
    const child = await spawnChild({
      command,
      args,
      cwd: clusterDir,
      environment: programEnvironment(),
      logFile,
      uid,
      gid,
      onSpawn,
    });
    try {
      await waitUntilReady(child, () => answersQueries(adminUrl), startTimeoutMs);
      return child;
    } catch (error) {
      // The message contains the end of the log, which also covers earlier attempts.
      const reason =
        String(error)
          .match(/FATAL: .*/g)
          ?.at(-1) ?? '';
      if (!isHeldByOldServer.test(reason) || performance.now() > deadline) throw error;
      if (!isWaiting) log(`waiting for the previous Postgres to end (process ${await readLockFile(clusterDir)})`);
      await delay(takeoverPollMs);
    }
  }
}

function asCommand(account: PostgresAccount, program: string, args: string[]): [string, ...string[]] {
  const [wrapper, ...wrapperArgs] = account.prefix;
  return wrapper === undefined ? [program, ...args] : [wrapper, ...wrapperArgs, program, ...args];
}

function programEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C' };
}

async function answersQueries(url: string): Promise<boolean> {
  await withClient(url, (client) => client.query('SELECT 1'), probing);
  return true;
}
