import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually, startTestSmtp, type TestSmtp } from '@scheduling/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { StackInfo } from '../../src/stack-file.ts';
import { type Command, runAdmin, startCommand } from '../command.ts';
import { createClient, path } from './client.ts';
import { createAppointment, createCrm, createParticipation, createPractice, unique } from './crm.ts';
import { query } from './databases.ts';
import { findWord } from './find-word.ts';
import { waitForErasures } from './wait-for-erasures.ts';

const run = promisify(execFile);
const completionMs = 60_000;

let folder: string;
let dataDir: string;
let smtp: TestSmtp;
let command: Command | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'restore-test-'));
  dataDir = join(folder, 'data');
  smtp = await startTestSmtp();
});
afterEach(async () => {
  await stop();
  await smtp[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

function start(): Promise<StackInfo> {
  command = startCommand(dataDir, [], { LOG_LEVEL: 'warn', SMTP_URL: smtp.url });
  return command.ready();
}

async function stop(): Promise<void> {
  command?.process.kill('SIGTERM');
  await command?.ended;
  command = undefined;
}

it('a person who was erased after the backup is erased again after all databases were restored from it', async () => {
  let info = await start();
  const crm = await createCrm({}, info);
  const practice = await createPractice(crm);
  const word = unique('canary');
  const [customerReference, email] = [`${word}@test`, `${word}@customers.example`];
  const customer = { customerReference, providerReference: practice.provider, userName: `Name ${word}`, email, language: 'en' };
  const headers = { 'idempotency-key': unique('key') };
  expect((await crm.post(`${practice.at}/customers`, customer, { headers })).status).toBe(201);
  const appointment = await createAppointment(practice);
  await createParticipation(practice, appointment, { customerReference, message: `Message ${word}` });
  await eventually(() => expect(smtp.mails.filter(({ recipients }) => recipients.includes(email))).toHaveLength(1));

  const backup = join(folder, 'backup');
  const backupTime = new Date();
  await stop();
  await run('cp', ['--archive', join(dataDir, 'postgres'), backup]);

  info = await start();
  const address = path`/provider/${practice.provider}/customers/${customerReference}`;
  const deletion = await createClient(info, crm.crmId, crm.key).delete(address, undefined, { query: { ignoreFutureAppointments: true } });
  expect(deletion.status).toBe(204);
  await waitForErasures(info, completionMs);
  expect(await findWord({ info, dataDir }, word)).toEqual([]);

  await stop();
  await rm(join(dataDir, 'postgres'), { recursive: true });
  await run('cp', ['--archive', backup, join(dataDir, 'postgres')]);
  info = await start();
  const restored = createClient(info, crm.crmId, crm.key);
  expect((await restored.get(address)).status).toBe(200);
  expect(await findWord({ info, dataDir }, word)).not.toEqual([]);
  const keys = () => query('customer', 'SELECT 1 FROM idempotency_key WHERE crm_id = $1', [crm.crmId], info);
  expect(await keys()).toHaveLength(1);

  const replay = await runAdmin({ SCHEDULING_DATA: dataDir }, 'erasures', 'replay', '--since', backupTime.toISOString());
  expect(replay).toMatchObject({ code: 0, output: expect.stringMatching(/^✔ Repeating 1 erasures, 1 of them found only in events/) });
  await waitForErasures(info, completionMs);
  expect((await restored.get(address)).status).toBe(204);
  expect(await findWord({ info, dataDir }, word)).toEqual([]);
  const { body } = await restored.get<{ participations: unknown[] }[]>(`${practice.at}/appointments`);
  expect(body).toMatchObject([{ participations: [] }]);
  expect(await keys()).toEqual([]);
}, 900_000);
