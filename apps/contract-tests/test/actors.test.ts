import { CustomerChanged, ParticipationChanged } from '@scheduling/contracts/events/v1';
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
async function actors<Data extends { crmId: string; actor: string }>(
  service: 'customer' | 'calendar',
  type: string,
  decode: (payload: Uint8Array) => Data,
  crmId = crm.crmId,
): Promise<Data[]> {
  const rows = await query<{ payload: Buffer }>(service, 'SELECT payload FROM outbox WHERE type = $1 ORDER BY id', [
    type,
  ]);
  return rows.map(({ payload }) => decode(payload)).filter((event) => event.crmId === crmId);
}

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
    expect(await actors('customer', events.customerChanged.type, CustomerChanged.decode)).toMatchObject([
      { change: 'CUSTOMER_CHANGE_CREATED', version: 1, actor },
      { change: 'CUSTOMER_CHANGE_DELETED', version: 2, actor },
    ]);
    expect(await actors('calendar', events.participationChanged.type, ParticipationChanged.decode)).toMatchObject([
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
      expect(
        (await actors('customer', events.customerChanged.type, CustomerChanged.decode, own.crmId)).at(-1),
      ).toMatchObject({ change: 'CUSTOMER_CHANGE_DELETED', actor });
    });
    expect(
      (await actors('calendar', events.participationChanged.type, ParticipationChanged.decode, own.crmId)).at(-1),
    ).toMatchObject({
      cause: 'PARTICIPATION_CHANGE_CAUSE_REMOVED',
      actor,
    });
  });
});
