import { PersonServiceService } from '@scheduling/contracts/calendar/v1';
import { AdminServiceService } from '@scheduling/contracts/identity/v1';
import { createClient } from '@scheduling/rpc';
import { longTimeout, startServiceProcesses, startTestNats } from '@scheduling/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayUnderTest, startGateway } from './gateway-under-test.ts';

const resources = new AsyncDisposableStack();
const provider = '/crms/one/provider/p';
const participation = `${provider}/participations/b`;
let gateway: GatewayUnderTest;
let withPages: GatewayUnderTest;
let key: string;
let calendarAddress: string;

beforeAll(async () => {
  const nats = resources.use(await startTestNats());
  const { identity, calendar, addresses } = resources.use(
    await startServiceProcesses(['identity', 'customer', 'calendar'], nats.url),
  );
  calendarAddress = calendar.address;
  using admin = createClient(AdminServiceService, 'identity', identity.adminAddress, longTimeout);
  await admin.createCrm({ crmId: 'one', requestsPerMinute: 0 });
  key = (await admin.createKey({ crmId: 'one' })).key;
  const settings = { ...addresses, NATS_URL: nats.url('gateway'), PUBLIC_URL: 'https://scheduling.test/api/' };
  gateway = resources.use(await startGateway(settings));
  withPages = resources.use(await startGateway({ ...settings, PAGE_URL: 'https://page.test/' }));
  await send('POST', '/crms/one/user', { reference: 'u@x', email: 'u@x.example', username: 'u', lastName: 'L' });
  await send('POST', '/crms/one/account', { ownerReference: 'u@x', accountReference: 'a@x', branch: 'misc' });
  await send('POST', '/crms/one/provider', {
    reference: 'p',
    ownerReference: 'u@x',
    accountReference: 'a@x',
    name: 'N',
  });
  await send('POST', `${provider}/appointments`, {
    reference: 'a',
    start: '2030-01-01T10:00',
    end: '2030-01-01T11:00',
    capacity: 1,
    resourceReference: 'r',
    productReference: 'x',
  });
  await send('POST', `${provider}/customers`, { customerReference: 'c', providerReference: 'p', userName: 'Ann' });
  await send('POST', `${provider}/participations`, {
    reference: 'b',
    appointmentReference: 'a',
    customerReference: 'c',
    state: 'BOOKED',
  });
}, 180_000);
afterAll(() => resources.disposeAsync());

type Answer = Record<string, Record<string, unknown>>;

async function send(method: string, path: string, body?: unknown, through = gateway): Promise<Answer> {
  const response = await fetch(through.url + path, {
    method,
    headers: { 'x-service-client-id': key, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Answer;
}

async function linkThrough(through: GatewayUnderTest): Promise<string> {
  const { link, 'api-info': info } = await send('GET', `${participation}/link`, undefined, through);
  expect(info).toEqual({ version: '1' });
  return link!['url'] as string;
}

const tokenIn = (url: string): string => /\/booking\/([\w-]+)$/.exec(url)![1]!;

describe('the person’s link to a participation', () => {
  it('leads to the pages, or else to the address of the gateway', async () => {
    const [url, other] = [await linkThrough(withPages), await linkThrough(gateway)];
    expect(url).toBe(`https://page.test/booking/${tokenIn(url)}`);
    expect(other).toBe(`https://scheduling.test/api/booking/${tokenIn(url)}`);
  });

  it('is dead when the person has another address, and then there is a new one', async () => {
    using persons = createClient(PersonServiceService, 'calendar', calendarAddress, longTimeout);
    const token = tokenIn(await linkThrough(gateway));
    expect((await persons.getOwnBooking({ token })).booking).toMatchObject({ name: 'Ann' });
    await send('PUT', `${provider}/customers/c`, { email: 'ann@test.example' });
    await expect(persons.getOwnBooking({ token })).rejects.toMatchObject({ code: 'link.not_found' });
    const next = tokenIn(await linkThrough(gateway));
    expect((await persons.getOwnBooking({ token: next })).booking).toMatchObject({ name: 'Ann' });
  });

  it('is one of a participation of this provider', async () => {
    expect(await send('GET', `${provider}/participations/none/link`)).toMatchObject({
      code: 'participation.not_found',
    });
    expect(await send('GET', '/crms/one/provider/none/participations/b/link')).toMatchObject({
      code: 'provider.not_found',
    });
  });

  it('does not exist if it would not work', async () => {
    const deleted = { reference: 'd', appointmentReference: 'a', customerReference: 'c', state: 'DELETED' };
    await send('POST', `${provider}/participations`, deleted);
    expect((await send('GET', `${provider}/participations/d`))['participation']).toMatchObject({ state: 'DELETED' });
    expect(await send('GET', `${provider}/participations/d/link`)).toMatchObject({ code: 'link.not_found' });
  });

  it('is that by which the person says that they will be there', async () => {
    using persons = createClient(PersonServiceService, 'calendar', calendarAddress, longTimeout);
    expect((await send('GET', participation))['participation']).not.toHaveProperty('attendanceConfirmedAt');
    await persons.confirmAttendance({ token: tokenIn(await linkThrough(gateway)) });
    expect((await send('GET', participation))['participation']).toMatchObject({
      attendanceConfirmedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string,
    });
  });
});

describe('the rule selfService', () => {
  const set = async (rules: Record<string, unknown>): Promise<unknown> =>
    (await send('PUT', `${provider}/booking-rules`, rules))['bookingRules']!['selfService'];
  const read = async (): Promise<unknown> =>
    (await send('GET', `${provider}/booking-rules`))['bookingRules']!['selfService'];

  it('is what page is, until it is set, and again after null', async () => {
    expect(await read()).toBe(false);
    expect(await set({ page: true })).toBe(true);
    expect(await set({ selfService: false })).toBe(false);
    expect(await set({ changeNotice: 60 })).toBe(false);
    expect(await set({ selfService: null })).toBe(true);
    expect(await set({ page: false })).toBe(false);
    expect(await set({ selfService: true })).toBe(true);
    expect(await read()).toBe(true);
  });
});

describe('the booking page of a provider', () => {
  const rules = `${provider}/booking-rules`;
  const set = async (change: Record<string, unknown>, through = gateway) =>
    (await send('PUT', rules, change, through))['bookingRules']!;

  it('has an address while there is one: the same each time, at the pages, or else at the gateway', async () => {
    expect(await set({ page: false })).toMatchObject({ page: false, pageUrl: null });
    const { pageUrl } = await set({ page: true }, withPages);
    expect(pageUrl).toMatch(/^https:\/\/page\.test\/book\/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
    const path = String(pageUrl).replace('https://page.test', '');
    expect(await set({ page: true, pageUrl: 'https://crm.example' })).toMatchObject({
      pageUrl: `https://scheduling.test/api${path}`,
    });
    expect((await send('GET', rules))['bookingRules']).toMatchObject({ pageUrl: `https://scheduling.test/api${path}` });
    expect(await set({ page: false }, withPages)).toMatchObject({ pageUrl: null });
    expect(await set({ page: true }, withPages)).toMatchObject({ pageUrl });
    expect(await set({ page: false })).not.toHaveProperty('providerId');
  });

  it('asks for no mobile number and is shown in no frame, until the rules say so', async () => {
    expect((await send('GET', rules))['bookingRules']).toMatchObject({ askMobile: 'NO', embedOn: [] });
    const changed = { askMobile: 'REQUIRED', embedOn: ['https://b.example', 'https://a.example:8443'] };
    expect(await set({ ...changed, embedOn: ['https://B.example/', ...changed.embedOn] })).toMatchObject(changed);
    expect(await set({ minimumNotice: 0 })).toMatchObject(changed);
    expect(await send('PUT', rules, { embedOn: ['https://c.example', 'http://localhost:3000'] })).toMatchObject({
      status: 400,
      code: 'booking_rules.invalid',
      errors: [{ pointer: '/embedOn/1' }],
    });
    expect(await set({})).toMatchObject(changed);
    expect(await set({ askMobile: 'NO', embedOn: [] })).toMatchObject({ askMobile: 'NO', embedOn: [] });
  });

  it('is open to everybody, until the rules say that it is for those who are invited', async () => {
    expect((await send('GET', rules))['bookingRules']).toMatchObject({ access: 'PUBLIC' });
    expect(await set({ access: 'INVITED' })).toMatchObject({ access: 'INVITED' });
    expect(await set({ minimumNotice: 0 })).toMatchObject({ access: 'INVITED' });
    expect(await set({ access: 'PUBLIC' })).toMatchObject({ access: 'PUBLIC' });
  });

  it('has an address for each invitation: at the pages, or else at the gateway', async () => {
    const offer = {
      productReference: 'x',
      name: 'X',
      duration: 30,
      resources: [{ resourceReference: 'r', name: 'R' }],
    };
    const { pageUrl } = await set({ page: true, offers: [offer] });
    const invitations = `${provider}/customers/c/invitations`;
    const expiresAt = Temporal.Now.instant().add({ hours: 24 }).toString();
    const body = { productReference: 'x', bookings: 1, expiresAt };
    const { invitation, 'api-info': info } = await send('POST', invitations, body);
    expect(info).toEqual({ version: '1' });
    const url = String(invitation!['url']);
    expect(url).toMatch(new RegExp(`^${RegExp.escape(String(pageUrl))}\\?for=[\\w-]+$`));
    expect(invitation).not.toHaveProperty('token');
    expect(await send('GET', invitations, undefined, withPages)).toEqual([
      { ...invitation, url: url.replace('https://scheduling.test/api', 'https://page.test') },
    ]);
  });
});
