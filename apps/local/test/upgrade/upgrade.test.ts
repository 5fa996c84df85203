import { describeSchema } from '@scheduling/testing';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { consumingServices } from '@scheduling/events';
import { databaseServices, repositoryRoot, type Service, services } from '@scheduling/stack';
import { query } from '@scheduling/test-stack/databases';
import { checkOutVersion, type LandedVersion } from './landed-version.ts';
import { type MixedStack, startMixedStack, type Versions } from './mixed-stack.ts';
import { changeMark, createNextVersion } from './next-version.ts';
import { playLandedDemo } from './play-landed-demo.ts';
import { useServices } from './use-services.ts';

/** Each test leaves its processes to the next one, which replaces only those that differ. So the order matters. */
let landed: LandedVersion;
let stack: MixedStack;
const lasting = { run: 'lasting' };

beforeAll(async () => {
  landed = await checkOutVersion(process.env['UPGRADE_FROM']!);
  stack = await startMixedStack(landed.root);
  await playLandedDemo(stack.info, lasting.run);
  await useServices(stack.info, 'before', lasting);
  // While everything landed is running, as in a rollout.
  await stack.migrate(repositoryRoot);
}, 600_000);

afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await landed?.[Symbol.asyncDispose]();
});

it.each(databaseServices)(
  'the migrations bring the landed database of %s to the schema of the new version',
  async (service) => {
    const expected = await readFile(join(repositoryRoot, 'apps', service, 'src/db/schema.sql'), 'utf8');
    expect(await describeSchema(stack.info.databases[service])).toBe(expected);
  },
);

it('the landed version works on the new schema', async () => {
  await useServices(stack.info, 'migrated', lasting);
  expect(await complaints()).toEqual([]);
});

it.each(services)('the new %s works beside the landed others', async (service) => {
  await stack.run(allBut(service, landed.root, repositoryRoot));
  await useServices(stack.info, `new-${service}`, lasting);
  expect(await complaints()).toEqual([]);
});

it.each(services.toReversed())('the landed %s works beside the new others', async (service) => {
  await stack.run(allBut(service, repositoryRoot, landed.root));
  await useServices(stack.info, `landed-${service}`, lasting);
  expect(await complaints()).toEqual([]);
});

it('a migration, a function and a changed function that are added as the documents say take effect on the landed data', async () => {
  await using next = await createNextVersion();
  await stack.migrate(next.root);
  const [counts] = await query<{ customers: number; nicknames: number }>(
    'customer',
    "SELECT * FROM jsonb_to_record(count_nicknames('{}')) AS counts (customers integer, nicknames integer)",
    [],
    stack.info,
  );
  expect(counts?.customers).toBeGreaterThan(0);
  expect(counts?.nicknames).toBe(0);
  expect(await bodyOfCreateCustomer()).toContain(changeMark);

  await next.changeFunction(false);
  await stack.migrate(next.root);
  expect(await bodyOfCreateCustomer()).not.toContain(changeMark);

  await next.changeFunction(true);
  await next.setRelease('999.0.0');
  await stack.migrate(next.root);
  await stack.migrate(repositoryRoot);
  expect(await bodyOfCreateCustomer()).toContain(changeMark);
  for (const customer of [next.root, repositoryRoot]) await stack.run(allBut('customer', repositoryRoot, customer));
  await useServices(stack.info, 'rolled-back', lasting);
  expect(await complaints()).toEqual([]);
});

async function bodyOfCreateCustomer(): Promise<string> {
  const rows = await query<{ body: string }>(
    'customer',
    "SELECT prosrc AS body FROM pg_proc WHERE proname = 'create_customer'",
    [],
    stack.info,
  );
  return rows[0]!.body;
}

function allBut(single: Service, others: string, version: string): Versions {
  return Object.fromEntries(services.map((service) => [service, service === single ? version : others])) as Versions;
}

/** Errors in the logs, and the events that a service could not process. */
async function complaints(): Promise<unknown[]> {
  const putAside = consumingServices.map((service) =>
    query(service, 'SELECT consumer, subject, error FROM dead_letter', [], stack.info),
  );
  return [...(await stack.complaints()), ...(await Promise.all(putAside)).flat()];
}
