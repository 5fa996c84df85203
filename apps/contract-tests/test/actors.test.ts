import { events } from '@scheduling/events';
import { eventually } from '@scheduling/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { path } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  type Practice,
  type TestCrm,
} from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';

let crm: TestCrm;
let practice: Practice;

beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

/** Who caused each event of this CRM, oldest first. */
async function actors(
  service: 'customer' | 'calendar',
  subjects: string[],
  crmId = crm.crmId,
): Promise<Record<string, unknown>[]> {
  const rows = await query<{ data: Record<string, unknown> }>(
    service,
    `SELECT data FROM outbox WHERE subject = ANY ($1) AND data ->> 'crmId' = $2 ORDER BY id`,
    [subjects, crmId],
  );
  return rows.map(({ data }) => data);
}

const ofCustomers = [events.customerChanged.subject];
const ofParticipations = [events.participationChanged.subject, events.participationChangedSilently.subject];

describe('what a CRM does', () => {
  it('is recorded as caused by its key, by every service that a request reaches', async () => {
    await createParticipation(practice, await createAppointment(practice));
    const { status } = await crm.delete(
      path`/provider/${practice.provider}/customers/${practice.customer}`,
      undefined,
      { query: { ignoreFutureAppointments: true } },
    );
    expect(status).toBe(204);
    const actor = `crm:${crm.key.slice(0, 12)}`;
    expect(await actors('customer', ofCustomers)).toMatchObject([
      { change: 'CUSTOMER_CHANGE_CREATED', version: 1, actor },
      { change: 'CUSTOMER_CHANGE_DELETED', version: 2, actor },
    ]);
    expect(await actors('calendar', ofParticipations)).toMatchObject([
      { cause: 'PARTICIPATION_CHANGE_CAUSE_CREATED', version: 1, actor },
      { cause: 'PARTICIPATION_CHANGE_CAUSE_REMOVED', version: 2, actor },
    ]);
  });

  it('is recorded so although the service does it later', async () => {
    const own = await createCrm();
    const practiceOfOwn = await createPractice(own);
    await createParticipation(practiceOfOwn, await createAppointment(practiceOfOwn));
    const { status } = await own.post('/erasures', { email: practiceOfOwn.customerEmail });
    expect(status).toBe(202);
    const actor = `crm:${own.key.slice(0, 12)}`;
    await eventually(async () => {
      expect((await actors('customer', ofCustomers, own.crmId)).at(-1)).toMatchObject({
        change: 'CUSTOMER_CHANGE_DELETED',
        actor,
      });
    });
    expect((await actors('calendar', ofParticipations, own.crmId)).at(-1)).toMatchObject({
      cause: 'PARTICIPATION_CHANGE_CAUSE_REMOVED',
      actor,
    });
  });
});
