import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repositoryRoot } from '@scheduling/stack';
import { apiDocument } from '@scheduling/test-stack/client';
import {
  createCrm,
  expectCreated,
  newTimeslot,
  newUser,
  type Practice,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { expect, inject, it } from 'vitest';
import { createWorld } from '../isolation/world.ts';

/** How long random requests are made. Those with every value at the bounds take a minute or more besides. */
const minutes = process.env['SCHEMATHESIS_MINUTES'];
const seconds = 60 * Number(minutes ?? 1);
const mostSeconds = seconds + 900;
const seed = Number(process.env['SCHEMATHESIS_SEED'] ?? 1);
/** Of how many operations the short form sends every value at the bounds for one. */
const oneOf = 6;

/**
 * An operation that never succeeds is not tested. What others have changed before, by chance, keeps a few from it: a
 * mail is outdated once its booking has changed.
 */
const mostWithoutSuccess = 3;

const settings = join(repositoryRoot, '.ci/schemathesis');

/** SCHEMATHESIS is the command of that name; SCHEMATHESIS_SEED decides on the random requests. */
it(
  'answers what the API document allows or forbids as it says',
  async () => {
    const results = await Promise.all([
      runPhases('examples,coverage', minutes === undefined ? await chosenOperations() : []),
      runPhases('fuzzing,stateful', ['--max-time', String(seconds)]),
    ]);
    const answers = results.flatMap((result) => Object.entries(result.answers));
    const operations = new Set(answers.map(([operation]) => operation));
    const succeeded = new Set(answers.filter(([, statuses]) => hasSuccess(statuses)).map(([operation]) => operation));
    const requests = answers.flatMap(([, statuses]) => Object.values(statuses)).reduce((sum, count) => sum + count, 0);
    process.stdout.write(`${requests} requests; ${succeeded.size} of ${operations.size} operations succeeded\n`);
    expect(results.map(({ status }) => status)).toEqual([0, 0]);
    if (minutes !== undefined) expect([...operations.difference(succeeded)].slice(mostWithoutSuccess)).toEqual([]);
  },
  (mostSeconds + 60) * 1_000,
);

/** Other ones for each seed. */
async function chosenOperations(): Promise<string[]> {
  const { places } = await apiDocument();
  const chosen = places.filter((_, index) => index % oneOf === seed % oneOf);
  return chosen.flatMap(({ operation }) => ['--include-operation-id', operation.operationId]);
}

/** By operation and status. */
type Answers = Record<string, Record<string, number>>;

function hasSuccess(statuses: Record<string, number>): boolean {
  return Object.keys(statuses).some((status) => status.startsWith('2'));
}

/** Runs these phases on a CRM of their own. */
async function runPhases(phases: string, options: string[] = []): Promise<{ status: number | null; answers: Answers }> {
  const crm = await createCrm({ sandbox: true });
  const folder = await mkdtemp(join(tmpdir(), 'schemathesis-'));
  const answersFile = join(folder, 'answers.json');
  const references = await createReferences(crm);
  try {
    const { gateway } = inject('stack');
    const configuration = join(folder, 'schemathesis.toml');
    const variables = { CRM: crm.crmId, KEY: crm.key, HOOKS: join(settings, 'hooks.py'), ...references };
    await writeFile(configuration, await configure(variables));
    const run = spawn(
      process.env['SCHEMATHESIS']!,
      [
        '--config-file',
        configuration,
        'run',
        `${gateway}/openapi.json`,
        '--url',
        gateway,
        '--phases',
        phases,
        '--seed',
        String(seed),
        ...options,
      ],
      {
        cwd: folder,
        env: { ...process.env, ...references, ANSWERS: answersFile },
        stdio: ['ignore', 'inherit', 'inherit'],
        timeout: mostSeconds * 1_000,
      },
    );
    const [status] = (await once(run, 'exit')) as [number | null];
    // A run that did not start, or was killed, writes none: its status says so.
    const answers = existsSync(answersFile) ? await readFile(answersFile, 'utf8') : '{}';
    return { status, answers: JSON.parse(answers) as Answers };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The configuration with these values: Schemathesis itself inserts variables in some places only. */
async function configure(values: Record<string, string | undefined>): Promise<string> {
  const template = await readFile(join(settings, 'schemathesis.toml'), 'utf8');
  return template.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => values[name]!);
}

/** Of objects that all operations use, and of others that can be deleted. */
async function createReferences(crm: TestCrm): Promise<NodeJS.ProcessEnv> {
  const { practice, world } = await createWorld(crm);
  const { world: doomed } = await createWorld(crm);
  const whole = await createDeletable(practice);
  const booked = await book(practice);
  // The examples in the document are of this month.
  await crm.put('/sandbox/clock', { now: '2030-05-01T08:00:00Z' });
  return { ...variables('KEPT', { ...world, ...booked }), ...variables('DOOMED', { ...doomed, ...whole }) };
}

/** A booking in a timeslot that no operation changes. `start` is that of another slot. */
async function book(practice: Practice): Promise<Record<string, string>> {
  const { crm, at, customer, product } = practice;
  const timeslot = newTimeslot(practice, {
    start: '2030-06-03T09:00',
    end: '2030-06-03T10:00',
    defaultCapacity: 1_000_000,
  });
  await expectCreated(crm.post(`${at}/timeslots`, { timeslots: [timeslot] }));
  const reference = `${unique('booking')}@test`;
  const bookable = timeslot['reference'] as string;
  const place = { timeslotReference: bookable, start: '2030-06-03T09:00' };
  const person = { customerReference: customer, productReference: product, productName: 'Haircut' };
  await expectCreated(crm.post(`${at}/bookings`, { reference, ...place, ...person, state: 'BOOKED' }));
  return { booking: reference, bookable, start: '2030-06-03T09:30' };
}

/** A user, an account and a provider without which all others can do. */
async function createDeletable({ crm, owner, account }: Practice): Promise<Record<string, string>> {
  const user = newUser();
  const accountReference = `${unique('account')}@test`;
  const reference = `${unique('provider')}@test`;
  const provider = { reference, ownerReference: owner, accountReference: account, name: 'Deletable' };
  await expectCreated(crm.post('/user', user));
  await expectCreated(crm.post('/account', { ownerReference: owner, accountReference, branch: 'misc' }));
  await expectCreated(crm.post('/provider', provider));
  return { whole_user: user.reference, whole_account: accountReference, whole_provider: reference };
}

function variables(prefix: string, references: Record<string, string>): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(references).map(([kind, reference]) => [`${prefix}_${kind.toUpperCase()}`, reference]),
  );
}
