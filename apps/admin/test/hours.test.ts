import { type Hours, HoursServiceService } from '@scheduling/contracts/calendar/v1';
import { AdminServiceService, IdentityServiceService } from '@scheduling/contracts/identity/v1';
import { createDatabase } from '@scheduling/postgres';
import { createClient, type RpcClient } from '@scheduling/rpc';
import {
  longTimeout,
  type ServiceProcess,
  startServiceProcesses,
  startTestNats,
  testLogger,
} from '@scheduling/testing';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';

const stack = new AsyncDisposableStack();
let identity: ServiceProcess;
let calendar: ServiceProcess;
let hours: RpcClient<typeof HoursServiceService>;
let crmId: string;
let crms = 0;

/** A timeslot for each day, whatever the time. */
const alwaysOpen: Hours = {
  weekly: [
    {
      weekdays: ['1', '2', '3', '4', '5', '6', '7'],
      from: '00:00',
      to: '24:00',
      raster: 60,
      defaultCapacity: 1,
      defaultAcceptBookings: true,
    },
  ],
  exceptions: [],
  aheadDays: 3,
};
const closed: Hours = { weekly: [], exceptions: [], aheadDays: 1 };
const titles = 'provider +resource +time zone +days made +timeslots +hidden +changed +next day made';
const day = '\\d{4}-\\d\\d-\\d\\d';

beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  const services = stack.use(await startServiceProcesses(['identity', 'calendar'], nats.url));
  ({ identity, calendar } = services);
  hours = stack.use(createClient(HoursServiceService, 'calendar', calendar.address, longTimeout));
});
afterAll(() => stack.disposeAsync());
beforeEach(async () => {
  crms += 1;
  crmId = `crm-${crms}`;
  await createProviders('p1', 'p2');
});

it('the resources of a CRM that have opening hours are listed with what was made, or those of one provider', async () => {
  const resourceReference = 'room@crm';
  for (const providerReference of ['p1', 'p2'])
    await hours.putHours({ crmId, providerReference, resourceReference, hours: alwaysOpen });
  const row = (provider: string) => `${provider} +room@crm +Asia/Kolkata +${day} – ${day} +3 +0 +0 +${day} 18:30 UTC`;
  expect(await showHours()).toEqual({ code: 0, output: matching(`${titles}\n${row('p1')}\n${row('p2')}\n`) });
  expect(await showHours('--provider', 'p2')).toEqual({ code: 0, output: matching(`${titles}\n${row('p2')}\n`) });
  expect(await showHours('--provider', 'nobody')).toEqual({ code: 1, output: matching('.*provider.*\n') });
});

it('what has not been made a minute after it was due is late', async () => {
  const resourceReference = 'room@crm';
  await hours.putHours({ crmId, providerReference: 'p1', resourceReference, hours: alwaysOpen });
  await using database = createDatabase<CalendarTables>({
    url: calendar.databaseUrl,
    applicationName: 'test',
    logger: testLogger('admin-test'),
    ...longTimeout,
  });
  const setDue = (dueAt: Date) =>
    database.kysely.updateTable('resourceHours').set({ dueAt }).where('crmId', '=', crmId).execute();
  // In a time zone that does not exist, nothing can be made.
  await database.kysely.updateTable('provider').set({ timeZone: 'Mars/Olympus' }).where('crmId', '=', crmId).execute();
  await setDue(new Date());
  expect((await showHours()).output).toMatch(/ UTC\n$/);
  await setDue(new Date(Date.now() - 5 * 60 * 60_000));
  expect((await showHours()).output).toMatch(/ UTC, late by 5 h\n$/);
  await database.kysely.updateTable('provider').set({ timeZone: 'Asia/Kolkata' }).where('crmId', '=', crmId).execute();
  await hours.putHours({ crmId, providerReference: 'p1', resourceReference, hours: alwaysOpen });
  expect((await showHours()).output).toMatch(/ 18:30 UTC\n$/);
});

it('of more than 500 resources the first ones are shown, and that there may be more', async () => {
  for (let part = 0; part < 26; part += 1) {
    const resourceReferences = Array.from({ length: 20 }, (_, number) => `room-${part}-${number}@crm`);
    await hours.putHoursOfResources({ crmId, providerReference: 'p1', resourceReferences, hours: closed });
  }
  const lines = (await showHours()).output.trimEnd().split('\n');
  expect(lines).toHaveLength(1 + 500 + 1);
  expect(lines.at(-1)).toBe('! The first 500 are shown. There may be more; --provider shows those of one provider.');
  expect((await showHours('--provider', 'p1')).output).toMatch(/^! The first 500 are shown\. There may be more\.$/m);
});

interface CalendarTables {
  provider: { crmId: string; timeZone: string };
  resourceHours: { crmId: string; dueAt: Date };
}

async function createProviders(...references: string[]): Promise<void> {
  using admin = createClient(AdminServiceService, 'identity', identity.adminAddress, longTimeout);
  using client = createClient(IdentityServiceService, 'identity', identity.address, longTimeout);
  await admin.createCrm({ crmId, timeZone: 'Asia/Kolkata' });
  await client.createUser({
    crmId,
    reference: 'owner@crm',
    email: `owner@${crmId}.example`,
    username: `owner-${crmId}`,
    lastName: 'Owner',
  });
  const account = { ownerReference: 'owner@crm', accountReference: 'account@crm', branch: 'misc' };
  await client.createAccount({ crmId, account });
  for (const reference of references)
    await client.createProvider({
      crmId,
      reference,
      ownerReference: 'owner@crm',
      accountReference: 'account@crm',
      name: reference,
    });
}

/** Runs the command as an operator would; `output` contains stdout and stderr. */
function showHours(...options: string[]): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [join(import.meta.dirname, '../src/main.ts'), 'hours', crmId, ...options],
      { env: { ...process.env, NO_COLOR: '1', CALENDAR_ADDRESS: calendar.adminAddress } },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, output: stdout + stderr }),
    );
  });
}

function matching(pattern: string): string {
  return expect.stringMatching(new RegExp(`^${pattern}$`)) as string;
}
