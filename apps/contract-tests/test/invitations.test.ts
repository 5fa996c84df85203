import { randomInt } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { path, type Problem } from '@scheduling/test-stack/client';
import { createCrm, createPractice, createTimeslot, type Practice, unique } from '@scheduling/test-stack/crm';
import { waitForMails } from '@scheduling/test-stack/inbox';
import { eventually } from '@scheduling/testing';
import { createBlock } from './blocks.ts';
import { inDays, type Invitation, invitationsAt, invite, newInvitation, openBookingPage } from './invitations.ts';

let practice: Practice;
let pageUrl: string;
/** Each test is another visitor. */
let address: string;
beforeAll(async () => {
  practice = await createPractice(await createCrm());
  pageUrl = await openBookingPage(practice);
});
beforeEach(() => {
  address = `10.${randomInt(256)}.${randomInt(256)}.${randomInt(1, 255)}`;
});

interface Opened {
  status: number;
  body: string;
  /** Of the page itself, or of the one that it leads to. */
  url: string;
}

/** Opens a page, and follows a redirection, as a browser does. */
async function open(url: string, form?: Record<string, string>): Promise<Opened> {
  const response = await fetch(url, {
    headers: { 'x-forwarded-for': address, 'accept-language': 'en', ...(form && { origin: new URL(url).origin }) },
    ...(form !== undefined && { method: 'POST', body: new URLSearchParams(form) }),
  });
  return { status: response.status, body: await response.text(), url: response.url };
}

/** Presses the first button of a page, as a browser does: with all fields of the form. */
function press({ body, url }: Opened, typed: Record<string, string> = {}): Promise<Opened> {
  const [, action] = /<form method="post" action="([^"]+)"/.exec(body) ?? [];
  expect(action, `a form in ${body}`).toBeDefined();
  const [, button = ''] = /<button(?! disabled)([^>]*)>/.exec(body)!;
  const inputs = [...body.matchAll(/<input ([^>]*)>/g)].map(([, attributes]) => attributes!);
  const fields = [...inputs, button].flatMap((attributes): [string, string][] => {
    const name = attributeOf(attributes, 'name');
    return name === undefined ? [] : [[name, attributeOf(attributes, 'value') ?? '']];
  });
  return open(new URL(unescape(action!), url).href, { ...Object.fromEntries(fields), ...typed });
}

function attributeOf(attributes: string, name: string): string | undefined {
  const [, value] = new RegExp(`\\b${name}="([^"]*)"`).exec(attributes) ?? [];
  return value === undefined ? undefined : unescape(value);
}

function unescape(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');
}

const statusOf = async (url: string): Promise<number> => (await open(url)).status;

async function listOf(of: Practice): Promise<Invitation[]> {
  const { status, body, text } = await of.crm.get<Invitation[]>(invitationsAt(of));
  expect(status, text).toBe(200);
  return body;
}

/** Another customer of the practice, for whom nobody else is invited. */
async function newCustomer(): Promise<Practice> {
  const name = unique('guest');
  const [customer, customerEmail] = [`${name}@test`, `${name}@customers.example`];
  const { status, text } = await practice.crm.post(`${practice.at}/customers`, {
    customerReference: customer,
    providerReference: practice.provider,
    userName: 'Ada Byron',
    email: customerEmail,
    language: 'en',
  });
  expect(status, text).toBe(201);
  return { ...practice, customer, customerEmail };
}

/** A resource of its own, which can be booked in ten days. */
async function createBookable(): Promise<Practice> {
  const own = await createPractice(practice.crm);
  await openBookingPage(own, { minimumNotice: 0 });
  const day = inDays(10).slice(0, 10);
  await createTimeslot(own, { start: `${day}T10:00`, end: `${day}T12:00` });
  return own;
}

async function participationsOf({ crm, at, customer }: Practice): Promise<Record<string, unknown>[]> {
  return (await crm.get<Record<string, unknown>[]>(`${at}/participations`, { query: { customerRef: customer } })).body;
}

describe('an invitation (interface 13)', () => {
  it('is a link to the page, by which the customer books without a name and an address', async () => {
    const own = await createBookable();
    const { url, ...invitation } = await invite(own, { bookings: 3 });
    expect(invitation).toMatchObject({ productReference: own.product, bookings: 3, booked: 0 });

    const week = await open(url);
    expect(week.status).toBe(200);
    expect(week.body).toContain('Grace Hopper');
    expect(week.body).not.toContain(own.customerEmail);
    const form = await press(week);
    expect(form.body).toContain('Grace Hopper');
    expect(form.body).not.toContain('name="email"');
    const done = await press(form, { message: 'I bring a towel.' });
    expect(done.status, done.body).toBe(200);

    const [booked, ...others] = await participationsOf(own);
    expect(others).toEqual([]);
    expect(booked).toMatchObject({
      reference: expect.stringMatching(/^page-/) as string,
      customerReference: own.customer,
      state: 'BOOKED',
      note: 'I bring a towel.',
    });
    await waitForMails(own.customerEmail, 1);
    expect(await listOf(own)).toMatchObject([{ id: invitation.id, booked: 1 }]);

    const reference = String(booked!['reference']);
    const { status } = await own.crm.post(own.at + path`/participations/${reference}`, { state: 'CANCELED' });
    expect(status).toBe(200);
    expect(await listOf(own)).toMatchObject([{ id: invitation.id, booked: 0 }]);
  });

  it('is for so many bookings, also if several are begun at once', async () => {
    const own = await createBookable();
    const { url } = await invite(own, { bookings: 1 });
    const first = await press(await open(url));
    const second = await press(await open(url));
    expect((await press(first)).status).toBe(200);
    expect((await press(second)).status).toBe(409);
    expect(await participationsOf(own)).toHaveLength(1);
  });

  it('books no time that was blocked meanwhile, except one that the page holds', async () => {
    const own = await createBookable();
    const { url } = await invite(own, { bookings: 2 });
    const held = await press(await open(url));
    const week = await open(url);
    await createBlock(own, { start: inDays(1), end: inDays(20) });
    expect((await press(week)).status).toBe(409);
    expect((await press(held)).status).toBe(200);
    expect(await participationsOf(own)).toHaveLength(1);
    expect((await open(url)).body).not.toContain('10:30');
  });

  it('is listed in the order of creation until it is deleted, and then its link is dead', async () => {
    const own = await newCustomer();
    expect(await listOf(own)).toEqual([]);
    const [first, second] = [await invite(own), await invite(own, { bookings: 100, expiresAt: inDays(365) })];
    expect(await listOf(own)).toEqual([first, second]);
    expect(first.url).toMatch(new RegExp(`^${RegExp.escape(pageUrl)}\\?for=[\\w-]+$`));
    expect(await statusOf(first.url)).toBe(200);

    const at = invitationsAt(own) + path`/${first.id}`;
    expect((await own.crm.delete(at)).status).toBe(204);
    expect(await statusOf(first.url)).toBe(404);
    expect(await listOf(own)).toEqual([second]);
    for (const gone of [at, `${invitationsAt(own)}/none`])
      expect(await own.crm.delete(gone)).toMatchObject({ status: 404, body: { code: 'invitation.not_found' } });
  });

  it('belongs to one customer', async () => {
    const [own, other] = [await newCustomer(), await newCustomer()];
    const { id, url } = await invite(own);
    expect(await listOf(other)).toEqual([]);
    expect(await own.crm.delete(invitationsAt(other) + path`/${id}`)).toMatchObject({
      status: 404,
      body: { code: 'invitation.not_found' },
    });
    const nobody = invitationsAt({ ...own, customer: 'nobody@test' });
    const foreign = await createCrm();
    for (const [crm, at, code] of [
      [own.crm, nobody, 'customer.not_found'],
      [foreign, invitationsAt(own), 'provider.not_found'],
    ] as const) {
      const refused = { status: 404, body: { code } };
      expect(await crm.post(at, newInvitation(own))).toMatchObject(refused);
      expect(await crm.get(at)).toMatchObject(refused);
      expect(await crm.delete(at + path`/${id}`)).toMatchObject(refused);
    }
    expect(await statusOf(url)).toBe(200);
  });

  it.each([
    ['a product without an offer', { productReference: 'other@test' }, 'invitation.invalid', '/productReference'],
    ['no booking', { bookings: 0 }, 'request.invalid', '/bookings'],
    ['too many bookings', { bookings: 101 }, 'request.invalid', '/bookings'],
    ['a time in the past', { expiresAt: inDays(-1) }, 'invitation.invalid', '/expiresAt'],
    ['a time too far ahead', { expiresAt: inDays(367) }, 'invitation.invalid', '/expiresAt'],
    ['no time', { expiresAt: 'tomorrow' }, 'request.invalid', '/expiresAt'],
  ])('is rejected for %s', async (_, fields, code, pointer) => {
    const refused = await practice.crm.post<Problem>(invitationsAt(practice), newInvitation(practice, fields));
    expect(refused).toMatchObject({ status: 400, body: { code, errors: [{ pointer }] } });
    expect(refused.body.errors).toHaveLength(1);
  });

  it('needs a page', async () => {
    const own = await createPractice(practice.crm);
    await openBookingPage(own, { page: false });
    expect(await own.crm.post(invitationsAt(own), newInvitation(own))).toMatchObject({
      status: 409,
      body: { code: 'invitation.no_page' },
    });
  });

  it('opens a page that is closed to everybody else', async () => {
    const own = await createPractice(practice.crm);
    const publicUrl = await openBookingPage(own, { access: 'INVITED' });
    const { url } = await invite(own);
    expect([await statusOf(publicUrl), await statusOf(`${publicUrl}?for=none`), await statusOf(url)]).toEqual([
      403, 404, 200,
    ]);
    expect(await openBookingPage(own, { access: 'PUBLIC' })).toBe(publicUrl);
    expect([await statusOf(publicUrl), await statusOf(url)]).toEqual([200, 200]);
  });

  it('is for the present address: when that changes, there is another link', async () => {
    const own = await newCustomer();
    const { id, url } = await invite(own);
    const setAddress = (email: string) =>
      own.crm.put(own.at + path`/customers/${own.customer}`, { email }).then(({ status }) => status);
    expect(await setAddress(`other-${own.customerEmail}`)).toBe(200);
    expect(await statusOf(url)).toBe(404);
    const [listed] = await listOf(own);
    expect(listed).toMatchObject({ id });
    expect(listed!.url).not.toBe(url);
    expect(await statusOf(listed!.url)).toBe(200);
    expect(await setAddress(own.customerEmail)).toBe(200);
    expect([await statusOf(url), await statusOf(listed!.url)]).toEqual([200, 404]);
  });

  it('is dead once the customer is deleted, like a link that was never made', async () => {
    const own = await newCustomer();
    const { url } = await invite(own);
    expect((await own.crm.delete(own.at + path`/customers/${own.customer}`)).status).toBe(204);
    const [dead, invented] = [await open(url), await open(`${pageUrl}?for=none`)];
    // But for the token in the link to the other language.
    const token = new URL(url).searchParams.get('for')!;
    expect([dead.status, dead.body.replaceAll(token, 'none')]).toEqual([404, invented.body]);
    expect(await own.crm.get(invitationsAt(own))).toMatchObject({ status: 404, body: { code: 'customer.not_found' } });
  });

  it('is dead once the address of the customer is erased', async () => {
    const own = await newCustomer();
    const { url } = await invite(own);
    expect((await own.crm.post('/erasures', { email: own.customerEmail })).status).toBe(202);
    await eventually(async () => expect(await statusOf(url)).toBe(404));
  });

  it('expires, by the clock of the CRM', async () => {
    const own = await createPractice(await createCrm({ sandbox: true }));
    await openBookingPage(own);
    const { url, expiresAt } = await invite(own);
    const setClock = (now: string | null) => own.crm.put('/sandbox/clock', { now }).then(({ status }) => status);
    expect(await setClock(expiresAt)).toBe(200);
    expect(await statusOf(url)).toBe(404);
    expect(await listOf(own)).toEqual([]);
    expect(await setClock(null)).toBe(200);
    expect(await statusOf(url)).toBe(200);
  });

  it('is no link to another page, nor one to a booking', async () => {
    const { url } = await invite(await newCustomer());
    const own = await createPractice(practice.crm);
    const other = await openBookingPage(own);
    const token = new URL(url).searchParams.get('for')!;
    expect(await statusOf(`${other}?for=${token}`)).toBe(404);
    expect(await statusOf(`${inject('stack').page}/booking/${token}`)).toBe(404);
  });
});
