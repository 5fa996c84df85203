import { CustomerChanged, ParticipationChanged } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { beforeAll, describe, expect, it } from 'vitest';
import { path } from './client.ts';
import { createAppointment, createCrm, createParticipation, createPractice, type Practice, type TestCrm } from './crm.ts';
import { query } from './databases.ts';

let crm: TestCrm;
let practice: Practice;

beforeAll(async () => {
  crm = await createCrm();
  practice = await createPractice(crm);
});

/** Who caused each event of this CRM, oldest first. */
async function actors<Data extends { crmId: string; actor: string }>(service: 'customer' | 'calendar', type: string, decode: (payload: Uint8Array) => Data): Promise<Data[]> {
  const rows = await query<{ payload: Buffer }>(service, 'SELECT payload FROM outbox WHERE type = $1 ORDER BY id', [type]);
  return rows.map(({ payload }) => decode(payload)).filter(({ crmId }) => crmId === crm.crmId);
}

describe('what a CRM does', () => {
  it('is recorded as caused by its key, by every service that a request reaches', async () => {
    await createParticipation(practice, await createAppointment(practice));
    const { status } = await crm.delete(path`/provider/${practice.provider}/customers/${practice.customer}`, undefined, { query: { ignoreFutureAppointments: true } });
    expect(status).toBe(204);
    const actor = `crm:${crm.key.slice(0, 12)}`;
    expect(await actors('customer', events.customerChanged.type, CustomerChanged.decode)).toMatchObject([
      { change: 'CUSTOMER_CHANGE_CREATED', version: 1, actor },
      { change: 'CUSTOMER_CHANGE_DELETED', version: 2, actor },
    ]);
    expect(await actors('calendar', events.participationChanged.type, ParticipationChanged.decode)).toMatchObject([
      { cause: 'PARTICIPATION_CHANGE_CAUSE_CREATED', version: 1, actor },
      { cause: 'PARTICIPATION_CHANGE_CAUSE_REMOVED', version: 2, actor },
    ]);
  });
});
