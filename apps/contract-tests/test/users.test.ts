import { beforeAll, describe, expect, inject, it } from 'vitest';
import { apiInfo } from './answers.ts';
import { path } from '@scheduling/test-stack/client';
import { createCrm, createPractice, newUser, type TestCrm, unique } from '@scheduling/test-stack/crm';
import { query } from '@scheduling/test-stack/databases';
import { readMails, waitForMails } from '@scheduling/test-stack/inbox';

let crm: TestCrm;
beforeAll(async () => {
  crm = await createCrm();
});

describe('users (interface 4.5)', () => {
  it('are created and read with all their fields', async () => {
    const user = newUser({ firstName: 'Grace', phone: '+49 30 1', mobile: '+49 170 1' });
    const created = await crm.post('/user', user);
    expect(created).toMatchObject({ status: 201, body: { 'api-info': apiInfo, user } });
    const read = await crm.get(path`/user/${user.reference}`);
    expect(read.status).toBe(200);
    expect(read.body).toStrictEqual({ 'api-info': apiInfo, user });
  });

  it('show null for what is absent', async () => {
    const user = newUser();
    expect((await crm.post('/user', user)).body).toStrictEqual({
      'api-info': apiInfo,
      user: { ...user, firstName: null, phone: null, mobile: null },
    });
  });

  it('rule 1: a known reference updates phone, mobile and names, keeps what is absent, and clears what is null', async () => {
    const user = newUser({ firstName: 'Grace', phone: '1', mobile: '2' });
    await crm.post('/user', user);
    const again = await crm.post('/user', {
      reference: user.reference,
      email: 'other@test.example',
      username: unique('other'),
      lastName: 'Murray',
      phone: null,
      mobile: '3',
    });
    expect(again).toMatchObject({
      status: 200,
      body: { user: { ...user, lastName: 'Murray', firstName: 'Grace', phone: null, mobile: '3' } },
    });
  });

  it('rule 2: an e-mail that belongs to another reference is replaced by a derived one', async () => {
    const first = newUser();
    await crm.post('/user', first);
    const [local, domain] = first.email.split('@');
    for (const number of [1, 2]) {
      const next = await crm.post('/user', newUser({ email: first.email.toUpperCase() }));
      expect(next.status).toBe(201);
      expect(JSON.stringify(next.body).toLowerCase()).toContain(`"${local}${number}@${domain}"`);
    }
    const elsewhere = await (await createCrm()).post('/user', newUser({ email: first.email }));
    expect(elsewhere).toMatchObject({ status: 201, body: { user: { email: `${local}3@${domain}` } } });
  });

  it('reject a username that is taken, even by another CRM or in another case', async () => {
    const user = newUser();
    await crm.post('/user', user);
    const message = {
      status: 409,
      body: { code: 'user.username_taken', detail: 'User with given username already exists.' },
    };
    expect(await crm.post('/user', newUser({ username: user.username.toUpperCase() }))).toMatchObject(message);
    expect(await (await createCrm()).post('/user', newUser({ username: user.username }))).toMatchObject(message);
  });

  it.each([
    ['en', 'en'],
    ['de-AT', 'de'],
    ['tlh', 'de'],
    ['not a tag!', 'de'],
  ])('take their language from the cookie SERVICE_LANG=%s if the service supports it', async (cookie, language) => {
    const user = newUser();
    await crm.post('/user', user, { headers: { cookie: `SERVICE_LANG=${encodeURIComponent(cookie)}` } });
    expect(
      await query('identity', 'SELECT language FROM app_user WHERE crm_id = $1 AND reference = $2', [
        crm.crmId,
        user.reference,
      ]),
    ).toEqual([{ language }]);
  });

  it('are 404 if there is none', async () => {
    expect(await crm.get('/user/nobody%40test')).toMatchObject({ status: 404, body: { code: 'user.not_found' } });
  });
});

describe('changed users (interface 4.5)', () => {
  it('have the given fields: null clears, absent keeps', async () => {
    const user = newUser({ firstName: 'Grace', phone: '1', mobile: '2' });
    await crm.post('/user', user);
    const changed = { ...user, username: unique('renamed'), lastName: 'Murray', phone: null };
    const answer = await crm.put(path`/user/${user.reference}`, {
      username: changed.username,
      lastName: 'Murray',
      phone: null,
      reference: 'other@test',
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toStrictEqual({ 'api-info': apiInfo, user: changed });
    expect((await crm.get(path`/user/${user.reference}`)).body).toStrictEqual(answer.body);
  });

  it('reject an e-mail or a username that is taken, and are 404 if there is none', async () => {
    const [user, neighbour] = [newUser(), newUser()];
    await crm.post('/user', user);
    await (await createCrm()).post('/user', neighbour);
    const change = (fields: object) => crm.put(path`/user/${user.reference}`, fields);
    const emailTaken = { code: 'user.email_taken', detail: 'User with given email already exists.' };
    expect(await change({ email: neighbour.email })).toMatchObject({ status: 409, body: emailTaken });
    const usernameTaken = { code: 'user.username_taken', detail: 'User with given username already exists.' };
    expect(await change({ username: neighbour.username })).toMatchObject({ status: 409, body: usernameTaken });
    expect(await crm.put('/user/nobody%40test', { lastName: 'L' })).toMatchObject({
      status: 404,
      body: { code: 'user.not_found' },
    });
  });

  it('have to confirm a new address, by the link of a mail to it', async () => {
    const user = newUser();
    await crm.post('/user', user);
    const email = `new-${user.email}`;
    expect(await crm.put(path`/user/${user.reference}`, { email })).toMatchObject({
      status: 200,
      body: { user: { email } },
    });
    expect(await verificationOf(user.reference)).toMatchObject({ email, verified: false });
    const [mail] = await waitForMails(email, 1);
    const token = new URL(linkOf(mail!)).searchParams.get('token')!;
    expect(
      (await fetch(`${inject('stack').gateway}/verify-email`, { method: 'POST', body: new URLSearchParams({ token }) }))
        .status,
    ).toBe(200);
    expect(await verificationOf(user.reference)).toMatchObject({ email, verified: true });
    const again = await crm.put(path`/user/${user.reference}`, { email: user.email });
    expect(again).toMatchObject({ status: 429, body: { code: 'verification.limited' } });
    expect(await readMails(user.email)).toEqual([]);
  });
});

describe('deleted users (interface 4.5)', () => {
  it('are gone, also from the staff of providers, and their names can be used again', async () => {
    const practice = await createPractice(crm);
    const user = newUser();
    await crm.post('/user', user);
    await crm.post(`${practice.at}/staff`, { reference: user.reference });
    expect(await crm.delete(path`/user/${user.reference}`)).toMatchObject({ status: 204, text: '' });
    for (const gone of [
      await crm.get(path`/user/${user.reference}`),
      await crm.delete(path`/user/${user.reference}`),
    ]) {
      expect(gone).toMatchObject({ status: 404, body: { code: 'user.not_found' } });
    }
    expect(await crm.get(`${practice.at}/staff`)).toMatchObject({ body: [{ reference: practice.owner }] });
    expect(await crm.post('/user', user)).toMatchObject({ status: 201, body: { user } });
  });

  it('do not own anything', async () => {
    const { owner, account, provider } = await createPractice(crm);
    const detail = `The user cannot be deleted, because they own account ${account}, provider ${provider}.`;
    expect(await crm.delete(path`/user/${owner}`)).toMatchObject({ status: 409, body: { code: 'user.owner', detail } });
    expect(await crm.get(path`/user/${owner}`)).toMatchObject({ status: 200 });
  });
});

describe('a person who is invited and then created (interface 4.5, rule 3)', () => {
  it('gets the reference and a verification mail, whose page changes nothing when opened, confirms once and then says so', async () => {
    const practice = await createPractice(crm);
    const { reference, ...person } = newUser({ firstName: 'Ada', phone: '1' });
    const invited = await crm.post(`${practice.at}/staff`, person);
    expect(invited).toMatchObject({ status: 201, body: { user: { ...person, reference: null, mobile: null } } });
    expect(await crm.post(`${practice.at}/staff`, person)).toMatchObject({ status: 200 });

    const found = await crm.post('/user', {
      reference,
      email: person.email,
      username: unique('ignored'),
      lastName: 'Lovelace',
      mobile: '2',
    });
    expect(found).toMatchObject({
      status: 200,
      body: {
        user: {
          reference,
          email: person.email,
          username: person.username,
          lastName: 'Lovelace',
          firstName: 'Ada',
          phone: '1',
          mobile: '2',
        },
      },
    });
    expect(await crm.get(`${practice.at}/staff`)).toMatchObject({
      body: [{ reference: practice.owner }, { reference }],
    });

    const [mail] = await waitForMails(person.email, 1);
    expect(mail!.subject).toBe(`Bitte bestätigen Sie Ihre E-Mail-Adresse für ${crm.crmId}`);
    expectFacts(mail!.text, person.email);
    const link = linkOf(mail!);
    expect(link.startsWith(inject('stack').gateway)).toBe(true);
    for (let opened = 0; opened < 2; opened += 1) await expectConfirmPage(link, person.email);

    const token = new URL(link).searchParams.get('token')!;
    const confirm = (): Promise<Response> =>
      fetch(`${inject('stack').gateway}/verify-email`, { method: 'POST', body: new URLSearchParams({ token }) });
    const confirmed = await confirm();
    expect(confirmed.status).toBe(200);
    const confirmedPage = await confirmed.text();
    expect(confirmedPage).toContain(`für ${crm.crmId} ist bestätigt`);
    expectFacts(confirmedPage, person.email);
    for (const response of [await confirm(), await fetch(link)]) {
      expect(response.status).toBe(410);
      expect(await response.text()).toContain('bereits bestätigt');
    }
    const verified =
      'SELECT email_verified_at IS NOT NULL AS verified FROM app_user WHERE crm_id = $1 AND reference = $2';
    expect(await query('identity', verified, [crm.crmId, reference])).toEqual([{ verified: true }]);
    expect(await readMails(person.email)).toHaveLength(1);
  });

  it('is not found by another CRM', async () => {
    const practice = await createPractice(crm);
    const { reference, ...person } = newUser();
    await crm.post(`${practice.at}/staff`, person);
    const [local, domain] = person.email.split('@');
    const elsewhere = await (await createCrm()).post('/user', { ...person, reference, username: unique('other') });
    expect(elsewhere).toMatchObject({ status: 201, body: { user: { email: `${local}1@${domain}` } } });
  });

  it('learns from an expired link who can send a new one', async () => {
    const user = newUser();
    await crm.post('/user', user);
    await crm.send('POST', path`/user/${user.reference}/verification`);
    const [mail] = await waitForMails(user.email, 1);
    const link = linkOf(mail!);
    await query(
      'identity',
      `UPDATE email_verification SET expires_at = now() WHERE crm_id = $1 AND user_id = (SELECT id FROM app_user WHERE email = $2)`,
      [crm.crmId, user.email],
    );
    const token = new URL(link).searchParams.get('token')!;
    const pressed = await fetch(`${inject('stack').gateway}/verify-email`, {
      method: 'POST',
      body: new URLSearchParams({ token }),
    });
    for (const response of [await fetch(link), pressed]) {
      expect(response.status).toBe(410);
      expect(await response.text()).toContain(`${crm.crmId} kann Ihnen einen neuen schicken`);
    }
  });

  it.each([
    ['en-GB', 'en'],
    ['tlh', 'de'],
  ])('has the language %s of the invitation if the service supports it', async (language, spoken) => {
    const practice = await createPractice(crm);
    const { reference: _reference, ...person } = newUser();
    expect((await crm.post(`${practice.at}/staff`, { ...person, language })).status).toBe(201);
    expect(await query('identity', 'SELECT language FROM app_user WHERE email = $1', [person.email])).toEqual([
      { language: spoken },
    ]);
  });

  it('learns when a link does not exist', async () => {
    const response = await fetch(`${inject('stack').gateway}/verify-email?token=nothing`, {
      headers: { 'accept-language': 'de-CH,en' },
    });
    expect(response.status).toBe(404);
    expect(await response.text()).toContain('Diesen Link gibt es nicht');
  });
});

describe('a requested verification mail (interface 4.5)', () => {
  const request = (reference: string, options = {}) =>
    crm.send('POST', path`/user/${reference}/verification`, undefined, options);
  const letPass = async (interval: string) => {
    for (const table of ['email_verification', 'verification_mailbox']) {
      await query(
        'identity',
        `UPDATE ${table} SET requested_at = ARRAY(SELECT requested - $2::interval FROM unnest(requested_at) AS requested) WHERE crm_id = $1`,
        [crm.crmId, interval],
      );
    }
  };

  it('reaches the user, replaces an earlier one, and leads to a verified address', async () => {
    const practice = await createPractice(crm);
    const user = newUser();
    await crm.post('/user', user);
    await crm.post(`${practice.at}/staff`, { reference: user.reference });
    expect(await request(user.reference)).toMatchObject({ status: 204, text: '' });
    const [first] = await waitForMails(user.email, 1);

    await letPass('1 minute');
    expect((await request(user.reference, { headers: { 'content-type': 'application/json' } })).status).toBe(204);
    const [, second] = await waitForMails(user.email, 2);
    expect((await fetch(linkOf(first!))).status).toBe(404);
    const token = new URL(linkOf(second!)).searchParams.get('token')!;
    const confirmed = await fetch(`${inject('stack').gateway}/verify-email`, {
      method: 'POST',
      body: new URLSearchParams({ token }),
    });
    expect(confirmed.status).toBe(200);

    expect(await verificationOf(user.reference)).toMatchObject({ email: user.email, verified: true });
    const shown = { ...user, firstName: null, phone: null, mobile: null };
    expect((await crm.get(path`/user/${user.reference}`)).body).toStrictEqual({ 'api-info': apiInfo, user: shown });
    const staff = await crm.get(`${practice.at}/staff`);
    expect(staff.body).toEqual([expect.objectContaining({ reference: practice.owner }), shown]);
    await letPass('1 day');
    expect(await request(user.reference)).toMatchObject({ status: 409, body: { code: 'user.email_verified' } });
    expect(await readMails(user.email)).toHaveLength(2);
  });

  it('is sent at most once a minute and five times a day', async () => {
    const user = newUser();
    await crm.post('/user', user);
    for (let times = 0; times < 5; times += 1) {
      expect((await request(user.reference)).status).toBe(204);
      const again = await request(user.reference);
      expect(again).toMatchObject({ status: 429, body: { code: 'verification.limited' } });
      expect(Number(again.headers.get('retry-after'))).toBeGreaterThan(times < 4 ? 1 : 3_600);
      // A request that overtakes the event of the previous one gets the only mail of the two.
      await waitForMails(user.email, times + 1);
      await letPass('1 minute');
    }
    expect((await request(user.reference)).status).toBe(429);
  });

  it('is sent once a minute to a mailbox, also if the user is deleted and created again', async () => {
    const user = newUser();
    await crm.post('/user', user);
    expect((await request(user.reference)).status).toBe(204);
    await waitForMails(user.email, 1);
    for (const email of [user.email, user.email.toUpperCase(), user.email.replace('@', '+again@')]) {
      expect((await crm.delete(path`/user/${user.reference}`)).status).toBe(204);
      expect(await crm.post('/user', { ...user, email })).toMatchObject({ status: 201, body: { user: { email } } });
      const again = await request(user.reference);
      expect(again).toMatchObject({ status: 429, body: { code: 'verification.limited' } });
      expect(Number(again.headers.get('retry-after'))).toBeGreaterThan(1);
    }
    const [other, namesake] = [await createCrm(), newUser({ email: user.email.replace('@', '+other@') })];
    await other.post('/user', namesake);
    expect((await other.send('POST', path`/user/${namesake.reference}/verification`)).status).toBe(204);
  });

  it('shows when it was sent and until when its link works', async () => {
    const user = newUser();
    await crm.post('/user', user);
    const none = { email: user.email, verified: false, sentAt: null, expiresAt: null };
    expect((await crm.get(path`/user/${user.reference}/verification`)).body).toStrictEqual({
      'api-info': apiInfo,
      verification: none,
    });
    const before = Math.floor(Date.now() / 1_000) * 1_000;
    await request(user.reference);
    const [mail] = await waitForMails(user.email, 1);
    const { sentAt, expiresAt, ...sent } = await verificationOf(user.reference);
    expect(sent).toStrictEqual({ email: user.email, verified: false });
    for (const time of [sentAt, expiresAt]) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(Date.parse(sentAt!)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(expiresAt!)).toBeGreaterThanOrEqual(Date.parse(sentAt!) + 86_400_000);
    const token = new URL(linkOf(mail!)).searchParams.get('token')!;
    await fetch(`${inject('stack').gateway}/verify-email`, { method: 'POST', body: new URLSearchParams({ token }) });
    expect(await verificationOf(user.reference)).toStrictEqual({
      email: user.email,
      verified: true,
      sentAt,
      expiresAt: null,
    });
    expect(await crm.get('/user/nobody%40test/verification')).toMatchObject({
      status: 404,
      body: { code: 'user.not_found' },
    });
  });

  it('is not sent to a derived address', async () => {
    const [first, second] = [newUser(), newUser()];
    await crm.post('/user', first);
    await crm.post('/user', { ...second, email: first.email });
    expect(await request(second.reference)).toMatchObject({ status: 409, body: { code: 'user.email_derived' } });
  });

  it('is 404 for an unknown user', async () => {
    expect(await request('nobody@test')).toMatchObject({ status: 404, body: { code: 'user.not_found' } });
  });
});

interface Verification {
  email: string;
  verified: boolean;
  sentAt: string | null;
  expiresAt: string | null;
}

async function verificationOf(reference: string): Promise<Verification> {
  return (await crm.get<{ verification: Verification }>(path`/user/${reference}/verification`)).body.verification;
}

function linkOf({ text }: { text: string }): string {
  return /https?:\S+\/verify-email\?token=[\w%.~-]+/.exec(text)![0];
}

/** The text must identify the account to its reader: the person's, with this address, at this CRM. */
function expectFacts(text: string, email: string): void {
  for (const fact of ['Ada Lovelace', email, crm.crmId]) expect(text).toContain(fact);
}

async function expectConfirmPage(link: string, email: string): Promise<void> {
  const page = await fetch(link);
  const html = await page.text();
  expect(page.status).toBe(200);
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(page.headers.get('referrer-policy')).toBe('no-referrer');
  expectFacts(html, email);
  expect(html.match(/<button/g)).toHaveLength(1);
  expect(html).toMatch(/<form method="post"/);
  expect(html).not.toMatch(/<script|src="http/);
}
