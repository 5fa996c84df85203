import type { ReplayUserDeletionsResponse } from '@scheduling/contracts/identity/v1';
import { events } from '@scheduling/events';
import { appendEvent } from '@scheduling/messaging';
import { eventually, patiently, withKey } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, recordedEvents, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser, insertUsers } from './scenario.ts';

let service: IdentityUnderTest;
let count = 0;
beforeAll(async () => {
  service = await startIdentity();
  for (const crmId of ['one', 'two']) {
    await service.admin.createCrm({ crmId });
    await createProvider(service, crmId);
  }
});
afterAll(() => service[Symbol.asyncDispose]());

const create = () => createUser(service, 'one', `person-${(count += 1)}`);
const remove = (reference: string | undefined, crmId = 'one') =>
  service.identity.deleteUser({ crmId, reference: reference! });
const read = (reference: string | undefined, crmId = 'one') =>
  service.identity.getUser({ crmId, reference: reference! });
const member = (userReference: string) => ({
  crmId: 'one',
  providerReference: 'provider@crm',
  member: { $case: 'userReference', value: userReference } as const,
});
const deletionsOf = async (id: string) =>
  (await recordedEvents(service.database, events.userDeleted)).filter(({ userId }) => userId === id);
const absent = { category: 'not_found', code: 'user.not_found' };

/** Every table with a row that contains the id. */
async function tablesWith(id: string): Promise<string[]> {
  const tables = ['app_user', 'provider_staff', 'email_verification', 'idempotency_key', 'account', 'provider'];
  const found = await Promise.all(
    tables.map((table) =>
      sql`SELECT FROM ${sql.table(table)} AS t WHERE t::text LIKE ${`%${id}%`}`.execute(service.database.kysely),
    ),
  );
  return tables.filter((_, index) => found[index]!.rows.length > 0);
}

describe('a deleted user', () => {
  it('leaves nothing behind but the event about it', async () => {
    const name = `person-${(count += 1)}`;
    const person = {
      crmId: 'one',
      reference: `${name}@crm`,
      email: `${name}@one.example`,
      username: name,
      lastName: 'Last',
    };
    const { user } = await withKey(name, () => service.identity.createUser(person));
    await service.identity.addStaff(member(person.reference));
    await service.identity.requestVerification({ crmId: 'one', reference: person.reference });
    expect(await tablesWith(user!.id)).toEqual(['app_user', 'provider_staff', 'email_verification', 'idempotency_key']);
    await remove(person.reference);
    expect(await tablesWith(user!.id)).toEqual([]);
    expect(await deletionsOf(user!.id)).toEqual([{ crmId: 'one', userId: user!.id }]);
    expect(await refusal(read(person.reference))).toMatchObject(absent);
  });

  it('frees reference, e-mail and username for another person', async () => {
    const user = await create();
    await remove(user.reference);
    const person = {
      crmId: 'one',
      reference: user.reference!,
      email: user.email,
      username: user.username,
      lastName: user.lastName,
    };
    const { user: another, created } = await service.identity.createUser(person);
    expect({ another, created }).toEqual({ another: { ...user, id: another!.id }, created: true });
    expect(another!.id).not.toBe(user.id);
  });

  it('has no working verification link, and gets no further mail', async () => {
    const user = await create();
    await service.identity.requestVerification({ crmId: 'one', reference: user.reference! });
    const verification = (await recordedEvents(service.database, events.emailVerificationRequested)).at(-1)!;
    const { token } = await service.identity.issueVerificationToken(verification);
    await remove(user.reference);
    const unknown = { category: 'not_found', code: 'verification.not_found' };
    expect(await refusal(service.identity.confirmVerification({ token }))).toMatchObject(unknown);
    expect(await refusal(service.identity.issueVerificationToken(verification))).toMatchObject(unknown);
  });

  it('is not found a second time, nor by another CRM, which keeps its own user with the reference', async () => {
    const user = await create();
    expect(await refusal(remove(user.reference, 'two'))).toMatchObject(absent);
    expect((await read(user.reference)).user).toEqual(user);
    const other = await createUser(service, 'two', `person-${count}`);
    await remove(user.reference);
    expect(await refusal(remove(user.reference))).toMatchObject(absent);
    expect((await read(other.reference, 'two')).user).toEqual(other);
    expect(await deletionsOf(user.id)).toHaveLength(1);
  });
});

describe('the owner of an account or a provider', () => {
  const createAccount = (ownerReference: string, accountReference: string) =>
    service.identity.createAccount({ crmId: 'one', account: { accountReference, ownerReference, branch: 'misc' } });

  it('is not deleted, and nothing changes', async () => {
    const user = await create();
    await service.identity.requestVerification({ crmId: 'one', reference: user.reference! });
    await service.identity.addStaff(member(user.reference!));
    await createAccount(user.reference!, `of-${count}@crm`);
    const message = `The user cannot be deleted, because they own account of-${count}@crm.`;
    expect(await refusal(remove(user.reference))).toMatchObject({ category: 'conflict', code: 'user.owner', message });
    const ofProvider = {
      crmId: 'one',
      reference: `provider-${count}`,
      ownerReference: `${(await create()).reference}`,
      accountReference: 'account@crm',
      name: 'P',
    };
    await service.identity.createProvider(ofProvider);
    expect((await refusal(remove(ofProvider.ownerReference))).message).toContain(`provider ${ofProvider.reference}.`);
    expect(await tablesWith(user.id)).toEqual(['app_user', 'provider_staff', 'email_verification', 'account']);
    expect(await deletionsOf(user.id)).toEqual([]);
  });

  it('learns of ten of the things that they own', async () => {
    const { reference } = await create();
    for (let number = 1; number <= 11; number += 1) await createAccount(reference!, `of-${count}-${number}@crm`);
    expect((await refusal(remove(reference))).message).toMatch(
      /^The user cannot be deleted, because they own (?:account \S+, ){9}account \S+ and more\.$/,
    );
  });
});

describe('a user who is deleted while', () => {
  type Call = (reference: string, round: number) => Promise<unknown>;
  const cases: [what: string, call: Call, refusals: { ofDeletion?: string; ofCall: string }][] = [
    [
      'an account is created for them',
      (ownerReference, round) =>
        service.otherReplica.createAccount({
          crmId: 'one',
          account: { accountReference: `race-${round}@crm`, ownerReference, branch: 'misc' },
        }),
      { ofDeletion: 'user.owner', ofCall: 'account.owner_not_found' },
    ],
    [
      'a provider is created for them',
      (ownerReference, round) =>
        service.otherReplica.createProvider({
          crmId: 'one',
          reference: `race-${round}`,
          ownerReference,
          accountReference: 'account@crm',
          name: 'Race',
        }),
      { ofDeletion: 'user.owner', ofCall: 'provider.owner_not_found' },
    ],
    [
      'they are added as staff',
      (reference) => service.otherReplica.addStaff(member(reference)),
      { ofCall: 'user.not_found' },
    ],
    [
      'a verification mail is requested',
      (reference) => service.otherReplica.requestVerification({ crmId: 'one', reference }),
      { ofCall: 'user.not_found' },
    ],
    [
      'they are changed',
      (reference) => service.otherReplica.updateUser({ crmId: 'one', reference, email: `new-${reference}.example` }),
      { ofCall: 'user.not_found' },
    ],
  ];

  it.each(cases)('%s is either there first, or gone', async (_what, call, { ofDeletion, ofCall }) => {
    for (let round = 0; round < 30; round += 1) {
      const { id, reference } = await create();
      const [deleted, called] = await Promise.allSettled([remove(reference), call(reference!, count)]);
      if (called.status === 'rejected') expect(called.reason).toMatchObject({ code: ofCall });
      if (deleted.status === 'rejected') expect(deleted.reason).toMatchObject({ code: ofDeletion });
      // A member of staff can be added before, and is then removed with the user.
      if (ofDeletion !== undefined)
        expect([deleted.status, called.status].toSorted()).toEqual(['fulfilled', 'rejected']);
      expect((await tablesWith(id)).length > 0).toBe(deleted.status === 'rejected');
    }
  });

  it('they are created or invited again is replaced by a new one', async () => {
    for (let round = 0; round < 30; round += 1) {
      const { reference, email, username, lastName } = await create();
      const person = { crmId: 'one', email, username, lastName };
      const invitation = {
        crmId: 'one',
        providerReference: 'provider@crm',
        member: { $case: 'invitation', value: person } as const,
      };
      const again =
        round % 2 === 0
          ? service.otherReplica.createUser({ ...person, reference: reference! })
          : service.otherReplica.addStaff(invitation);
      const [deleted, created] = await Promise.allSettled([remove(reference), again]);
      expect([deleted.status, created.status]).toEqual(['fulfilled', 'fulfilled']);
    }
  });

  it('a link is used is verified first, or gone', async () => {
    for (let round = 0; round < 30; round += 1) {
      const { id, reference } = await create();
      await service.identity.requestVerification({ crmId: 'one', reference: reference! });
      const { token } = await service.identity.issueVerificationToken(
        (await recordedEvents(service.database, events.emailVerificationRequested)).at(-1)!,
      );
      const [deleted, confirmed] = await Promise.allSettled([
        remove(reference),
        service.otherReplica.confirmVerification({ token }),
      ]);
      expect(deleted.status).toBe('fulfilled');
      if (confirmed.status === 'rejected') expect(confirmed.reason).toMatchObject({ code: 'verification.not_found' });
      expect(await tablesWith(id)).toEqual([]);
    }
  });
});

describe('after a backup brought deleted users back, the repetition of deletions', () => {
  const unsent = () =>
    service.database.kysely.selectFrom('outbox').select('id').where('sentAt', 'is', null).limit(1).execute();
  const waitUntilPublished = () => eventually(async () => expect(await unsent()).toEqual([]));

  /** As if these users had been deleted after the backup. Returns the time before that. */
  async function publishDeletions(users: { crmId: string; id: string }[]): Promise<Date> {
    await waitUntilPublished();
    const since = new Date();
    await service.database.transaction((tx) =>
      appendEvent(tx, events.userDeleted, ...users.map(({ crmId, id }) => ({ crmId, userId: id }))),
    );
    // Its commit wakes the relay.
    await create();
    await waitUntilPublished();
    return since;
  }

  it('deletes them again', async () => {
    const user = await create();
    await service.identity.addStaff(member(user.reference!));
    const stored = await service.database.kysely
      .selectFrom('appUser')
      .selectAll()
      .where('id', '=', user.id)
      .executeTakeFirstOrThrow();
    await remove(user.reference);
    await service.database.kysely.insertInto('appUser').values(stored).execute();
    expect((await read(user.reference)).user).toEqual(user);
    await waitUntilPublished();
    const { replayed, owners, eventsReachBackTo } = await service.admin.replayUserDeletions({
      since: new Date(Date.now() - 3_600_000),
    });
    expect(replayed).toBeGreaterThan(0);
    expect({ owners, eventsReachBackTo }).toEqual({ owners: [], eventsReachBackTo: expect.any(Date) });
    expect(await tablesWith(user.id)).toEqual([]);
    expect(await deletionsOf(user.id)).toHaveLength(2);
    expect(await refusal(service.admin.replayUserDeletions({}))).toMatchObject({
      category: 'invalid',
      code: 'erasure.since_missing',
    });
  });

  it('leaves those who own something by now, names them, and deletes the others', async () => {
    const [owner, another] = [await create(), await create()];
    const [ownerReference, accountReference] = [owner.reference!, 'came-back@crm'];
    await service.identity.requestVerification({ crmId: 'one', reference: ownerReference });
    await service.identity.createAccount({
      crmId: 'one',
      account: { accountReference, ownerReference, branch: 'misc' },
    });
    const provider = { crmId: 'one', reference: 'came-back', ownerReference, accountReference, name: 'P' };
    await service.identity.createProvider(provider);
    const since = await publishDeletions([owner, another].map(({ id }) => ({ crmId: 'one', id })));
    const { replayed, owners } = await service.admin.replayUserDeletions({ since });
    expect(replayed).toBe(1);
    expect(owners).toEqual([{ crmId: 'one', userId: owner.id, owned: 'account came-back@crm, provider came-back' }]);
    expect(await tablesWith(owner.id)).toEqual([
      'app_user',
      'provider_staff',
      'email_verification',
      'account',
      'provider',
    ]);
    expect(await deletionsOf(owner.id)).toHaveLength(1);
    expect(await tablesWith(another.id)).toEqual([]);
    expect(await deletionsOf(another.id)).toHaveLength(2);
  });

  /** Users of both CRMs, each with a verification and access to a provider. */
  async function insertMany(countOfEach: number): Promise<{ crmId: string; id: string; reference: string }[]> {
    const { kysely } = service.database;
    for (const crmId of ['one', 'two'])
      await insertUsers(service, crmId, { local: `${crmId}-`, domain: 'many.example', first: 0, count: countOfEach });
    const ofMany = sql`FROM app_user AS many JOIN provider USING (crm_id) WHERE many.email LIKE '%@many.example' AND provider.reference = 'provider@crm'`;
    await sql`INSERT INTO email_verification (crm_id, user_id) SELECT crm_id, many.id ${ofMany}`.execute(kysely);
    await sql`INSERT INTO provider_staff (crm_id, provider_id, user_id) SELECT crm_id, provider.id, many.id ${ofMany}`.execute(
      kysely,
    );
    return (
      await sql<{
        crmId: string;
        id: string;
        reference: string;
      }>`SELECT crm_id, many.id, many.reference ${ofMany}`.execute(kysely)
    ).rows;
  }

  async function countLeft(users: { id: string }[]): Promise<number> {
    const ids = users.map(({ id }) => id);
    const found = sql<{ count: number }>`
      SELECT count(*) FROM (SELECT id FROM app_user UNION ALL SELECT user_id FROM provider_staff UNION ALL SELECT user_id FROM email_verification) AS it (id)
       WHERE id = ANY(${ids}::uuid[])`;
    return (await found.execute(service.database.kysely)).rows[0]!.count;
  }

  /** How many each part repeats. */
  async function replayInParts(since: Date): Promise<number[]> {
    const replayed: number[] = [];
    let continuation: string | undefined;
    do {
      const part: ReplayUserDeletionsResponse = await service.admin.replayUserDeletions({ since, continuation });
      replayed.push(part.replayed);
      continuation = part.continuation;
    } while (continuation !== undefined);
    return replayed;
  }

  it('deletes thousands in a few parts, while their CRM deletes some of them, and repeats that', async () => {
    const users = await insertMany(1_050);
    const since = await publishDeletions(users);
    expect(await countLeft(users)).toBe(3 * users.length);
    const some = users.filter((_user, index) => index % 100 === 0);
    const [parts, ...deleted] = await Promise.allSettled([
      replayInParts(since),
      ...some.map(({ crmId, reference }) => patiently(() => service.otherReplica.deleteUser({ crmId, reference }))),
    ]);
    expect(parts).toEqual({ status: 'fulfilled', value: [1_000, 1_000, 100] });
    for (const each of deleted)
      if (each.status === 'rejected') expect(each.reason).toMatchObject({ code: 'user.not_found' });
    expect(await countLeft(users)).toBe(0);
    expect(await replayInParts(since)).toEqual([1_000, 1_000, 100]);
    const recorded = Map.groupBy(await recordedEvents(service.database, events.userDeleted), ({ userId }) => userId);
    expect(Math.min(...users.map(({ id }) => recorded.get(id)!.length))).toBe(3);
  });
});

it('no deletion causes a deadlock', async () => {
  expect(await service.countDeadlocks()).toBe(0);
});
