import { beforeAll, describe, expect, inject, it } from 'vitest';
import { path } from './client.ts';
import { createCrm, createPractice, type TestCrm, unique } from './crm.ts';
import { query } from './databases.ts';
import { readMails, waitForMails } from './inbox.ts';

const apiInfo = { version: '1' };

let crm: TestCrm;
beforeAll(async () => {
  crm = await createCrm();
});

function newUser(fields: Record<string, unknown> = {}) {
  const name = unique('user');
  return { reference: `${name}@test`, email: `${name}@test.example`, username: name, lastName: 'Hopper', ...fields };
}

async function createOwner(): Promise<string> {
  const user = newUser();
  await crm.post('/user', user);
  return user.reference;
}

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

describe('accounts (interface 4.6)', () => {
  it('are created with all fields, and are not overwritten', async () => {
    const account = {
      ownerReference: await createOwner(),
      accountReference: `${unique('account')}@test`,
      branch: 'sports-and-leisure',
      invoiceAddress: { city: 'Zürich', countryCode: 'CH', street: 'Seestrasse', number: '5a', zip: '8001' },
      invoiceContactName: 'Ada',
      invoiceCompanyName: 'Ada AG',
      invoiceTaxId: 'CHE-1',
      email: 'invoices@test.example',
    };
    const created = await crm.post('/account', account);
    expect(created.status).toBe(201);
    expect(created.body).toStrictEqual({ 'api-info': apiInfo, account });
    const again = await crm.post('/account', { ...account, branch: 'no-such-branch', ownerReference: 'nobody@test', email: 'new@test.example' });
    expect(again.status).toBe(200);
    expect(again.body).toStrictEqual({ 'api-info': apiInfo, account });
    expect((await crm.get(path`/account/${account.accountReference}`)).body).toStrictEqual({ 'api-info': apiInfo, account });
  });

  it('show null for what is absent', async () => {
    const account = { ownerReference: await createOwner(), accountReference: `${unique('account')}@test`, branch: 'misc' };
    expect((await crm.post('/account', account)).body).toStrictEqual({
      'api-info': apiInfo,
      account: { ...account, invoiceAddress: null, invoiceContactName: null, invoiceCompanyName: null, invoiceTaxId: null, email: null },
    });
  });

  it.each(['real-estate', 'facilities', 'handyman', 'sports-and-leisure', 'misc'])('know the branch %s', async (branch) => {
    const account = { ownerReference: await createOwner(), accountReference: `${unique('account')}@test`, branch };
    expect(await crm.post('/account', account)).toMatchObject({ status: 201, body: { account: { branch } } });
  });

  it('are checked in the order reference, branch, owner, with the messages of interface 7', async () => {
    const wrong = { accountReference: 'unparsable', branch: 'butcher', ownerReference: 'nobody@test' };
    const refused = (fields: object) => crm.post<{ detail: string; code: string }>('/account', { ...wrong, ...fields });
    const first = await refused({});
    expect(first).toMatchObject({ status: 404, body: { code: 'account.reference_unparsable' } });
    expect(first.body.detail).toMatch(/^Unable to parse account reference\. Was unparsable/);
    const second = await refused({ accountReference: 'a@test' });
    expect(second).toMatchObject({ status: 404, body: { code: 'branch.unknown' } });
    expect(second.body.detail).toMatch(/^Unable to find specified branch\. Was butcher/);
    const third = await refused({ accountReference: 'a@test', branch: 'misc' });
    expect(third).toMatchObject({ status: 404, body: { code: 'account.owner_not_found', detail: 'no user found for ownerReference' } });
  });

  it('are 404 when there is none', async () => {
    expect(await crm.get('/account/nothing%40test')).toMatchObject({ status: 404, body: { code: 'account.not_found' } });
  });
});

describe('providers (interface 4.7)', () => {
  it('are created with all fields and a uuid, and are not overwritten', async () => {
    const { owner, account } = await createPractice(crm);
    const provider = {
      reference: `${unique('provider')}@test`,
      ownerReference: owner,
      accountReference: account,
      name: 'Ada & Söhne',
      email: 'contact@test.example',
      mobile: '1',
      phone: '2',
      impressum: 'Line 1\nLine 2',
      branch: 'handyman',
      subbranch: 'roofs',
      timeZone: 'Asia/Kolkata',
    };
    const created = await crm.post<{ provider: { uuid: string } }>('/provider', provider);
    expect(created.status).toBe(201);
    const { uuid } = created.body.provider;
    expect(created.body).toStrictEqual({ 'api-info': apiInfo, provider: { ...provider, uuid } });
    const again = await crm.post('/provider', { ...provider, name: 'Other', timeZone: 'Europe/Paris' });
    expect(again.status).toBe(200);
    expect(again.body).toStrictEqual(created.body);
    expect((await crm.get(path`/provider/${provider.reference}`)).body).toStrictEqual(created.body);
  });

  it('are in the time zone of the CRM and show null for what is absent', async () => {
    const southern = await createCrm({ timeZone: 'Australia/Lord_Howe' });
    const { owner, account, provider: reference } = await createPractice(southern);
    const { status, body } = await southern.get<{ provider: { uuid: string; name: string } }>(path`/provider/${reference}`);
    expect(status).toBe(200);
    expect(body.provider).toStrictEqual({
      reference,
      ownerReference: owner,
      accountReference: account,
      name: body.provider.name,
      email: null,
      mobile: null,
      phone: null,
      impressum: null,
      branch: null,
      subbranch: null,
      timeZone: 'Australia/Lord_Howe',
      uuid: body.provider.uuid,
    });
  });

  it('refuse an unknown branch, owner, account and time zone', async () => {
    const { owner, account } = await createPractice(crm);
    const refused = (fields: object) => crm.post('/provider', { reference: `${unique('p')}@test`, ownerReference: owner, accountReference: account, name: 'P', ...fields });
    expect(await refused({ branch: 'butcher' })).toMatchObject({
      status: 404,
      body: { code: 'branch.unknown', detail: expect.stringMatching(/^Unable to find specified branch\. Was butcher/) as unknown },
    });
    expect(await refused({ ownerReference: 'nobody@test' })).toMatchObject({ status: 404, body: { code: 'provider.owner_not_found' } });
    expect(await refused({ accountReference: 'nothing@test' })).toMatchObject({ status: 404, body: { code: 'provider.account_not_found' } });
    expect(await refused({ timeZone: 'Mars/Olympus' })).toMatchObject({ status: 400, body: { code: 'provider.time_zone_unknown' } });
    expect(await crm.get('/provider/nothing%40test')).toMatchObject({ status: 404, body: { code: 'provider.not_found' } });
  });
});

describe('staff (interface 4.7)', () => {
  it('is listed with the owner first, added by reference, and removed', async () => {
    const practice = await createPractice(crm);
    const member = newUser({ firstName: 'Ada' });
    await crm.post('/user', member);
    const shown = { ...member, phone: null, mobile: null };
    const added = await crm.post(`${practice.at}/staff`, { reference: member.reference });
    expect(added.status).toBe(201);
    expect(added.body).toStrictEqual({ 'api-info': apiInfo, user: shown });
    expect(await crm.post(`${practice.at}/staff`, { reference: member.reference })).toMatchObject({ status: 200, body: added.body });
    const list = await crm.get(`${practice.at}/staff`);
    expect(list).toMatchObject({ status: 200, body: [{ reference: practice.owner }, shown] });
    expect(list.body).toHaveLength(2);

    const memberPath = practice.at + path`/staff/${member.reference}`;
    expect(await crm.delete(memberPath)).toMatchObject({ status: 204 });
    expect(await crm.delete(memberPath)).toMatchObject({ status: 404, body: { code: 'staff.not_found' } });
    expect((await crm.get(`${practice.at}/staff`)).body).toHaveLength(1);
  });

  it('keeps the owner, and refuses users and providers that do not exist', async () => {
    const practice = await createPractice(crm);
    expect(await crm.delete(practice.at + path`/staff/${practice.owner}`)).toMatchObject({ status: 409, body: { code: 'staff.owner' } });
    expect(await crm.post(`${practice.at}/staff`, { reference: practice.owner })).toMatchObject({ status: 200 });
    expect(await crm.post(`${practice.at}/staff`, { reference: 'nobody@test' })).toMatchObject({ status: 404, body: { code: 'user.not_found' } });
    expect(await crm.post('/provider/nothing%40test/staff', { reference: practice.owner })).toMatchObject({ status: 404, body: { code: 'provider.not_found' } });
    expect(await crm.get('/provider/nothing%40test/staff')).toMatchObject({ status: 404, body: { code: 'provider.not_found' } });
  });

  it('refuses an invitation with a username or another CRM’s e-mail that is taken', async () => {
    const practice = await createPractice(crm);
    const taken = newUser();
    await (await createCrm()).post('/user', taken);
    const { reference: _reference, ...person } = newUser();
    expect(await crm.post(`${practice.at}/staff`, { ...person, username: taken.username })).toMatchObject({
      status: 409,
      body: { code: 'user.username_taken', detail: 'User with given username already exists.' },
    });
    expect(await crm.post(`${practice.at}/staff`, { ...person, email: taken.email })).toMatchObject({
      status: 409,
      body: { code: 'user.email_taken', detail: 'User with given email already exists.' },
    });
  });

  it('refuses an invitation to an e-mail that the service derived, which nothing may be sent to', async () => {
    const practice = await createPractice(crm);
    const first = newUser();
    await crm.post('/user', first);
    const derived = await crm.post<{ user: { email: string } }>('/user', newUser({ email: first.email }));
    const { reference: _reference, ...person } = newUser({ email: derived.body.user.email });
    expect(await crm.post(`${practice.at}/staff`, person)).toMatchObject({ status: 409, body: { code: 'user.email_taken' } });
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

describe('references of any kind in addresses (interface 1)', () => {
  const strange = ['a/b@test', 'a?b=c@test', 'a#b@test', '100%@test', 'a%2Fb@test', 'a b@test', 'Jürgen@tést', '🦊🧦@test', `${'ß'.repeat(250)}@test`, "';--@test", 'a+b&c@test'];

  it.each(strange)('%s', async (reference) => {
    const own = await createCrm();
    const name = unique('user');
    expect(await own.post('/user', { reference, email: `${name}@test.example`, username: name, lastName: 'X' })).toMatchObject({ status: 201 });
    expect(await own.get(path`/user/${reference}`)).toMatchObject({ status: 200, body: { user: { reference } } });
    expect(await own.post('/account', { ownerReference: reference, accountReference: reference, branch: 'misc' })).toMatchObject({ status: 201 });
    expect(await own.get(path`/account/${reference}`)).toMatchObject({ status: 200, body: { account: { accountReference: reference } } });
    const provider = { reference, ownerReference: reference, accountReference: reference, name: 'P' };
    expect(await own.post('/provider', provider)).toMatchObject({ status: 201 });
    expect(await own.get(path`/provider/${reference}`)).toMatchObject({ status: 200, body: { provider } });
    const at = path`/provider/${reference}`;
    expect(await own.get(`${at}/staff`)).toMatchObject({ status: 200, body: [{ reference }] });
    expect(await own.delete(at + path`/staff/${reference}`)).toMatchObject({ status: 409 });
    expect(await own.post(`${at}/customers`, { customerReference: reference, providerReference: reference, userName: 'C' })).toMatchObject({ status: 201 });
    expect(await own.get(at + path`/customers/${reference}`)).toMatchObject({ status: 200, body: { customer: { customerReference: reference } } });
    expect(await own.put(at + path`/customers/${reference}`, { note: 'n' })).toMatchObject({ status: 200 });
    const timeslot = { reference, resourceReference: reference, start: '2031-01-01T09:00', end: '2031-01-01T10:00', raster: 30, defaultCapacity: 1, defaultAcceptBookings: true, state: 'CREATED' };
    expect(await own.post(`${at}/timeslots`, { timeslots: [timeslot] })).toMatchObject({ status: 201 });
    expect(await own.put(at + path`/timeslots/${reference}`, { state: 'BOOKABLE' })).toMatchObject({ status: 200 });
    const list = await own.get(at + path`/resource/${reference}/timeslots`, { query: { from: '2031-01-01T00:00', to: '2031-01-02T00:00' } });
    expect(list).toMatchObject({ status: 200, body: [{ reference, resourceReference: reference, state: 'BOOKABLE' }] });
    expect(await own.delete(at + path`/timeslots/${reference}`)).toMatchObject({ status: 204 });
    const appointment = { reference, start: '2031-01-01T09:00', end: '2031-01-01T10:00', capacity: 1, resourceReference: reference, productReference: reference };
    expect(await own.post(`${at}/appointments`, appointment)).toMatchObject({ status: 201 });
    expect(await own.get(`${at}/appointments`, { query: { productRef: reference, resourceRef: reference } })).toMatchObject({ body: [{ reference }] });
    const booking = { reference, appointmentReference: reference, customerReference: reference, state: 'BOOKED' };
    expect(await own.post(`${at}/participations`, booking)).toMatchObject({ status: 201 });
    expect(await own.post(at + path`/participations/${reference}`, { state: 'CANCELED' })).toMatchObject({ status: 200 });
    expect(await own.delete(`${at}/appointments`, undefined, { query: { appointmentReference: reference } })).toMatchObject({ status: 200 });
    expect(await own.delete(`${at}/appointments/withoutNotification`, undefined, { query: { appointmentReference: reference } })).toMatchObject({ status: 204 });
  });
});
