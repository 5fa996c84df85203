import { events } from '@scheduling/events';
import { startCleanUps } from '@scheduling/postgres';
import { eventually, patiently, testLogger } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { identityCleanUps } from '../src/clean-ups.ts';
import { type IdentityUnderTest, recordedEvents, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, invite } from './scenario.ts';

let service: IdentityUnderTest;
let created = 0;
beforeAll(async () => {
  service = await startIdentity();
  for (const crmId of ['one', 'two']) {
    await service.admin.createCrm({ crmId });
    await createProvider(service, crmId);
  }
});
afterAll(() => service[Symbol.asyncDispose]());

const limited = { category: 'limited', code: 'verification.limited' };

async function createWith(email: string, crmId = 'one'): Promise<{ crmId: string; reference: string }> {
  const reference = `mailbox-${(created += 1)}@crm`;
  const { user } = await service.identity.createUser({ crmId, reference, email, username: reference, lastName: 'L' });
  expect(user!.email).toBe(email);
  return { crmId, reference };
}

/** Creates a user with the address, requests the mail, and deletes the user. */
async function requestOnce(email: string, crmId = 'one'): Promise<void> {
  const key = await createWith(email, crmId);
  try {
    await service.identity.requestVerification(key);
  } finally {
    await service.identity.deleteUser(key);
  }
}

const letPass = (interval: string) =>
  sql`UPDATE verification_mailbox SET requested_at = ARRAY(SELECT requested - ${interval}::interval FROM unnest(requested_at) AS requested), expires_at = expires_at - ${interval}::interval`.execute(
    service.database.kysely,
  );

describe('the limit of a mailbox', () => {
  it('outlasts the deletion of the user', async () => {
    await requestOnce('again@one.example');
    await letPass('20 seconds');
    const refused = await refusal(requestOnce('again@one.example'));
    expect(refused).toMatchObject(limited);
    expect(refused.retryAfterSeconds).toBeGreaterThan(30);
    expect(refused.retryAfterSeconds).toBeLessThanOrEqual(40);
    await letPass('40 seconds');
    await requestOnce('again@one.example');
  });

  it('permits five mails in 24 hours, whoever the users are', async () => {
    for (let times = 0; times < 5; times += 1) {
      await requestOnce('five@one.example');
      await letPass('1 hour');
    }
    const refused = await refusal(requestOnce('five@one.example'));
    expect(refused).toMatchObject(limited);
    expect(refused.retryAfterSeconds).toBeGreaterThan(18.9 * 3600);
    await letPass('19 hours');
    await requestOnce('five@one.example');
  });

  it.each([
    ['form@one.example', 'FORM@One.example'],
    ['form@bücher.example', 'form@xn--bcher-kva.example'],
    ['detail@one.example', 'detail+1@one.example'],
    ['detail+a@two.example', 'Detail+b+c@two.example'],
  ])('is that of %s for %s, too', async (address, other) => {
    await requestOnce(address);
    expect(await refusal(requestOnce(other))).toMatchObject(limited);
  });

  it.each([
    ['own@one.example', 'owned@one.example'],
    ['+plus@one.example', '+sign@one.example'],
    ['own@three.example', 'own@four.example'],
  ])('is not that of %s for %s', async (address, other) => {
    for (const each of [address, other]) await expect(requestOnce(each)).resolves.toBeUndefined();
  });

  it('is not that of another CRM', async () => {
    for (const crmId of ['one', 'two'])
      await expect(requestOnce('shared@three.example', crmId)).resolves.toBeUndefined();
  });

  it('counts the mails about a new address and to an invited person', async () => {
    await requestOnce('counted@five.example');
    const { reference } = await createWith('before@five.example');
    expect(
      await refusal(service.identity.updateUser({ crmId: 'one', reference, email: 'counted@five.example' })),
    ).toMatchObject(limited);
    await invite(service, 'one', 'counted', { email: 'counted@five.example' });
    expect(await refusal(createWith('counted@five.example'))).toMatchObject(limited);
    await service.identity.updateUser({ crmId: 'one', reference, email: 'next@five.example' });
    expect(await refusal(requestOnce('next+1@five.example'))).toMatchObject(limited);
  });

  it('permits one of twenty concurrent requests', async () => {
    const users = await Promise.all(
      Array.from({ length: 20 }, (_, index) => patiently(() => createWith(`many+${index}@one.example`))),
    );
    const before = (await recordedEvents(service.database, events.emailVerificationRequested)).length;
    const results = await Promise.allSettled(
      users.map((key, index) =>
        patiently(() => (index % 2 === 0 ? service.identity : service.otherReplica).requestVerification(key)),
      ),
    );
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject(limited);
    expect(await recordedEvents(service.database, events.emailVerificationRequested)).toHaveLength(before + 1);
  });

  it('is kept as a digest, for a day after the last mail', async () => {
    const { kysely } = service.database;
    await kysely.deleteFrom('verificationMailbox').execute();
    await requestOnce('kept@one.example');
    await letPass('23 hours');
    await requestOnce('other@one.example');
    const rows = await kysely.selectFrom('verificationMailbox').selectAll().execute();
    expect(rows).toMatchObject([{ crmId: 'one', addressDigest: expect.any(Buffer) }, { crmId: 'one' }]);
    expect(JSON.stringify(rows)).not.toContain('kept');
    await letPass('1 hour');
    await using _cleanUp = startCleanUps({
      database: service.database,
      logger: testLogger('identity-test'),
      cleanUps: identityCleanUps,
    });
    await eventually(async () =>
      expect(await kysely.selectFrom('verificationMailbox').selectAll().execute()).toHaveLength(1),
    );
  });

  it('causes no deadlock', async () => {
    expect(await service.countDeadlocks()).toBe(0);
  });
});
