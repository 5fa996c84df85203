import { once } from 'node:events';
import { createServer } from 'node:net';
import { isReachable, startInbox, startNats, startPostgres } from '@scheduling/embedded';
import { createNatsPasswords, natsUsers, type NatsUser, natsUsersConfiguration } from '@scheduling/events';
import { databaseServices, type DatabaseService, host, type Server } from '@scheduling/stack';
import { type Settings, UsageError } from './config.ts';
import type { DataFolder } from './data-folder.ts';
import type { Reporter } from './reporter.ts';
import type { Running } from './supervise.ts';

export interface StartedServer {
  unit: Server;
  running: Running;
  restart: () => Promise<Running>;
}

/** The addresses of the servers that the services need, and the processes of those that were not given. */
export interface Servers {
  databaseUrls: Record<DatabaseService, string>;
  natsUrls: Record<NatsUser, string>;
  smtpUrl: string;
  /** The inbox, unless the operator gave a mail server: that one may reach people. */
  sandboxSmtpUrl: string | undefined;
  inboxUrl: string | null;
  started: StartedServer[];
}

/**
 * Starts Postgres with a database per service, NATS with a user per service, and the inbox, concurrently; servers that
 * are given are used instead.
 */
export async function startServers(settings: Settings, folder: DataFolder, reporter: Reporter): Promise<Servers> {
  const { given } = settings;
  const [postgres, nats, inbox] = await Promise.all([
    databaseServices.every((service) => given.databases[service])
      ? undefined
      : openPostgres(folder, settings.durable, reporter),
    given.nats ? undefined : openNats(folder, reporter),
    given.smtp ? undefined : openInbox(folder, reporter),
  ]);
  const databaseUrl = async (service: DatabaseService): Promise<[DatabaseService, string]> => [
    service,
    given.databases[service] ?? (await postgres!.database(service)),
  ];
  return {
    databaseUrls: Object.fromEntries(await Promise.all(databaseServices.map(databaseUrl))) as Record<
      DatabaseService,
      string
    >,
    natsUrls: Object.fromEntries(natsUsers.map((user) => [user, given.nats ?? nats!.urlFor(user)])) as Record<
      NatsUser,
      string
    >,
    smtpUrl: given.smtp ?? inbox!.smtpUrl,
    sandboxSmtpUrl: inbox?.smtpUrl,
    inboxUrl: inbox?.webUrl ?? null,
    started: [postgres, nats, inbox].flatMap((server) => server?.started ?? []),
  };
}

async function openPostgres(folder: DataFolder, durable: boolean, reporter: Reporter) {
  const launch = (port?: number) =>
    startPostgres({
      dataDir: folder.path,
      port,
      durable,
      log: reporter.note,
      onSpawn: (pid) => folder.record('postgres', pid),
    });
  const server = await reporter.step('Postgres', launch);
  const started: StartedServer = { unit: 'postgres', running: server, restart: () => launch(server.port) };
  return { started, database: server.createDatabase };
}

async function openNats(folder: DataFolder, reporter: Reporter) {
  const passwords = createNatsPasswords();
  const users = { configuration: natsUsersConfiguration(), environment: passwords.environment };
  const launch = (port?: number) =>
    startNats({ dataDir: folder.path, port, users, log: reporter.note, onSpawn: (pid) => folder.record('nats', pid) });
  const server = await reporter.step('NATS', launch);
  const started: StartedServer = { unit: 'nats', running: server, restart: () => launch(server.port) };
  return { started, urlFor: (user: NatsUser) => passwords.urlFor(user, server.url) };
}

async function openInbox(folder: DataFolder, reporter: Reporter) {
  const launch = (smtpPort?: number, webPort?: number) =>
    startInbox({ dataDir: folder.path, smtpPort, webPort, onSpawn: (pid) => folder.record('inbox', pid) });
  const server = await reporter.step('inbox', launch);
  const started: StartedServer = {
    unit: 'inbox',
    running: server,
    restart: () => launch(server.smtpPort, server.webPort),
  };
  return { started, smtpUrl: server.smtpUrl, webUrl: server.webUrl };
}

/** Throws a UsageError with a remedy if the port is in use; 0 stands for any free port. */
export async function requirePort(port: number): Promise<void> {
  const refusal = (reason: string): UsageError =>
    new UsageError(`port ${port} ${reason}; stop it or set SCHEDULING_PORT`);
  if (port === 0) return;
  // On some systems, listening on the loopback address succeeds although another process listens on the wildcard
  // address.
  if (await isReachable(port)) throw refusal('is taken by another program');
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') throw refusal('is taken by another program');
    throw new UsageError(
      `port ${port} cannot be used (${(error as Error).message}); set SCHEDULING_PORT to another one`,
    );
  }
  server.close();
  await once(server, 'close');
}
