import { beforeAll, describe, expect, inject, it } from 'vitest';
import { apiInfo } from './answers.ts';
import { path } from './client.ts';
import { createCrm, createPractice, newUser, type TestCrm, unique } from './crm.ts';
import { query } from './databases.ts';
import { readMails, waitForMails } from './inbox.ts';

let crm: TestCrm;
beforeAll(async () => {
  crm = await createCrm();
});

describe('users (interface 4.5)', () => {
  it('are created and read with all seven fields', async () => {
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
    const again = await crm.post('/user', { reference: user.reference, email: 'other@test.example', username: unique('other'), lastName: 'Murray', phone: null, mobile: '3' });
    expect(again).toMatchObject({
      status: 200,
      body: { user: { ...user, lastName: 'Murray', firstName: 'Grace', phone: null, mobile: '3' } },
    });
  });

  it('rule 2: an e-mail that belongs to another reference is derived from', async () => {
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

  it('refuse a username that is taken, also by another CRM and in another case', async () => {
    const user = newUser();
    await crm.post('/user', user);
    const message = { status: 409, body: { code: 'user.username_taken', detail: 'User with given username already exists.' } };
    expect(await crm.post('/user', newUser({ username: user.username.toUpperCase() }))).toMatchObject(message);
    expect(await (await createCrm()).post('/user', newUser({ username: user.username }))).toMatchObject(message);
  });

  it.each([
    ['en', 'en'],
    ['de-AT', 'de'],
    ['tlh', 'de'],
    ['not a tag!', 'de'],
  ])('take their language from the cookie SERVICE_LANG=%s when the service speaks it', async (cookie, language) => {
    const user = newUser();
    await crm.post('/user', user, { headers: { cookie: `SERVICE_LANG=${encodeURIComponent(cookie)}` } });
    expect(await query('identity', 'SELECT language FROM app_user WHERE crm_id = $1 AND reference = $2', [crm.crmId, user.reference])).toEqual([{ language }]);
  });

  it('are 404 when there is none', async () => {
    expect(await crm.get('/user/nobody%40test')).toMatchObject({ status: 404, body: { code: 'user.not_found' } });
  });
});

describe('a person who is invited and then created (interface 4.5, rule 3)', () => {
  it('gets the reference and a verification mail, whose page is opened without effect, confirmed once and then says so', async () => {
    const practice = await createPractice(crm);
    const { reference, ...person } = newUser({ firstName: 'Ada', phone: '1' });
    const invited = await crm.post(`${practice.at}/staff`, person);
    expect(invited).toMatchObject({ status: 201, body: { user: { ...person, reference: null, mobile: null } } });
    expect(await crm.post(`${practice.at}/staff`, person)).toMatchObject({ status: 200 });

    const found = await crm.post('/user', { reference, email: person.email, username: unique('ignored'), lastName: 'Lovelace', mobile: '2' });
    expect(found).toMatchObject({
      status: 200,
      body: { user: { reference, email: person.email, username: person.username, lastName: 'Lovelace', firstName: 'Ada', phone: '1', mobile: '2' } },
    });
    expect(await crm.get(`${practice.at}/staff`)).toMatchObject({ body: [{ reference: practice.owner }, { reference }] });

    const [mail] = await waitForMails(person.email, 1);
    expect(mail!.subject).toBe('Bitte bestätigen Sie Ihre E-Mail-Adresse');
    const link = /https?:\S+\/verify-email\?token=[\w%.~-]+/.exec(mail!.text)![0];
    expect(link.startsWith(inject('stack').gateway)).toBe(true);
    for (let opened = 0; opened < 2; opened += 1) await expectConfirmPage(link, person.email);

    const token = new URL(link).searchParams.get('token')!;
    const confirm = (): Promise<Response> => fetch(`${inject('stack').gateway}/verify-email`, { method: 'POST', body: new URLSearchParams({ token }) });
    const confirmed = await confirm();
    expect(confirmed.status).toBe(200);
    expect(await confirmed.text()).toContain('Ihre E-Mail-Adresse ist bestätigt');
    for (const response of [await confirm(), await fetch(link)]) {
      expect(response.status).toBe(410);
      expect(await response.text()).toMatch(/bereits bestätigt|confirmed with this link before/);
    }
    const verified = 'SELECT email_verified_at IS NOT NULL AS verified FROM app_user WHERE crm_id = $1 AND reference = $2';
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

  it('is told when a link does not exist', async () => {
    const response = await fetch(`${inject('stack').gateway}/verify-email?token=nothing`, { headers: { 'accept-language': 'de-CH,en' } });
    expect(response.status).toBe(404);
    expect(await response.text()).toContain('Diesen Link gibt es nicht');
  });
});

async function expectConfirmPage(link: string, email: string): Promise<void> {
  const page = await fetch(link);
  const html = await page.text();
  expect(page.status).toBe(200);
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(page.headers.get('referrer-policy')).toBe('no-referrer');
  expect(html).toContain(email);
  expect(html.match(/<button/g)).toHaveLength(1);
  expect(html).toMatch(/<form method="post"/);
  expect(html).not.toMatch(/<script|src="http/);
}
