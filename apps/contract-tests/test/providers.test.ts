import { waitUntil } from '@scheduling/embedded';
import { beforeAll, describe, expect, it } from 'vitest';
import { apiInfo, readAppointment } from './answers.ts';
import { path } from '@scheduling/test-stack/client';
import {
  createAppointment,
  createCrm,
  createParticipation,
  createPractice,
  newUser,
  type TestCrm,
  unique,
} from '@scheduling/test-stack/crm';
import { waitForMails } from '@scheduling/test-stack/inbox';

let crm: TestCrm;
beforeAll(async () => {
  crm = await createCrm();
});

async function createOwner(): Promise<string> {
  const user = newUser();
  await crm.post('/user', user);
  return user.reference;
}

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
    const again = await crm.post('/account', {
      ...account,
      branch: 'no-such-branch',
      ownerReference: 'nobody@test',
      email: 'new@test.example',
    });
    expect(again.status).toBe(200);
    expect(again.body).toStrictEqual({ 'api-info': apiInfo, account });
    expect((await crm.get(path`/account/${account.accountReference}`)).body).toStrictEqual({
      'api-info': apiInfo,
      account,
    });
  });

  it('show null for what is absent', async () => {
    const account = {
      ownerReference: await createOwner(),
      accountReference: `${unique('account')}@test`,
      branch: 'misc',
    };
    expect((await crm.post('/account', account)).body).toStrictEqual({
      'api-info': apiInfo,
      account: {
        ...account,
        invoiceAddress: null,
        invoiceContactName: null,
        invoiceCompanyName: null,
        invoiceTaxId: null,
        email: null,
      },
    });
  });

  it.each(['real-estate', 'facilities', 'handyman', 'sports-and-leisure', 'misc'])(
    'accept the branch %s',
    async (branch) => {
      const account = { ownerReference: await createOwner(), accountReference: `${unique('account')}@test`, branch };
      expect(await crm.post('/account', account)).toMatchObject({ status: 201, body: { account: { branch } } });
    },
  );

  it.each(['a', 'a@', '@a', 'a@b@c', ' @a'])('reject a reference like %j', async (accountReference) => {
    const account = { ownerReference: await createOwner(), accountReference, branch: 'misc' };
    const detail = `Unable to parse account reference. Was ${accountReference}`;
    expect(await crm.post('/account', account)).toMatchObject({
      status: 404,
      body: { code: 'account.reference_unparsable', detail },
    });
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
    expect(third).toMatchObject({
      status: 404,
      body: { code: 'account.owner_not_found', detail: 'no user found for ownerReference' },
    });
  });

  it('are 404 if there is none', async () => {
    expect(await crm.get('/account/nothing%40test')).toMatchObject({
      status: 404,
      body: { code: 'account.not_found' },
    });
  });
});

describe('changed accounts (interface 4.6)', () => {
  it('have the given fields: null clears, absent keeps', async () => {
    const { owner, account: reference } = await createPractice(crm);
    const invoiceAddress = { city: 'Zürich', countryCode: 'CH', street: 'Seestrasse', number: '5a', zip: '8001' };
    const first = await crm.put(path`/account/${reference}`, {
      invoiceAddress,
      invoiceTaxId: 'CHE-1',
      email: 'invoices@test.example',
    });
    const account = {
      ownerReference: owner,
      accountReference: reference,
      branch: 'misc',
      invoiceAddress,
      invoiceContactName: null,
      invoiceCompanyName: null,
    };
    expect(first.status).toBe(200);
    expect(first.body).toStrictEqual({
      'api-info': apiInfo,
      account: { ...account, invoiceTaxId: 'CHE-1', email: 'invoices@test.example' },
    });
    const second = await crm.put(path`/account/${reference}`, {
      branch: 'handyman',
      invoiceAddress: null,
      email: '',
      ownerReference: 'nobody@test',
    });
    const changed = { ...account, branch: 'handyman', invoiceAddress: null, invoiceTaxId: 'CHE-1', email: null };
    expect(second.body).toStrictEqual({ 'api-info': apiInfo, account: changed });
    expect((await crm.get(path`/account/${reference}`)).body).toStrictEqual(second.body);
  });

  it('reject an unknown branch like a new account, and are 404 if there is none', async () => {
    const { account } = await createPractice(crm);
    const detail = 'Unable to find specified branch. Was butcher';
    expect(await crm.put(path`/account/${account}`, { branch: 'butcher' })).toMatchObject({
      status: 404,
      body: { code: 'branch.unknown', detail },
    });
    expect(await crm.put('/account/nothing%40test', { branch: 'misc' })).toMatchObject({
      status: 404,
      body: { code: 'account.not_found' },
    });
  });
});

describe('changed providers (interface 4.7)', () => {
  it('have the given fields: null clears, absent keeps', async () => {
    const { provider } = await createPractice(crm);
    const address = path`/provider/${provider}`;
    const { body: before } = await crm.get<{ provider: object }>(address);
    const first = await crm.put(address, {
      email: 'contact@test.example',
      impressum: 'Line 1\nLine 2',
      branch: 'handyman',
    });
    expect(first).toMatchObject({
      status: 200,
      body: {
        provider: {
          ...before.provider,
          email: 'contact@test.example',
          impressum: 'Line 1\nLine 2',
          branch: 'handyman',
        },
      },
    });
    const second = await crm.put(address, {
      name: 'Söhne',
      email: null,
      branch: '',
      subbranch: 'roofs',
      accountReference: 'other@test',
    });
    const changed = { ...before.provider, name: 'Söhne', impressum: 'Line 1\nLine 2', subbranch: 'roofs' };
    expect(second.body).toStrictEqual({ 'api-info': apiInfo, provider: changed });
    expect((await crm.get(address)).body).toStrictEqual(second.body);
  });

  it('reject an unknown branch and time zone, and are 404 if there is none', async () => {
    const { provider } = await createPractice(crm);
    const change = (fields: object) => crm.put(path`/provider/${provider}`, fields);
    const detail = 'Unable to find specified branch. Was butcher';
    expect(await change({ branch: 'butcher' })).toMatchObject({
      status: 404,
      body: { code: 'branch.unknown', detail },
    });
    expect(await change({ timeZone: 'Mars/Olympus' })).toMatchObject({
      status: 400,
      body: { code: 'provider.time_zone_unknown', errors: [{ pointer: '/timeZone' }] },
    });
    expect(await crm.put('/provider/nothing%40test', { name: 'N' })).toMatchObject({
      status: 404,
      body: { code: 'provider.not_found' },
    });
  });

  it('have a new time zone for the local times of later requests and for later mails, and keep what is stored', async () => {
    const practice = await createPractice(crm, { timeZone: 'Europe/Berlin' });
    const appointment = await createAppointment(practice, {
      start: '2031-03-03T09:00',
      end: '2031-03-03T10:00',
      capacity: 2,
    });
    await createParticipation(practice, appointment);
    const [before] = await waitForMails(practice.customerEmail, 1);
    expect(before!.text).toMatch(/\b09:00–10:00\n/);
    expect(await crm.put(practice.at, { timeZone: 'Asia/Kolkata' })).toMatchObject({
      status: 200,
      body: { provider: { timeZone: 'Asia/Kolkata' } },
    });

    const startOf = async (reference: string) => (await readAppointment(practice, reference)).start;
    const readInKolkata = async () =>
      (await startOf(await createAppointment(practice, { start: '2031-03-03T09:00', end: '2031-03-03T10:00' }))) ===
      '2031-03-03T03:30:00Z';
    await waitUntil(readInKolkata, { what: 'local times in the new time zone', timeoutMs: 60_000, intervalMs: 50 });
    expect(await startOf(appointment)).toBe('2031-03-03T08:00:00Z');
    await crm.delete(`${practice.at}/appointments`, { appointmentReference: appointment });
    const [, after] = await waitForMails(practice.customerEmail, 2);
    expect(after!.text).toMatch(/\b1:30\s–\s2:30\sPM/);
    expect(await crm.put(practice.at, { timeZone: null })).toMatchObject({
      body: { provider: { timeZone: 'Europe/Berlin' } },
    });
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

  it('default to the time zone of the CRM and show null for what is absent', async () => {
    const southern = await createCrm({ timeZone: 'Australia/Lord_Howe' });
    const { owner, account, provider: reference } = await createPractice(southern);
    const { status, body } = await southern.get<{ provider: { uuid: string; name: string } }>(
      path`/provider/${reference}`,
    );
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

  it('reject an unknown branch, owner, account and time zone', async () => {
    const { owner, account } = await createPractice(crm);
    const refused = (fields: object) =>
      crm.post('/provider', {
        reference: `${unique('p')}@test`,
        ownerReference: owner,
        accountReference: account,
        name: 'P',
        ...fields,
      });
    expect(await refused({ branch: 'butcher' })).toMatchObject({
      status: 404,
      body: {
        code: 'branch.unknown',
        detail: expect.stringMatching(/^Unable to find specified branch\. Was butcher/) as unknown,
      },
    });
    expect(await refused({ ownerReference: 'nobody@test' })).toMatchObject({
      status: 404,
      body: { code: 'provider.owner_not_found' },
    });
    expect(await refused({ accountReference: 'nothing@test' })).toMatchObject({
      status: 404,
      body: { code: 'provider.account_not_found' },
    });
    expect(await refused({ timeZone: 'Mars/Olympus' })).toMatchObject({
      status: 400,
      body: { code: 'provider.time_zone_unknown' },
    });
    expect(await crm.get('/provider/nothing%40test')).toMatchObject({
      status: 404,
      body: { code: 'provider.not_found' },
    });
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
    expect(await crm.post(`${practice.at}/staff`, { reference: member.reference })).toMatchObject({
      status: 200,
      body: added.body,
    });
    const list = await crm.get(`${practice.at}/staff`);
    expect(list).toMatchObject({ status: 200, body: [{ reference: practice.owner }, shown] });
    expect(list.body).toHaveLength(2);

    const memberPath = practice.at + path`/staff/${member.reference}`;
    expect(await crm.delete(memberPath)).toMatchObject({ status: 204 });
    expect(await crm.delete(memberPath)).toMatchObject({ status: 404, body: { code: 'staff.not_found' } });
    expect((await crm.get(`${practice.at}/staff`)).body).toHaveLength(1);
  });

  it('always includes the owner, and rejects users and providers that do not exist', async () => {
    const practice = await createPractice(crm);
    expect(await crm.delete(practice.at + path`/staff/${practice.owner}`)).toMatchObject({
      status: 409,
      body: { code: 'staff.owner' },
    });
    expect(await crm.post(`${practice.at}/staff`, { reference: practice.owner })).toMatchObject({ status: 200 });
    expect(await crm.post(`${practice.at}/staff`, { reference: 'nobody@test' })).toMatchObject({
      status: 404,
      body: { code: 'user.not_found' },
    });
    expect(await crm.post('/provider/nothing%40test/staff', { reference: practice.owner })).toMatchObject({
      status: 404,
      body: { code: 'provider.not_found' },
    });
    expect(await crm.get('/provider/nothing%40test/staff')).toMatchObject({
      status: 404,
      body: { code: 'provider.not_found' },
    });
  });

  it('rejects an invitation with a username, or another CRM’s e-mail, that is taken', async () => {
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

  it('rejects an invitation to an e-mail that the service derived, to which no mail may be sent', async () => {
    const practice = await createPractice(crm);
    const first = newUser();
    await crm.post('/user', first);
    const derived = await crm.post<{ user: { email: string } }>('/user', newUser({ email: first.email }));
    const { reference: _reference, ...person } = newUser({ email: derived.body.user.email });
    expect(await crm.post(`${practice.at}/staff`, person)).toMatchObject({
      status: 409,
      body: { code: 'user.email_taken' },
    });
  });
});
