import { events } from '@scheduling/messaging';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, recordedEvents, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser, invite } from './scenario.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
  await service.admin.createCrm({ crmId: 'one', language: 'en' });
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
    (await service.database.kysely.selectFrom('app_user').select('email_verified_at').where('id', '=', user.id).executeTakeFirstOrThrow())
      .email_verified_at;
  const notFound = { category: 'not_found', code: 'verification.not_found' };

  it('goes from a token over a look at it to the confirmation, once', async () => {
    const issued = await service.identity.issueVerificationToken(key);
    expect(issued).toMatchObject({ user, language: 'en', token: expect.stringMatching(/^[\w-]{43}$/) });
    const { token } = issued;
    for (let looks = 0; looks < 2; looks += 1) {
      expect(await service.identity.getVerification({ token })).toEqual({ email: user.email, language: 'en' });
    }
    expect(await verifiedAt()).toBeNull();
    expect(await service.identity.confirmVerification({ token })).toEqual({ language: 'en' });
    expect(await verifiedAt()).toBeInstanceOf(Date);
    const used = { category: 'not_found', code: 'verification.used' };
    expect(await refusal(service.identity.getVerification({ token }))).toMatchObject(used);
    expect(await refusal(service.identity.confirmVerification({ token }))).toMatchObject(used);
    expect(await refusal(service.identity.issueVerificationToken(key))).toMatchObject(notFound);
  });

  it('stores the hash of a token only', async () => {
    const token = await issue();
    const row = await service.database.kysely
      .selectFrom('email_verification')
      .selectAll()
      .where('id', '=', key.verificationId)
      .executeTakeFirstOrThrow();
    expect(row.token_hash).toHaveLength(32);
    expect(JSON.stringify(row)).not.toContain(token);
  });

  it('ends after 24 hours by the clock of the database', async () => {
    const { token, expiresAt } = await service.identity.issueVerificationToken(key);
    const { rows } = await sql<{ hours: number }>`SELECT extract(epoch FROM ${expiresAt}::timestamptz - now())::float / 3600 AS hours`.execute(
      service.database.kysely,
    );
    expect(rows[0]?.hours).toBeCloseTo(24, 1);
    await service.database.kysely.updateTable('email_verification').set({ expires_at: sql`now()` }).where('id', '=', key.verificationId).execute();
    const expired = { category: 'not_found', code: 'verification.expired' };
    expect(await refusal(service.identity.getVerification({ token }))).toMatchObject(expired);
    expect(await refusal(service.identity.confirmVerification({ token }))).toMatchObject(expired);
    expect(await verifiedAt()).toBeNull();
    await service.identity.confirmVerification({ token: await issue() });
    expect(await verifiedAt()).toBeInstanceOf(Date);
  });

  it('knows a token no more when a newer one was issued', async () => {
    const [older, newer] = [await issue(), await issue()];
    expect(await refusal(service.identity.getVerification({ token: older }))).toMatchObject(notFound);
    expect(await refusal(service.identity.confirmVerification({ token: older }))).toMatchObject(notFound);
    await service.identity.confirmVerification({ token: newer });
  });

  it('succeeds once when a link is used twenty times at once', async () => {
    const token = await issue();
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => service.identity.confirmVerification({ token })));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('is not found with another token, id or CRM', async () => {
    await issue();
    for (const token of ['', 'unknown']) {
      expect(await refusal(service.identity.getVerification({ token }))).toMatchObject(notFound);
      expect(await refusal(service.identity.confirmVerification({ token }))).toMatchObject(notFound);
    }
    expect(await refusal(service.identity.issueVerificationToken({ ...key, crmId: 'two' }))).toMatchObject(notFound);
    expect(await refusal(service.identity.issueVerificationToken({ ...key, verificationId: 'absent' }))).toMatchObject(notFound);
  });
});
