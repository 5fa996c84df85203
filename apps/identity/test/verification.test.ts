import { VerificationState } from '@scheduling/contracts/identity/v1';
import { events } from '@scheduling/events';
import { patiently } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, recordedEvents, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser, invite } from './scenario.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
  await service.admin.createCrm({ crmId: 'one', name: 'One & Co', language: 'en' });
  await createProvider(service, 'one');
});
afterAll(() => service[Symbol.asyncDispose]());

describe('the verification of an address', () => {
  let count = 0;
  let key: { crmId: string; verificationId: string };
  let user: Awaited<ReturnType<typeof createUser>>;

  beforeEach(async () => {
    count += 1;
    await invite(service, 'one', `guest-${count}`);
    user = await createUser(service, 'one', `guest-${count}`);
    const requested = await recordedEvents(service.database, events.emailVerificationRequested);
    key = requested.at(-1)!;
  });

  const issue = async () => (await service.identity.issueVerificationToken(key)).token;
  const verifiedAt = async () =>
    (
      await service.database.kysely
        .selectFrom('appUser')
        .select('emailVerifiedAt')
        .where('id', '=', user.id)
        .executeTakeFirstOrThrow()
    ).emailVerifiedAt;
  const notFound = { category: 'not_found', code: 'verification.not_found' };

  it('is issued, read and confirmed, once', async () => {
    const issued = await service.identity.issueVerificationToken(key);
    expect(issued).toMatchObject({ user, language: 'en', token: expect.stringMatching(/^[\w-]{43}$/) });
    const { token } = issued;
    for (let looks = 0; looks < 2; looks += 1) {
      expect(await service.identity.getVerification({ token })).toEqual({
        email: user.email,
        language: 'en',
        state: VerificationState.OPEN,
        userName: user.lastName,
        crmName: 'One & Co',
      });
    }
    expect(await verifiedAt()).toBeNull();
    expect(await service.identity.confirmVerification({ token })).toEqual({
      language: 'en',
      email: user.email,
      userName: user.lastName,
      crmName: 'One & Co',
    });
    expect(await verifiedAt()).toBeInstanceOf(Date);
    const used = { category: 'not_found', code: 'verification.used' };
    expect(await service.identity.getVerification({ token })).toMatchObject({
      state: VerificationState.USED,
      crmName: 'One & Co',
    });
    expect(await refusal(service.identity.confirmVerification({ token }))).toMatchObject(used);
    expect(await refusal(service.identity.issueVerificationToken(key))).toMatchObject(notFound);
  });

  it('stores only the hash of a token', async () => {
    const token = await issue();
    const row = await service.database.kysely
      .selectFrom('emailVerification')
      .selectAll()
      .where('id', '=', key.verificationId)
      .executeTakeFirstOrThrow();
    expect(row.tokenHash).toHaveLength(32);
    expect(JSON.stringify(row)).not.toContain(token);
  });

  it('expires after 24 hours by the clock of the database', async () => {
    const { token, expiresAt } = await service.identity.issueVerificationToken(key);
    const { rows } = await sql<{
      hours: number;
    }>`SELECT extract(epoch FROM ${expiresAt}::timestamptz - now())::float / 3600 AS hours`.execute(
      service.database.kysely,
    );
    expect(rows[0]?.hours).toBeCloseTo(24, 1);
    await service.database.kysely
      .updateTable('emailVerification')
      .set({ expiresAt: sql`now()` })
      .where('id', '=', key.verificationId)
      .execute();
    const expired = { category: 'not_found', code: 'verification.expired' };
    expect(await service.identity.getVerification({ token })).toMatchObject({
      state: VerificationState.EXPIRED,
      crmName: 'One & Co',
    });
    expect(await refusal(service.identity.confirmVerification({ token }))).toMatchObject(expired);
    expect(await verifiedAt()).toBeNull();
    await service.identity.confirmVerification({ token: await issue() });
    expect(await verifiedAt()).toBeInstanceOf(Date);
  });

  it('no longer accepts a token once a newer one was issued', async () => {
    const [older, newer] = [await issue(), await issue()];
    expect(await refusal(service.identity.getVerification({ token: older }))).toMatchObject(notFound);
    expect(await refusal(service.identity.confirmVerification({ token: older }))).toMatchObject(notFound);
    await service.identity.confirmVerification({ token: newer });
  });

  it('succeeds once for twenty concurrent uses of a link', async () => {
    const token = await issue();
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, () => patiently(() => service.identity.confirmVerification({ token }))),
    );
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('is not found with another token, id or CRM', async () => {
    await issue();
    for (const token of ['', 'unknown']) {
      expect(await refusal(service.identity.getVerification({ token }))).toMatchObject(notFound);
      expect(await refusal(service.identity.confirmVerification({ token }))).toMatchObject(notFound);
    }
    expect(await refusal(service.identity.issueVerificationToken({ ...key, crmId: 'two' }))).toMatchObject(notFound);
    expect(await refusal(service.identity.issueVerificationToken({ ...key, verificationId: 'absent' }))).toMatchObject(
      notFound,
    );
  });
});

describe('a verification that is requested again', () => {
  let count = 0;
  let key: { crmId: string; reference: string };
  let user: Awaited<ReturnType<typeof createUser>>;

  beforeEach(async () => {
    count += 1;
    user = await createUser(service, 'one', `member-${count}`);
    key = { crmId: 'one', reference: user.reference! };
  });

  const request = () => service.identity.requestVerification(key);
  const isVerified = async (of: typeof key) => (await service.identity.getUserVerification(of)).verification!.verified;
  /** The token of the most recently requested mail. */
  const issueLast = async () => {
    const requested = await recordedEvents(service.database, events.emailVerificationRequested);
    return (await service.identity.issueVerificationToken(requested.at(-1)!)).token;
  };
  const countRequests = async () => (await recordedEvents(service.database, events.emailVerificationRequested)).length;
  const letPass = async (interval: string) => {
    const requestedAt = sql<
      Date[]
    >`ARRAY(SELECT requested - ${interval}::interval FROM unnest(requested_at) AS requested)`;
    await service.database.kysely
      .updateTable('emailVerification')
      .set({ requestedAt })
      .where('userId', '=', user.id)
      .execute();
    await service.database.kysely.updateTable('verificationMailbox').set({ requestedAt }).execute();
  };
  const limited = { category: 'limited', code: 'verification.limited' };

  it('sends one mail, whose link confirms the address', async () => {
    const before = await countRequests();
    expect(await isVerified(key)).toBe(false);
    await request();
    expect(await countRequests()).toBe(before + 1);
    await service.identity.confirmVerification({ token: await issueLast() });
    expect(await isVerified(key)).toBe(true);
  });

  it('invalidates the link of the earlier mail, even an expired one', async () => {
    await request();
    const earlier = await issueLast();
    await service.database.kysely
      .updateTable('emailVerification')
      .set({ expiresAt: sql`now()` })
      .where('userId', '=', user.id)
      .execute();
    await letPass('1 minute');
    await request();
    expect(await refusal(service.identity.getVerification({ token: earlier }))).toMatchObject({
      code: 'verification.not_found',
    });
    expect(await service.identity.getVerification({ token: await issueLast() })).toMatchObject({
      state: VerificationState.OPEN,
    });
  });

  it('is rejected when the address is verified', async () => {
    await request();
    await service.identity.confirmVerification({ token: await issueLast() });
    await letPass('1 day');
    const before = await countRequests();
    expect(await refusal(request())).toMatchObject({ category: 'conflict', code: 'user.email_verified' });
    expect(await countRequests()).toBe(before);
    expect(await isVerified(key)).toBe(true);
  });

  it('is shown to its CRM, with the time of the mail, and of the end of its link while this works', async () => {
    const shown = async () => (await service.identity.getUserVerification(key)).verification!;
    const { email } = user;
    expect(await shown()).toEqual({ email, verified: false });
    await request();
    const { sentAt, ...requested } = await shown();
    expect(sentAt).toBeInstanceOf(Date);
    expect(requested).toEqual({ email, verified: false });
    const token = await issueLast();
    const { expiresAt, ...issued } = await shown();
    expect(issued).toEqual({ email, verified: false, sentAt });
    expect(expiresAt!.getTime()).toBeGreaterThanOrEqual(sentAt!.getTime() + 24 * 3_600_000);
    await service.database.kysely
      .updateTable('emailVerification')
      .set({ expiresAt: sql`now()` })
      .where('userId', '=', user.id)
      .execute();
    expect(await shown()).toEqual({ email, verified: false, sentAt });
    await service.database.kysely
      .updateTable('emailVerification')
      .set({ expiresAt: expiresAt! })
      .where('userId', '=', user.id)
      .execute();
    await service.identity.confirmVerification({ token });
    expect(await shown()).toEqual({ email, verified: true, sentAt });
    await letPass('1 minute');
    await service.identity.updateUser({ ...key, email: `new-${email}` });
    expect(await shown()).toEqual({ email: `new-${email}`, verified: false, sentAt: expect.any(Date) });
    expect(await refusal(service.identity.getUserVerification({ ...key, crmId: 'two' }))).toMatchObject({
      category: 'not_found',
      code: 'user.not_found',
    });
  });

  it('is rejected for a derived address', async () => {
    const reference = `derived-${count}@crm`;
    await service.identity.createUser({
      crmId: 'one',
      reference,
      email: user.email,
      username: `derived-${count}`,
      lastName: 'Derived',
    });
    const refused = await refusal(service.identity.requestVerification({ crmId: 'one', reference }));
    expect(refused).toMatchObject({ category: 'conflict', code: 'user.email_derived' });
  });

  it('is rejected within a minute of the earlier one, and says when to retry', async () => {
    await request();
    await letPass('20 seconds');
    const refused = await refusal(request());
    expect(refused).toMatchObject(limited);
    expect(refused.retryAfterSeconds).toBeGreaterThan(30);
    expect(refused.retryAfterSeconds).toBeLessThanOrEqual(40);
    await letPass('40 seconds');
    await request();
  });

  it('is rejected after five in 24 hours, until the first of them is a day old', async () => {
    for (let times = 0; times < 5; times += 1) {
      await request();
      await letPass('1 hour');
    }
    const refused = await refusal(request());
    expect(refused).toMatchObject(limited);
    expect(refused.retryAfterSeconds).toBeGreaterThan(18.9 * 3600);
    expect(refused.retryAfterSeconds).toBeLessThanOrEqual(19 * 3600);
    await letPass('19 hours');
    await request();
    expect(await refusal(request())).toMatchObject(limited);
  });

  it('sends one mail for twenty concurrent requests, the first time and later', async () => {
    for (const wait of ['0 seconds', '1 minute']) {
      await letPass(wait);
      const before = await countRequests();
      const results = await Promise.allSettled(
        Array.from({ length: 20 }, (_, index) =>
          patiently(() => (index % 2 === 0 ? service.identity : service.otherReplica).requestVerification(key)),
        ),
      );
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject(limited);
      expect(await countRequests()).toBe(before + 1);
    }
  });

  it('never undoes a concurrent confirmation', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { reference, id } = await createUser(service, 'one', `racing-${round}`);
      const racing = { crmId: 'one', reference: reference! };
      await service.identity.requestVerification(racing);
      const token = await issueLast();
      await service.database.kysely
        .updateTable('emailVerification')
        .set({ requestedAt: [] })
        .where('userId', '=', id)
        .execute();
      await service.database.kysely.deleteFrom('verificationMailbox').execute();
      const [confirmed, requested] = await Promise.allSettled([
        service.identity.confirmVerification({ token }),
        service.otherReplica.requestVerification(racing),
      ]);
      expect([confirmed.status, requested.status].toSorted()).toEqual(['fulfilled', 'rejected']);
      expect(await isVerified(racing)).toBe(confirmed.status === 'fulfilled');
    }
  });
});
