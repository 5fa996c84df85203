import { type PostgresServer, startPostgres } from '@scheduling/embedded';
import {
  type CertificateAuthority,
  createCertificateAuthority,
  storeCertificate,
  testLogger,
} from '@scheduling/testing';
import { chmod, chown, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase, type Database } from '../src/index.ts';

const unavailable = (reason: RegExp) => ({
  code: 'database.unavailable',
  cause: { message: expect.stringMatching(reason) as string },
});

/** With a server of its own: TLS is a setting of the whole server. */
describe('a connection with sslmode=verify-full', () => {
  const resources = new AsyncDisposableStack();
  let folder: string;
  let server: PostgresServer;
  let authority: CertificateAuthority;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'postgres-tls-test-'));
    resources.defer(() => rm(folder, { recursive: true, force: true }));
    server = resources.use(await startPostgres({ dataDir: folder, durable: false }));
    authority = await createCertificateAuthority();
    await useCertificate(authority);
  });
  afterAll(() => resources.disposeAsync());

  /** Postgres uses it for new connections, without a restart. */
  async function useCertificate(issuer: CertificateAuthority): Promise<void> {
    const cluster = join(folder, 'postgres');
    const { uid, gid } = await stat(cluster);
    const { certificate, key } = await storeCertificate(cluster, await issuer.issue('localhost'), issuer);
    await chown(key, uid, gid);
    await chmod(key, 0o600);
    const client = new Client(server.url('postgres'));
    await client.connect();
    for (const [name, value] of Object.entries({ ssl_cert_file: certificate, ssl_key_file: key, ssl: 'on' }))
      await client.query(`ALTER SYSTEM SET ${name} = '${value}'`);
    await client.query('SELECT pg_reload_conf()');
    await client.end();
  }

  function open(host: string, authorityFile: string): Database<object> {
    const url = `${server.url('postgres').replace('127.0.0.1', host)}?sslmode=verify-full&sslrootcert=${authorityFile}`;
    return resources.use(createDatabase({ url, applicationName: 'tls-test', logger: testLogger('tls-test') }));
  }

  it('is encrypted, and refused for another host or another authority', async () => {
    const { authorities } = await storeCertificate(join(folder, 'trusted'), await authority.issue('client'), authority);
    const { pool } = open('localhost', authorities);
    expect((await pool.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')).rows).toEqual([
      { ssl: true },
    ]);
    await expect(open('127.0.0.1', authorities).ping()).rejects.toMatchObject(unavailable(/altnames/));
    const another = await createCertificateAuthority();
    const { authorities: others } = await storeCertificate(
      join(folder, 'others'),
      await another.issue('client'),
      another,
    );
    await expect(open('localhost', others).ping()).rejects.toMatchObject(unavailable(/certificate/));
  });

  it('trusts another authority as soon as the file has it', async () => {
    const next = await createCertificateAuthority();
    const { authorities } = await storeCertificate(join(folder, 'rotated'), await authority.issue('client'), authority);
    const database = open('localhost', authorities);
    await database.ping();
    await storeCertificate(join(folder, 'rotated'), await authority.issue('client'), {
      ...authority,
      cert: `${authority.cert}\n${next.cert}`,
    });
    await useCertificate(next);
    // What is established stays; a second connection is new.
    const clients = [await database.pool.connect(), await database.pool.connect()];
    expect(
      await Promise.all(clients.map((client) => client.query('SELECT 1 AS one').then(({ rows }) => rows))),
    ).toEqual([[{ one: 1 }], [{ one: 1 }]]);
    for (const client of clients) client.release();
  });
});
