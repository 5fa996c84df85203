import { events } from '@scheduling/events';
import { isEmailAddress } from '@scheduling/runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IdentityUnderTest, recordedEvents, refusal, startIdentity } from './identity-under-test.ts';
import { createProvider, createUser, insertDerived, insertUsers, invite } from './scenario.ts';

let service: IdentityUnderTest;
beforeAll(async () => {
  service = await startIdentity();
  await service.admin.createCrm({ crmId: 'one', language: 'en' });
  await service.admin.createCrm({ crmId: 'two' });
  await createProvider(service, 'one');
  await createProvider(service, 'two');
});
afterAll(() => service[Symbol.asyncDispose]());

const usernameTaken = {
  category: 'conflict',
  code: 'user.username_taken',
  message: 'User with given username already exists.',
};
const emailTaken = { category: 'conflict', code: 'user.email_taken', message: 'User with given email already exists.' };

const longDomain = [62, 62, 62, 61].map((length) => 'd'.repeat(length)).join('.');

const storedUser = (id: string) =>
  service.database.kysely.selectFrom('appUser').selectAll().where('id', '=', id).executeTakeFirstOrThrow();

describe('rule 1: the reference is known', () => {
  it('updates phone, mobile, last and first name, and nothing else', async () => {
    const user = await createUser(service, 'one', 'known');
    const { user: updated, created } = await service.identity.createUser({
      crmId: 'one',
      reference: 'known@crm',
      email: 'elsewhere@one.example',
      username: 'someone-else',
      lastName: 'Last',
      firstName: 'First',
      phone: '1',
      mobile: '2',
      language: 'fr',
    });
    expect(created).toBe(false);
    expect(updated).toEqual({ ...user, lastName: 'Last', firstName: 'First', phone: '1', mobile: '2' });
    expect((await service.identity.getUser({ crmId: 'one', reference: 'known@crm' })).user).toEqual(updated);
    expect((await storedUser(user.id)).language).toBe('en');
  });

  it('keeps what is absent and clears what is empty', async () => {
    const request = {
      crmId: 'one',
      reference: 'keep@crm',
      email: 'keep@one.example',
      username: 'keep',
      lastName: 'Keep',
    };
    const { user } = await service.identity.createUser({ ...request, firstName: 'First', phone: '1', mobile: '2' });
    expect((await service.identity.createUser({ ...request, phone: '' })).user).toEqual({ ...user, phone: undefined });
  });

  it('takes precedence over all others, even when username and e-mail belong to other users', async () => {
    const user = await createUser(service, 'one', 'first');
    const other = await createUser(service, 'one', 'second');
    const { user: answered, created } = await service.identity.createUser({
      crmId: 'one',
      reference: 'first@crm',
      email: other.email,
      username: other.username,
      lastName: 'first',
    });
    expect({ answered, created }).toEqual({ answered: user, created: false });
  });
});

describe('rule 2: the e-mail belongs to another user', () => {
  const request = (crmId: string, name: string, email: string) => ({
    crmId,
    reference: `${name}@crm`,
    email,
    username: `${name}-rule2`,
    lastName: name,
  });

  it('applies to every form of the address', async () => {
    await service.identity.createUser(request('one', 'form', 'form@bücher.example'));
    const forms = ['Form@xn--bcher-kva.example', 'form@BÜCHER.example', 'form@bu\u0308cher.example'];
    for (const [index, email] of forms.entries()) {
      const { user } = await service.identity.createUser(request('two', `form-${index}`, email));
      expect(user!.email).toBe(email.replace(/@/, `${index + 1}@`));
    }
    const ofOther = { crmId: 'two', reference: 'form-0@crm', email: 'form@xn--bcher-kva.example' };
    expect(await refusal(service.identity.updateUser(ofOther))).toMatchObject(emailTaken);
  });

  it('creates a user with the next derived address, which never receives mail', async () => {
    await service.identity.createUser(request('one', 'info', 'Info@Rule2.example'));
    const { user: first, created } = await service.identity.createUser(request('one', 'info-a', 'info@rule2.example'));
    const { user: second } = await service.identity.createUser(request('one', 'info-b', 'INFO@rule2.example'));
    expect(created).toBe(true);
    expect([first?.email, second?.email]).toEqual(['info1@rule2.example', 'INFO2@rule2.example']);
    expect((await storedUser(first!.id)).emailGenerated).toBe(true);
  });

  it('skips a derived address that is taken', async () => {
    await service.identity.createUser(request('one', 'skip1', 'skip1@rule2.example'));
    await service.identity.createUser(request('one', 'skip', 'skip@rule2.example'));
    const { user } = await service.identity.createUser(request('one', 'skip-a', 'skip@rule2.example'));
    expect(user?.email).toBe('skip2@rule2.example');
  });

  it('applies to an address of another CRM, even of an invited person there', async () => {
    await createUser(service, 'one', 'abroad');
    const { user } = await service.identity.createUser(request('two', 'abroad', 'abroad@one.example'));
    expect(user?.email).toBe('abroad1@one.example');
    await invite(service, 'one', 'invited-abroad');
    const { user: other, created } = await service.identity.createUser(
      request('two', 'invited-abroad', 'invited-abroad@one.example'),
    );
    expect({ email: other?.email, created }).toEqual({ email: 'invited-abroad1@one.example', created: true });
  });

  it('ends in user.email_taken for a CRM that has derived 1,000 addresses from the given one, and for no other CRM', async () => {
    await createUser(service, 'one', 'full');
    await insertDerived(service, 'one', { local: 'full', domain: 'one.example', first: 1, count: 1_000 });
    expect(await refusal(service.identity.createUser(request('one', 'full-a', 'Full@one.example')))).toMatchObject(
      emailTaken,
    );
    const { user: known } = await service.identity.createUser(request('one', 'full', 'full@one.example'));
    const { user: own } = await service.identity.createUser(request('one', 'full-b', 'full7@one.example'));
    const { user: other } = await service.identity.createUser(request('two', 'full', 'full@one.example'));
    expect([known, own, other].map((user) => user?.email)).toEqual([
      'full@one.example',
      'full7100@one.example',
      'full1001@one.example',
    ]);
  });

  it('finds a free address, with a random number, when twelve CRMs have derived all that they may', async () => {
    await createUser(service, 'one', 'crowd');
    for (let index = 0; index < 12; index += 1) {
      await service.admin.createCrm({ crmId: `crowd-${index}` });
      await insertDerived(service, `crowd-${index}`, {
        local: 'crowd',
        domain: 'one.example',
        first: index * 1_000 + 1,
        count: 1_000,
      });
    }
    const { user: first } = await service.identity.createUser(request('two', 'crowd-a', 'crowd@one.example'));
    const { user: second } = await service.identity.createUser(request('two', 'crowd-b', 'crowd@one.example'));
    const random: unknown = expect.stringMatching(/^crowd\d{9}@one\.example$/);
    expect([first?.email, second?.email]).toEqual([random, random]);
    expect(second?.email).not.toBe(first?.email);
  });

  it('finds a free address when another CRM has users with the addresses that would be derived', async () => {
    await createUser(service, 'two', 'numbered');
    await insertUsers(service, 'one', { local: 'numbered', domain: 'two.example', first: 1, count: 1_100 });
    const { user } = await service.identity.createUser(request('two', 'numbered-a', 'numbered@two.example'));
    expect(user?.email).toBe('numbered1101@two.example');
  });

  it.each([
    [
      'local part',
      `${'l'.repeat(64)}@long.example`,
      `${'l'.repeat(63)}1@long.example`,
      `${'l'.repeat(63)}2@long.example`,
    ],
    ['address', `dom@${longDomain}`, `do1@${longDomain}`, `do2@${longDomain}`],
  ])('shortens the local part when the %s has the maximum length', async (what, email, first, second) => {
    expect([email.length, isEmailAddress(email)]).toEqual([what === 'address' ? 254 : 77, true]);
    const emails: (string | undefined)[] = [];
    for (const index of [0, 1, 2])
      emails.push((await service.identity.createUser(request('one', `${what}-${index}`, email))).user?.email);
    expect(emails).toEqual([email, first, second]);
    expect(emails.map((address) => isEmailAddress(address!))).toEqual([true, true, true]);
  });

  it('ends in user.email_taken when the domain leaves no room for a number', async () => {
    const email = `d@x${longDomain}x`;
    await service.identity.createUser(request('one', 'no-room', email));
    expect(await refusal(service.identity.createUser(request('one', 'no-room-a', email)))).toMatchObject(emailTaken);
  });

  it('is not kept from users of its own with numbered addresses by their number', async () => {
    await insertUsers(service, 'one', { local: 'student', domain: 'one.example', first: 1_000, count: 1_100 });
    const { user: own } = await service.identity.createUser(request('one', 'student', 'student999@one.example'));
    const { user: derived } = await service.identity.createUser(request('one', 'student-a', 'student1000@one.example'));
    expect([own?.email, derived?.email]).toEqual(['student999@one.example', 'student10001@one.example']);
  });

  it('rejects a username that is taken', async () => {
    const user = await createUser(service, 'one', 'taken-name');
    const refused = service.identity.createUser({
      ...request('one', 'other-name', user.email),
      username: user.username.toUpperCase(),
    });
    expect(await refusal(refused)).toMatchObject(usernameTaken);
  });
});

describe('rule 3: the e-mail belongs to an invited person', () => {
  it('gives the person the reference and the contact data, and requires the address to be confirmed again', async () => {
    const { user: invited } = await invite(service, 'one', 'guest');
    await service.database.kysely
      .updateTable('appUser')
      .set({ emailVerifiedAt: new Date() })
      .where('id', '=', invited!.id)
      .execute();
    const { user, created } = await service.identity.createUser({
      crmId: 'one',
      reference: 'guest@crm',
      email: 'GUEST@one.example',
      username: 'another-name',
      lastName: 'Guest',
      phone: '1',
    });
    expect(created).toBe(false);
    expect(user).toEqual({ ...invited, reference: 'guest@crm', lastName: 'Guest', phone: '1' });
    expect((await storedUser(invited!.id)).emailVerifiedAt).toBeNull();
    const verification = await service.database.kysely
      .selectFrom('emailVerification')
      .selectAll()
      .where('userId', '=', invited!.id)
      .executeTakeFirstOrThrow();
    expect(await recordedEvents(service.database, events.emailVerificationRequested)).toEqual([
      { crmId: 'one', verificationId: verification.id },
    ]);
    const again = await service.identity.createUser({
      crmId: 'one',
      reference: 'guest-2@crm',
      email: 'guest@one.example',
      username: 'guest-2',
      lastName: 'Guest',
    });
    expect(again).toMatchObject({ user: { email: 'guest1@one.example' }, created: true });
  });
});

describe('rule 4: a new user', () => {
  it('has the given fields and the language of its CRM, or its own', async () => {
    const request = {
      crmId: 'one',
      reference: 'ä/?#%@crm',
      email: 'New@One.example',
      username: 'New',
      lastName: 'Last',
    };
    const { user, created } = await service.identity.createUser(request);
    expect(created).toBe(true);
    const { crmId: _, ...fields } = request;
    expect(user).toEqual({
      id: user?.id,
      ...fields,
      firstName: undefined,
      phone: undefined,
      mobile: undefined,
    });
    expect((await storedUser(user!.id)).language).toBe('en');
    const own = {
      crmId: 'one',
      reference: 'own@crm',
      email: 'own@one.example',
      username: 'own',
      lastName: 'Own',
      language: 'fr',
    };
    const { user: french } = await service.identity.createUser(own);
    expect((await storedUser(french!.id)).language).toBe('fr');
  });

  it('is rejected when its username is taken, in upper or lower case and in any CRM', async () => {
    await service.identity.createUser({
      crmId: 'one',
      reference: 'jörg@crm',
      email: 'joerg@one.example',
      username: 'Jörg',
      lastName: 'J',
    });
    for (const crmId of ['one', 'two']) {
      const request = { crmId, reference: 'other@crm', email: 'other@one.example', username: 'JÖRG', lastName: 'J' };
      expect(await refusal(service.identity.createUser(request))).toMatchObject(usernameTaken);
      expect(await refusal(service.identity.getUser({ crmId, reference: 'other@crm' }))).toMatchObject({
        code: 'user.not_found',
      });
    }
  });

  it.each(['Jana Doe ', ' Jana Doe', 'Jana\u00A0Doe', 'Jana  Doe', 'Jana\u200B Doe', 'Jana Doe\u202E', 'Ｊana Doe'])(
    'is rejected when people would read its username as one that is taken: %j',
    async (username) => {
      const taken = {
        crmId: 'one',
        reference: 'jana@crm',
        email: 'jana@one.example',
        username: 'Jana Doe',
        lastName: 'J',
      };
      await service.identity.createUser(taken);
      const request = {
        crmId: 'two',
        reference: 'looks-alike@crm',
        email: 'looks-alike@one.example',
        username,
        lastName: 'J',
      };
      expect(await refusal(service.identity.createUser(request))).toMatchObject(usernameTaken);
      const { user } = await service.identity.updateUser({ crmId: 'one', reference: taken.reference, username });
      expect(user!.username).toBe(username);
    },
  );

  // Node knows the cases of these letters, of Unicode 17, and Postgres 18 does not.
  it('is rejected, or gets a derived address, when its names are the same for the unique indexes only', async () => {
    const names = { email: 'new\uA7CE@one.example', username: 'new\uA7CE' };
    await service.identity.createUser({ crmId: 'one', reference: 'capital@crm', ...names, lastName: 'N' });
    const other = { crmId: 'two', reference: 'small@crm', email: 'new\uA7CF@one.example', lastName: 'N' };
    expect(await refusal(service.identity.createUser({ ...other, username: 'new\uA7CF' }))).toMatchObject(
      usernameTaken,
    );
    expect((await service.identity.createUser({ ...other, username: 'small' })).user!.email).toBe(
      'new\uA7CF1@one.example',
    );
    const change = { crmId: 'two', reference: other.reference };
    expect(await refusal(service.identity.updateUser({ ...change, email: 'new\uA7CF@one.example' }))).toMatchObject(
      emailTaken,
    );
    expect(await refusal(service.identity.updateUser({ ...change, username: 'new\uA7CF' }))).toMatchObject(
      usernameTaken,
    );
  });

  it('may have the reference of a user of another CRM', async () => {
    const one = await createUser(service, 'one', 'shared');
    const two = await createUser(service, 'two', 'shared');
    expect(two.id).not.toBe(one.id);
    expect((await service.identity.getUser({ crmId: 'two', reference: 'shared@crm' })).user).toEqual(two);
  });
});

describe('the database', () => {
  it.each([
    ['app_user_reference_key', { emailKey: 'x', usernameKey: 'x' }],
    ['app_user_email_key', { reference: 'x', usernameKey: 'x' }],
    ['app_user_username_key', { reference: 'x', emailKey: 'x' }],
  ])('enforces with %s what the locks ensure', async (constraint, changes) => {
    const reference = `guarded-${constraint}`;
    const { id: _, ...row } = await storedUser((await createUser(service, 'one', reference)).id);
    const second = service.database.kysely
      .insertInto('appUser')
      .values({ ...row, ...changes })
      .execute();
    await expect(second).rejects.toMatchObject({ code: '23505', constraint });
  });
});
