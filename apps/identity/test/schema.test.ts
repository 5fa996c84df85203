import { freePort } from '@scheduling/embedded';
import { createDatabase } from '@scheduling/postgres';
import { createTestDatabase, eventually, longTimeout, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { migrateIdentityDatabase } from '../src/db/migrate.ts';
import type { IdentitySchema } from '../src/db/schema.ts';

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const logger = testLogger('schema-test');

it('waits while the schema is older, and is ready once the migrations have run', async () => {
  const url = await createTestDatabase();
  await using service = await startProcess(url);
  await eventually(async () => expect(await service.readyz()).toBe('not ready: schema\n'));
  await eventually(() => expect(service.output()).toContain('run migrate'));
  await migrateIdentityDatabase(url, logger);
  await eventually(async () => expect(await service.readyz()).toBe('ok\n'));
});

it('exits immediately with code 1 and the reason when a newer version has run a breaking migration', async () => {
  const url = await createTestDatabase();
  await migrateIdentityDatabase(url, logger);
  await recordBreakingMigration(url);
  await using service = await startProcess(url);
  await eventually(() => expect(service.exitCode()).toBe(1));
  expect(lastLine(service.output())).toMatchObject({
    level: 'fatal',
    service: 'identity',
    msg: expect.stringContaining('identity/2999-12-31-gone') as string,
  });
});

it('exits when it finds the breaking migration later, and so does migrate', async () => {
  const url = await createTestDatabase();
  await using service = await startProcess(url);
  await eventually(async () => expect(await service.readyz()).toBe('not ready: schema\n'));
  await recordBreakingMigration(url);
  await eventually(() => expect(service.exitCode()).toBe(1));
  await using command = await startProcess(url, 'migrate');
  await eventually(() => expect(command.exitCode()).toBe(1));
  expect(lastLine(command.output())).toMatchObject({
    level: 'fatal',
    msg: expect.stringContaining('run a version that includes it') as string,
  });
});

async function recordBreakingMigration(url: string): Promise<void> {
  await using database = createDatabase<IdentitySchema>({ url, applicationName: 'test', logger, ...longTimeout });
  await sql`CREATE TABLE breaking_migration (set_name text NOT NULL, name text NOT NULL)`.execute(database.kysely);
  await sql`INSERT INTO breaking_migration VALUES ('identity', '2999-12-31-gone')`.execute(database.kysely);
}

async function startProcess(databaseUrl: string, ...args: string[]) {
  const metricsPort = await freePort();
  // No NATS server is running: the schema is checked first.
  const environment = {
    LISTEN_HOST: '127.0.0.1',
    GRPC_PORT: '0',
    ADMIN_PORT: '0',
    METRICS_PORT: String(metricsPort),
    NATS_URL: 'nats://127.0.0.1:1',
    DATABASE_URL: databaseUrl,
  };
  const child = spawn(process.execPath, [main, ...args], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  let closed = false;
  const ended = once(child, 'close').then(() => (closed = true));
  return {
    /** Resolves once the output is complete. */
    exitCode: () => (closed ? child.exitCode : undefined),
    output: () => output,
    readyz: async () => (await fetch(`http://127.0.0.1:${metricsPort}/readyz`)).text(),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

function lastLine(output: string): unknown {
  return JSON.parse(output.trimEnd().split('\n').at(-1)!);
}
