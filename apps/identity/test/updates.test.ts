import { events } from '@scheduling/events';
import { patiently } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, recordedEvents, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser } from './scenario.ts';

let service: IdentityUnderTest;
let other: IdentityUnderTest['identity'];
beforeAll(async () => {
  service = await startIdentity();
  other = service.otherReplica;
  await service.admin.createCrm({ crmId: 'one', timeZone: 'Europe/Zurich', language: 'en' });
  await service.admin.createCrm({ crmId: 'two' });
  await createProvider(service, 'one');
  await createProvider(service, 'two');
});
afterAll(() => service[Symbol.asyncDispose]());

/** Alternately by both replicas. */
const replica = (index: number) => (index % 2 === 0 ? service.identity : other);

describe('a changed provider', () => {
  let count = 0;
  const create = async () => {
    const reference = `changed-${(count += 1)}`;
    const fields = {
      email: 'p@one.example',
      phone: '1',
      impressum: 'i',
      branch: 'misc',
      subbranch: 's',
      timeZone: 'Europe/Berlin',
    };
    const request = {
      crmId: 'one',
      reference,
      ownerReference: 'owner@crm',
      accountReference: 'account@crm',
      name: 'Before',
      ...fields,
    };
    return (await service.identity.createProvider(request)).provider!;
  };
  const read = async (reference: string) =>
    (await service.identity.getProvider({ crmId: 'one', key: { $case: 'reference', value: reference } })).provider!;
  const versionsOf = async (id: string) => {
    const published = await recordedEvents(service.database, events.providerChanged);
    return published.filter(({ providerId }) => providerId === id).map(({ version }) => version);
  };

  it('has the given fields, keeps the others, loses the empty ones, and is published with its new version', async () => {
    const provider = await create();
    const changes = { name: 'After', email: '', mobile: '2', branch: '', timeZone: 'asia/kolkata' };
    const { provider: changed } = await service.identity.updateProvider({
      crmId: 'one',
      reference: provider.reference,
      ...changes,
    });
    expect(changed).toEqual({
      ...provider,
      name: 'After',
      email: undefined,
      mobile: '2',
      branch: undefined,
      timeZone: 'Asia/Kolkata',
      version: 2,
    });
    expect(await read(provider.reference)).toEqual(changed);
    expect(await versionsOf(provider.id)).toEqual([1, 2]);
  });

  it('does not change the provider of another CRM with the same reference', async () => {
    const ofOther = () =>
      service.identity.getProvider({ crmId: 'two', key: { $case: 'reference', value: 'provider@crm' } });
    const before = await ofOther();
    await service.identity.updateProvider({ crmId: 'one', reference: 'provider@crm', name: 'After' });
    expect(await ofOther()).toEqual(before);
  });

  it('gets the time zone of its CRM when it is cleared', async () => {
    const { reference } = await create();
    expect((await service.identity.updateProvider({ crmId: 'one', reference, timeZone: '' })).provider?.timeZone).toBe(
      'Europe/Zurich',
    );
  });

  it('stays the same, and is not published, when a field is invalid or another CRM asks', async () => {
    const provider = await create();
    const change = (changes: object) =>
      refusal(
        service.identity.updateProvider({ crmId: 'one', reference: provider.reference, name: 'After', ...changes }),
      );
    expect(await change({ timeZone: '+01:00' })).toMatchObject({
      category: 'invalid',
      code: 'provider.time_zone_unknown',
      errors: [{ pointer: '/timeZone' }],
    });
    expect(await change({ branch: 'none' })).toMatchObject({
      category: 'not_found',
      message: 'Unable to find specified branch. Was none',
    });
    const absent = await change({ reference: 'absent' });
    expect(absent).toMatchObject({ category: 'not_found', code: 'provider.not_found' });
    expect(await change({ crmId: 'two' })).toEqual(absent);
    expect(await read(provider.reference)).toEqual(provider);
    expect(await versionsOf(provider.id)).toEqual([1]);
  });

  it('has the fields of all concurrent requests, each with a version of its own', async () => {
    const { id, reference } = await create();
    const changes = ['name', 'email', 'mobile', 'phone', 'impressum', 'subbranch'].map((field) => ({
      [field]: `new ${field}`,
    }));
    const answers = await Promise.all(
      changes.map((change, index) => replica(index).updateProvider({ crmId: 'one', reference, ...change })),
    );
    expect(await read(reference)).toMatchObject({ ...Object.assign({}, ...changes), version: 7 });
    expect(new Set(answers.map(({ provider }) => provider!.version))).toEqual(new Set([2, 3, 4, 5, 6, 7]));
    expect(new Set(await versionsOf(id))).toEqual(new Set([1, 2, 3, 4, 5, 6, 7]));
  });
});

describe('a changed account', () => {
  let count = 0;
  const invoiceAddress = { city: 'Köln', countryCode: 'DE', street: 'Ring', number: '1a', zip: '50667' };
  const create = async () => {
    const accountReference = `changed-${(count += 1)}@crm`;
    const account = {
      accountReference,
      ownerReference: 'owner@crm',
      branch: 'misc',
      invoiceAddress,
      invoiceTaxId: 'DE1',
      email: 'i@one.example',
    };
    return (await service.identity.createAccount({ crmId: 'one', account })).account!;
  };
  const read = async (reference: string) => (await service.identity.getAccount({ crmId: 'one', reference })).account;

  it('has the given fields, keeps the others, and loses the empty ones', async () => {
    const account = await create();
    const reference = account.accountReference;
    const moved = { ...invoiceAddress, street: 'Allee' };
    const { account: changed } = await service.identity.updateAccount({
      crmId: 'one',
      reference,
      branch: 'handyman',
      invoiceAddress: moved,
      invoiceTaxId: '',
    });
    expect(changed).toEqual({ ...account, branch: 'handyman', invoiceAddress: moved, invoiceTaxId: undefined });
    expect(await read(reference)).toEqual(changed);
    expect((await service.identity.updateAccount({ crmId: 'one', reference })).account).toEqual(changed);
    const none = { city: '', countryCode: '', street: '', number: '', zip: '' };
    expect((await service.identity.updateAccount({ crmId: 'one', reference, invoiceAddress: none })).account).toEqual({
      ...changed,
      invoiceAddress: undefined,
    });
  });

  it('does not change the account of another CRM with the same reference', async () => {
    const ofOther = () => service.identity.getAccount({ crmId: 'two', reference: 'account@crm' });
    const before = await ofOther();
    await service.identity.updateAccount({ crmId: 'one', reference: 'account@crm', branch: 'handyman' });
    expect(await ofOther()).toEqual(before);
  });

  it('stays the same when the branch is unknown or another CRM asks', async () => {
    const account = await create();
    const change = (changes: object) =>
      refusal(
        service.identity.updateAccount({ crmId: 'one', reference: account.accountReference, email: '', ...changes }),
      );
    expect(await change({ branch: 'none' })).toMatchObject({
      category: 'not_found',
      message: 'Unable to find specified branch. Was none',
    });
    const absent = await change({ reference: 'absent@crm' });
    expect(absent).toMatchObject({ category: 'not_found', code: 'account.not_found' });
    expect(await change({ crmId: 'two' })).toEqual(absent);
    expect(await read(account.accountReference)).toEqual(account);
  });

  it('has the fields of all concurrent requests', async () => {
    const { accountReference: reference } = await create();
    const changes = ['invoiceContactName', 'invoiceCompanyName', 'invoiceTaxId', 'email'].map((field) => ({
      [field]: `new ${field}`,
    }));
    await Promise.all(
      changes.map((change, index) => replica(index).updateAccount({ crmId: 'one', reference, ...change })),
    );
    expect(await read(reference)).toMatchObject(Object.assign({}, ...changes));
  });
});

describe('a changed user', () => {
  let count = 0;
  const create = () => createUser(service, 'one', `changed-${(count += 1)}`);
  const update = (reference: string | undefined, changes: object) =>
    service.identity.updateUser({ crmId: 'one', reference: reference!, ...changes });
  const read = async (reference: string | undefined) =>
    (await service.identity.getUser({ crmId: 'one', reference: reference! })).user!;
  const isVerified = async (reference: string | undefined) =>
    (await service.identity.getUserVerification({ crmId: 'one', reference: reference! })).verification!.verified;
  const stored = (id: string) =>
    service.database.kysely.selectFrom('appUser').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
  const requests = () => recordedEvents(service.database, events.emailVerificationRequested);
  /** The token of the most recently requested mail. */
  const issueLast = async () => (await service.identity.issueVerificationToken((await requests()).at(-1)!)).token;
  const verify = async (reference: string | undefined) => {
    await service.identity.requestVerification({ crmId: 'one', reference: reference! });
    await service.identity.confirmVerification({ token: await issueLast() });
  };
  /** Later, another mail may be sent. */
  const letTimePass = async (userId: string) => {
    await service.database.kysely
      .updateTable('emailVerification')
      .set({ requestedAt: [] })
      .where('userId', '=', userId)
      .execute();
    await service.database.kysely.deleteFrom('verificationMailbox').execute();
  };

  it('has the given fields, keeps the others, and loses the empty ones', async () => {
    const user = await create();
    const { user: changed } = await update(user.reference, {
      username: 'Changed',
      lastName: 'Last',
      firstName: 'First',
      phone: '1',
    });
    expect(changed).toEqual({ ...user, username: 'Changed', lastName: 'Last', firstName: 'First', phone: '1' });
    expect((await update(user.reference, { firstName: '', mobile: '2' })).user).toEqual({
      ...changed,
      firstName: undefined,
      mobile: '2',
    });
    expect((await update(user.reference, {})).user).toEqual(await read(user.reference));
    expect(await requests()).toEqual([]);
  });

  it('stays the same when another user has the e-mail or the username, in any CRM and in any case', async () => {
    const user = await create();
    const neighbour = await create();
    const foreigner = await createUser(service, 'two', 'foreigner');
    for (const { email, username } of [neighbour, foreigner]) {
      const takenEmail = await refusal(update(user.reference, { email: email.toUpperCase() }));
      const takenUsername = await refusal(update(user.reference, { username: username.toUpperCase() }));
      expect(takenEmail).toMatchObject({
        category: 'conflict',
        code: 'user.email_taken',
        message: 'User with given email already exists.',
      });
      expect(takenUsername).toMatchObject({
        category: 'conflict',
        code: 'user.username_taken',
        message: 'User with given username already exists.',
      });
    }
    expect(await read(user.reference)).toEqual(user);
  });

  it('does not change the user of another CRM with the same reference', async () => {
    const ofOther = () => service.identity.getUser({ crmId: 'two', reference: 'owner@crm' });
    const before = await ofOther();
    await update('owner@crm', { lastName: 'After' });
    expect(await ofOther()).toEqual(before);
  });

  it('is not found by another CRM', async () => {
    const user = await create();
    const absent = await refusal(update('absent@crm', { lastName: 'Last' }));
    expect(absent).toMatchObject({ category: 'not_found', code: 'user.not_found' });
    expect(await refusal(update(user.reference, { crmId: 'two', lastName: 'Last' }))).toEqual(absent);
    expect(await read(user.reference)).toEqual(user);
  });

  it('has to confirm a new address, by a mail to it, and earlier links stop working', async () => {
    const user = await create();
    await verify(user.reference);
    await letTimePass(user.id);
    const before = await requests();
    const email = `new-${user.email}`;
    expect((await update(user.reference, { email })).user).toEqual({ ...user, email });
    expect(await isVerified(user.reference)).toBe(false);
    expect(await requests()).toHaveLength(before.length + 1);
    const earlier = await issueLast();
    expect(await service.identity.getVerification({ token: earlier })).toMatchObject({ email });
    await letTimePass(user.id);
    await update(user.reference, { email: user.email });
    expect(await refusal(service.identity.confirmVerification({ token: earlier }))).toMatchObject({
      code: 'verification.not_found',
    });
    await service.identity.confirmVerification({ token: await issueLast() });
    expect(await read(user.reference)).toEqual(user);
    expect(await isVerified(user.reference)).toBe(true);
  });

  it('stays verified, without a mail, when address and username change only in case or not at all', async () => {
    const user = await create();
    await verify(user.reference);
    await letTimePass(user.id);
    const before = await requests();
    const names = { email: user.email.toUpperCase(), username: user.username.toUpperCase() };
    expect((await update(user.reference, names)).user).toEqual({ ...user, ...names });
    expect(await isVerified(user.reference)).toBe(true);
    await update(user.reference, names);
    expect(await requests()).toEqual(before);
  });

  it('stays verified, without a mail, when the address is given in another form', async () => {
    const user = await create();
    await update(user.reference, { email: `form-${count}@bücher.example` });
    await letTimePass(user.id);
    await verify(user.reference);
    await letTimePass(user.id);
    const before = await requests();
    const email = `Form-${count}@xn--bcher-kva.example`;
    expect((await update(user.reference, { email })).user).toMatchObject({ email });
    expect(await isVerified(user.reference)).toBe(true);
    expect(await requests()).toEqual(before);
  });

  it('gets an address of their own in place of a derived one', async () => {
    const { email } = await create();
    const reference = `derived-${count}@crm`;
    const { user: derived } = await service.identity.createUser({
      crmId: 'one',
      reference,
      email,
      username: reference,
      lastName: 'Derived',
    });
    expect((await stored(derived!.id)).emailGenerated).toBe(true);
    await update(reference, { email: derived!.email.toUpperCase() });
    expect((await stored(derived!.id)).emailGenerated).toBe(true);
    await update(reference, { email: `own-${email}` });
    expect(await stored(derived!.id)).toMatchObject({ emailGenerated: false, emailDerivedFrom: null });
    await service.identity.confirmVerification({ token: await issueLast() });
    expect(await isVerified(reference)).toBe(true);
  });

  it('stays the same when the mail about a new address would exceed the limits of verification mails', async () => {
    const user = await create();
    await service.identity.requestVerification({ crmId: 'one', reference: user.reference! });
    const before = await requests();
    const refused = await refusal(update(user.reference, { email: `new-${user.email}`, lastName: 'Last' }));
    expect(refused).toMatchObject({ category: 'limited', code: 'verification.limited' });
    expect(refused.retryAfterSeconds).toBeGreaterThan(0);
    expect(await read(user.reference)).toEqual(user);
    expect(await requests()).toEqual(before);
    expect((await update(user.reference, { lastName: 'Last' })).user?.lastName).toBe('Last');
  });

  it('is the only one of twenty who takes an address or a username at once', async () => {
    for (const [field, code] of [
      ['email', 'user.email_taken'],
      ['username', 'user.username_taken'],
    ] as const) {
      const users = await Promise.all(Array.from({ length: 20 }, () => patiently(create)));
      const wanted = field === 'email' ? 'wanted@one.example' : 'wanted';
      const take = ({ reference }: (typeof users)[number], index: number) =>
        patiently(() => replica(index).updateUser({ crmId: 'one', reference: reference!, [field]: wanted }));
      const results = await Promise.allSettled(users.map(take));
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject({ code });
    }
  });

  it('never shares an address with a user who is created at the same moment', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { reference } = await create();
      const email = `contested-${round}@one.example`;
      const person = {
        crmId: 'one',
        reference: `contested-${round}@crm`,
        email,
        username: `contested-${round}`,
        lastName: 'New',
      };
      const [updated, created] = await Promise.allSettled([update(reference, { email }), other.createUser(person)]);
      expect(created.status).toBe('fulfilled');
      if (updated.status === 'rejected') expect(updated.reason).toMatchObject({ code: 'user.email_taken' });
    }
  });

  it('is never verified by the link that an earlier address received', async () => {
    for (let round = 0; round < 20; round += 1) {
      const user = await create();
      await service.identity.requestVerification({ crmId: 'one', reference: user.reference! });
      const token = await issueLast();
      await letTimePass(user.id);
      await Promise.allSettled([
        service.identity.confirmVerification({ token }),
        other.updateUser({ crmId: 'one', reference: user.reference!, email: `new-${user.email}` }),
      ]);
      expect(await read(user.reference)).toMatchObject({ email: `new-${user.email}` });
      expect(await isVerified(user.reference)).toBe(false);
    }
  });

  it('causes no deadlock', async () => {
    expect(await service.countDeadlocks()).toBe(0);
  });
});
