import { isDeepStrictEqual } from 'node:util';
import { waitUntil } from '@scheduling/embedded';
import { query } from '@scheduling/test-stack/databases';
import { type LoadResult, mergeLoads } from './load.ts';
import type { Effect } from './requests.ts';
import type { Target } from './target.ts';
import type { Tenant } from './tenant.ts';

interface Rows extends Effect {
  /** The participations that have one of the seats. */
  seated: number;
}

const mailsTimeoutMs = 180_000;

/** What the tenants have in the databases. */
export async function countRows({ info }: Target, tenants: Tenant[]): Promise<Rows> {
  const count = async (service: 'calendar' | 'customer' | 'notification', text: string): Promise<number> =>
    Number((await query<{ count: string }>(service, text, [tenants.map(({ crmId }) => crmId)], info))[0]!.count);
  return {
    seats: await count('calendar', 'SELECT coalesce(sum(taken), 0) AS count FROM appointment WHERE crm_id = ANY($1)'),
    seated: await count(
      'calendar',
      "SELECT count(*) FROM participation WHERE crm_id = ANY($1) AND state IN ('BOOKED', 'RESERVED')",
    ),
    appointments: await count('calendar', 'SELECT count(*) FROM appointment WHERE crm_id = ANY($1)'),
    customers: await count('customer', 'SELECT count(*) FROM customer WHERE crm_id = ANY($1)'),
    mails: await count(
      'notification',
      'SELECT count(*) FROM (SELECT crm_id FROM mail UNION ALL SELECT crm_id FROM unwritten_mail) AS mail WHERE crm_id = ANY($1)',
    ),
  };
}

/** Throws unless the databases have changed by exactly what was answered. */
export async function checkEffect(target: Target, tenants: Tenant[], before: Rows, loads: LoadResult[]): Promise<void> {
  const { effect } = mergeLoads(loads);
  const expected: Rows = {
    seats: before.seats + effect.seats,
    seated: before.seated + effect.seats,
    appointments: before.appointments + effect.appointments,
    customers: before.customers + effect.customers,
    mails: before.mails + effect.mails,
  };
  const haveArrived = async (): Promise<boolean> => (await countRows(target, tenants)).mails >= expected.mails;
  if (effect.mails > 0)
    await waitUntil(haveArrived, { what: 'a mail for each booking', timeoutMs: mailsTimeoutMs, intervalMs: 500 });
  const found = await countRows(target, tenants);
  // Mails over a quota wait for the next full hour, and would be sent while another case is measured.
  if (effect.mails > 0) {
    for (const table of ['unwritten_mail', 'mail'])
      await query('notification', `DELETE FROM ${table} WHERE state = 'pending'`, [], target.info);
  }
  if (!isDeepStrictEqual(found, expected))
    throw new Error(
      `the databases have ${JSON.stringify(found)}; after what was answered they should have ${JSON.stringify(expected)}`,
    );
}
