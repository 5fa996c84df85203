import { Access, AskMobile, Confirmation, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { patiently, whilePaused } from '@scheduling/testing';
import { accessibilityFindings } from '@scheduling/testing/accessibility';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { limits } from '../src/visit-limit.ts';
import {
  buttonsOf,
  changeRules,
  choose,
  fieldsOf,
  linksOf,
  massage,
  offerTimes,
  openPageOf,
  participationsOf,
  person,
  press,
  type ProviderUnderTest,
  textOf,
  yoga,
} from './booking-page-under-test.ts';
import { basePath, freshAddress, type PageUnderTest, setClock, startPage } from './page-under-test.ts';

let page: PageUnderTest;
beforeAll(async () => {
  page = await startPage();
});
afterAll(() => page[Symbol.asyncDispose]());
beforeEach(() => setClock(page, '2031-05-28T08:00:00Z'));

const week = 'Monday, 2 June 2031';
const usedHeading = 'This invitation has already been used';
const deadHeading = 'This invitation does not work';
const contact = 'contact Praxis <Blum>: hello@blum.example +49 30 1234567';

interface InvitationUnderTest {
  id: string;
  token: string;
  customerReference: string;
  /** Of the page, for the customer. */
  path: string;
}

interface InviteOptions {
  bookings?: number;
  customer?: { userName?: string; email?: string | undefined; language?: string };
}

/** A customer of the CRM, who is invited to a massage. */
async function invite(
  { crmId, providerReference, path }: ProviderUnderTest,
  { bookings = 1, customer = {} }: InviteOptions = {},
): Promise<InvitationUnderTest> {
  const of = { crmId, providerReference, customerReference: `customer-${randomUUID()}` };
  const { customerReference } = of;
  const ada = { userName: 'Ada Lovelace', email: 'ada@example.com' };
  await patiently(() => page.customers.createCustomer({ ...of, ...ada, ...customer }));
  const given = { productReference: 'massage', bookings, expiresAt: '2031-06-30T00:00' };
  const { invitation } = await patiently(() => page.invitations.createInvitation({ ...of, ...given }));
  const { id, token } = invitation!;
  return { id, token, customerReference, path: `${path}?for=${token}` };
}

/** A provider with times on a day, who has invited somebody. */
async function openInvited(rules: Parameters<typeof openPageOf>[1] = {}, options: InviteOptions = {}) {
  const provider = await openPageOf(page, { access: Access.INVITED, ...rules });
  await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T12:00');
  return { provider, invitation: await invite(provider, options) };
}

async function openForm(rules: Parameters<typeof openPageOf>[1] = {}, options: InviteOptions = {}) {
  const opened = await openInvited(rules, options);
  const { answer, location } = await choose(page, opened.invitation.path, '10:00–10:30');
  return { ...opened, body: answer.body, location };
}

/** The addresses of our own that a page leads to, but the one in the other language. */
function ownAddresses(body: string): string[] {
  const all = body.matchAll(/(?:href|action)="(\/[^"]+)"(?! lang=)/g);
  return [...all].map(([, address]) => address!.replaceAll('&amp;', '&'));
}

async function cancelAll(provider: ProviderUnderTest): Promise<void> {
  const { crmId, providerReference } = provider;
  const all = (await participationsOf(page, provider)) as unknown as { reference: string; state: string }[];
  for (const { reference } of all.filter(({ state }) => state === 'BOOKED'))
    await page.participations.updateParticipation({
      crmId,
      providerReference,
      participationReference: reference,
      state: ParticipationState.CANCELED,
      ignoreCapacity: false,
      sendMails: false,
    });
}

describe('the page of an invitation', () => {
  it('says for whom it is, and every address and form of the visit keeps it', async () => {
    const { invitation } = await openInvited();
    const { status, body, heading } = await page.open(`${invitation.path}&lang=en&zone=America/New_York`);
    expect([status, heading]).toEqual([200, 'Massage &lt;deep&gt;']);
    expect(textOf(body)).toContain('30 minutes · €45.00 For Ada Lovelace All times are in');
    expect(await accessibilityFindings(body)).toEqual([]);
    const held = await press(page, body, '10:00–10:30');
    const form = await page.open(held.location!);
    const invalid = await press(page, form.body, 'Book', { message: 'x'.repeat(501) });
    const done = await press(page, form.body, 'Book');
    const addresses = [
      ...[body, form.body, invalid.body].flatMap((each) => ownAddresses(each)),
      held.location!,
      done.location!,
    ];
    expect(addresses.length).toBeGreaterThan(6);
    const kept = `lang=en&zone=America%2FNew_York&for=${invitation.token}`;
    for (const address of addresses) expect(address).toMatch(new RegExp(`[?&]${kept}$`));
    for (const each of [body, form.body, invalid.body])
      expect(linksOf(each).get('Deutsch')).toMatch(new RegExp(`[?&]for=${invitation.token}\\b`));
  });

  it('has the offers of its product only, and says for whom they are', async () => {
    const offers = [massage, { ...massage, name: 'Massage, long', duration: 60 }, yoga];
    const { invitation, provider } = await openInvited({ offers: { offers } });
    const { body, heading } = await page.open(invitation.path);
    expect(heading).toBe('Book an appointment');
    expect(textOf(body)).toContain('Book an appointment For Ada Lovelace Massage <deep> 30 minutes');
    expect(body).not.toContain('Yoga');
    expect(await accessibilityFindings(body)).toEqual([]);
    const gone = await page.open(`${invitation.path}&offer=yoga`);
    expect(textOf(gone.body)).toContain('This offer is no longer available');
    const held = await page.open(`${provider.path}/hold?for=${invitation.token}`);
    expect(held.location).toBe(invitation.path);
  });

  it('escapes the name', async () => {
    const { invitation } = await openInvited({}, { customer: { userName: '<b>"Ada" & Co' } });
    const { body } = await page.open(invitation.path);
    expect(body).toContain('For &lt;b&gt;&quot;Ada&quot; &amp; Co</p>');
  });

  it('is in the language of the customer, unless the browser or the address has another one', async () => {
    const { invitation } = await openInvited({}, { customer: { language: 'de' } });
    const headers = { 'accept-language': 'fr' };
    const german = await page.open(invitation.path, { headers });
    expect(german.body).toContain('<html lang="de">');
    expect(textOf(german.body)).toContain('Für Ada Lovelace');
    expect(await accessibilityFindings(german.body)).toEqual([]);
    expect((await page.open(invitation.path)).body).toContain('<html lang="en">');
    expect((await page.open(`${invitation.path}&lang=en`, { headers })).body).toContain('<html lang="en">');
    const form = (await choose(page, invitation.path, '10:00–10:30', headers)).answer;
    expect(form.heading).toBe('Diesen Termin buchen?');
    expect(textOf(form.body)).toMatch(/Für Ada Lovelace E‑Mails zu diesem Termin gehen an \S*a\S*@\S+\. Was/);
    expect(await accessibilityFindings(form.body)).toEqual([]);
  });

  it('is stored nowhere, not found, and tells no other host its address', async () => {
    const { body, location, invitation } = await openForm();
    const done = await press(page, body, 'Book');
    for (const address of [invitation.path, location, done.location!, invitation.path.replace('for=', 'for=x')])
      expect(Object.fromEntries((await page.open(address)).headers), address).toMatchObject({
        'cache-control': 'no-store',
        'referrer-policy': 'same-origin',
        'x-robots-tag': 'noindex',
      });
    expect(done.headers.get('cache-control')).toBe('no-store');
  });

  it('says that a service is down, and keeps the invitation', async () => {
    const { invitation } = await openInvited();
    await whilePaused([page.services.calendar.pid], async () => {
      const { status, body } = await page.open(invitation.path);
      expect(status).toBe(503);
      expect(linksOf(body).get('Deutsch')).toBe(`?lang=de&for=${invitation.token}`);
    });
  });
});

describe('the form of an invitation', () => {
  it('asks for a message only, says where the mails go, and books for the customer', async () => {
    const { provider, invitation, body, location: address } = await openForm({ askMobile: AskMobile.REQUIRED });
    expect(/<h1>(.*?)<\/h1>/.exec(body)![1]).toBe('Book this appointment?');
    expect(textOf(body)).toMatch(
      /For Ada Lovelace Emails about this appointment go to \S*a\S*@\S+\. What Massage <deep> When/,
    );
    expect(body).not.toContain('ada@example.com');
    expect(Object.keys(fieldsOf(body)).toSorted()).toEqual(['message', 'price', 'website']);
    expect(buttonsOf(body).map(({ name }) => name)).toEqual(['Book']);
    expect(await accessibilityFindings(body)).toEqual([]);
    // What is typed all the same is somebody else.
    const typed = { ...person, mobile: '+44 7700 900123', message: 'Second floor?' };
    const { status, location } = await press(page, body, 'Book', typed);
    expect(status).toBe(303);
    const done = await page.open(location!);
    expect([done.status, done.heading]).toEqual([200, 'Booked']);
    expect(textOf(done.body)).toContain('Name Ada Lovelace');
    expect(await accessibilityFindings(done.body)).toEqual([]);
    expect(await participationsOf(page, provider)).toMatchObject([
      {
        state: 'BOOKED',
        name: 'Ada Lovelace',
        note: 'Second floor?',
        customerReference: invitation.customerReference,
      },
    ]);
    // Sent again, it leads there, too. The address of the form says nothing of who has booked.
    expect((await press(page, body, 'Book', typed)).location).toBe(location);
    const sent = await page.open(address);
    expect([sent.status, sent.heading]).toEqual([200, 'This form has already been sent']);
    expect(textOf(sent.body)).toContain('Nothing else was booked.');
    expect(sent.body).not.toMatch(/Lovelace|the address in it/);
    expect(await accessibilityFindings(sent.body)).toEqual([]);
  });

  it('of a request sends one', async () => {
    const { provider, body } = await openForm({ confirmation: Confirmation.REQUESTED });
    expect(/<h1>(.*?)<\/h1>/.exec(body)![1]).toBe('Send this request?');
    const { location } = await press(page, body, 'Send request');
    expect((await page.open(location!)).heading).toBe('Request sent');
    expect(await participationsOf(page, provider)).toMatchObject([{ state: 'REQUESTED', name: 'Ada Lovelace' }]);
  });

  it('says nothing of mails to a customer without an address', async () => {
    const { body, invitation } = await openForm({}, { customer: { email: undefined } });
    expect(textOf(body)).toContain('For Ada Lovelace What Massage <deep>');
    const { location } = await press(page, body, 'Book');
    const done = await page.open(location!);
    expect(done.heading).toBe('Booked');
    expect(textOf(done.body)).not.toContain('email to');
    const over = await page.open(location!.replace(/done\/[\w-]+/, `done/${randomUUID()}`));
    expect([over.status, over.heading]).toEqual([404, 'This page is no longer available']);
    expect(textOf(over.body)).toContain('If you have booked, the booking still stands.');
    const used = await page.open(invitation.path);
    expect(used.heading).toBe(usedHeading);
    expect(textOf(used.body)).toContain(`Everything that it was for is booked or requested. Please ${contact}`);
    expect(await accessibilityFindings(used.body)).toEqual([]);
  });

  it('refuses a message that is too long, and keeps it', async () => {
    const { body } = await openForm();
    const message = `\n<i>"&${'🙂'.repeat(500)}`;
    const again = await press(page, body, 'Book', { message });
    expect([again.status, again.heading]).toEqual([400, 'Book this appointment?']);
    expect([...linksOf(again.body)].filter(([, href]) => href.startsWith('#'))).toEqual([
      ['The message may have at most 500 characters', '#message'],
    ]);
    expect(fieldsOf(again.body)['message']).toBe(message);
    expect(await accessibilityFindings(again.body)).toEqual([]);
    expect((await press(page, again.body, 'Book', { message: 'x' })).status).toBe(303);
  });

  it('asks again if the price has changed', async () => {
    const { provider, body } = await openForm();
    await setClock(page, '2031-05-28T08:20:00Z');
    await changeRules(page, provider, { offers: { offers: [{ ...massage, price: { value: 50, currency: 'EUR' } }] } });
    const changed = await press(page, body, 'Book', { message: 'Second floor?' });
    expect([changed.status, changed.heading]).toEqual([409, 'Book this appointment?']);
    expect(textOf(changed.body)).toContain('It is €50.00 now.');
    expect(fieldsOf(changed.body)['message']).toBe('Second floor?');
    expect((await press(page, changed.body, 'Book')).status).toBe(303);
  });

  it('of a time that was taken meanwhile keeps the message, and the nearest times book at once', async () => {
    const { provider, body } = await openForm();
    await setClock(page, '2031-05-28T08:20:00Z');
    const other = await invite(provider);
    const taking = await choose(page, other.path, '10:00–10:30');
    expect((await press(page, taking.answer.body, 'Book')).status).toBe(303);
    const taken = await press(page, body, 'Book', { message: 'Second floor?' });
    expect([taken.status, taken.heading]).toEqual([409, 'Book this appointment?']);
    expect(fieldsOf(taken.body)['message']).toBe('Second floor?');
    expect(await accessibilityFindings(taken.body)).toEqual([]);
    const { location } = await press(page, taken.body, '10:30–11:00');
    expect(textOf((await page.open(location!)).body)).toContain(`When ${week} 10:30–11:00`);
  });

  it('is never to be confirmed by a mail: the CRM knows whom it has invited', async () => {
    const { provider, invitation, body } = await openForm({}, { bookings: limits.bookings.usual + 2 });
    const byProgram = await press(page, body, 'Book', { website: 'https://spam.example' });
    expect((await page.open(byProgram.location!)).heading).toBe('Booked');
    await offerTimes(page, provider, '2031-06-03T08:00', '2031-06-03T18:00');
    const headers = { 'x-forwarded-for': freshAddress() };
    for (let sent = 0; sent <= limits.bookings.usual; sent += 1) {
      const { answer } = await choose(page, `${invitation.path}&offer=massage&date=2031-06-03`, 'Tuesday', headers);
      const { location } = await press(page, answer.body, 'Book', {}, headers);
      expect((await page.open(location!)).heading).toBe('Booked');
    }
  });
});

describe('an invitation by which everything is booked', () => {
  async function useUp(options: InviteOptions = {}) {
    const { provider, invitation, body } = await openForm({}, options);
    const other = await choose(page, invitation.path, '11:00–11:30');
    const unused = await page.open(`${invitation.path}&offer=massage`);
    const { location } = await press(page, body, 'Book');
    return { provider, invitation, unused, other, done: location! };
  }

  it('shows no times any more, and says where changes are made', async () => {
    const { invitation, other } = await useUp();
    for (const address of [invitation.path, `${invitation.path}&offer=massage`, other.location]) {
      const { status, heading, body } = await page.open(address);
      expect([status, heading], address).toEqual([200, usedHeading]);
      expect(textOf(body)).toContain(
        'Everything that it was for is booked or requested. The emails about your appointments have a link by which you can change or cancel them.',
      );
      expect(await accessibilityFindings(body)).toEqual([]);
    }
    expect((await page.open(`${invitation.path}&lang=de`)).heading).toBe('Diese Einladung ist schon genutzt');
  });

  it('names no link where mails have none', async () => {
    const { provider, invitation } = await useUp();
    await changeRules(page, provider, { selfService: false });
    const { body } = await page.open(invitation.path);
    expect(textOf(body)).toContain(`Everything that it was for is booked or requested. Please ${contact}`);
  });

  it('books nothing more by pages that are still open', async () => {
    const { provider, unused, other } = await useUp();
    const message = 'On the second floor?';
    const [chosen, sent] = [
      await press(page, unused.body, '11:30'),
      await press(page, other.answer.body, 'Book', { message }),
    ];
    expect(textOf(sent.body)).toContain(message);
    for (const refused of [chosen, sent]) {
      expect([refused.status, refused.heading]).toEqual([409, usedHeading]);
      expect(await accessibilityFindings(refused.body)).toEqual([]);
    }
    expect((await participationsOf(page, provider)).filter(({ state }) => state === 'BOOKED')).toHaveLength(1);
  });

  it('still has the page of what was booked, which leads on only if more can be booked', async () => {
    const done = await page.open((await useUp()).done);
    expect([done.status, done.heading]).toEqual([200, 'Booked']);
    expect(linksOf(done.body).has('Book another appointment')).toBe(false);
    expect(ownAddresses(done.body).some((address) => address.startsWith(`${basePath}/book/`))).toBe(false);

    const { invitation, done: first } = await useUp({ bookings: 2 });
    const again = await page.open(first);
    expect(linksOf(again.body).get('Book another appointment')).toBe(invitation.path);
    expect(await accessibilityFindings(again.body)).toEqual([]);
    expect(buttonsOf((await page.open(invitation.path)).body).length).toBeGreaterThan(0);
  });

  it('can be used again once a booking is cancelled, but not too often in a day', async () => {
    const { provider, invitation } = await openInvited();
    const { answer: open } = await choose(page, invitation.path, '11:00–11:30');
    for (const time of ['10:00–10:30', '10:30–11:00']) {
      const { answer } = await choose(page, invitation.path, time);
      expect((await press(page, answer.body, 'Book')).status).toBe(303);
      await cancelAll(provider);
    }
    const { body } = await page.open(invitation.path);
    const message = 'On the second floor?';
    const [chosen, sent] = [await press(page, body, '10:00–10:30'), await press(page, open.body, 'Book', { message })];
    for (const answer of [chosen, sent]) {
      expect([answer.status, answer.heading]).toEqual([409, 'No more bookings possible at present']);
      expect(textOf(answer.body)).toContain(`Please try again tomorrow. Or ${contact}`);
      expect(await accessibilityFindings(answer.body)).toEqual([]);
    }
    expect(textOf(sent.body)).toContain(message);
    expect(chosen.body).not.toContain('<textarea');
  });
});

describe('an invitation that does not work', () => {
  it('is answered in the same way, whatever is wrong with it, and never by the page for everybody', async () => {
    const provider = await openPageOf(page);
    await offerTimes(page, provider, '2031-06-02T10:00', '2031-06-02T12:00');
    const [deleted, foreign] = [await invite(provider), await invite(await openPageOf(page))];
    const { crmId, providerReference } = provider;
    const { customerReference, id: invitationId } = deleted;
    await page.invitations.deleteInvitation({ crmId, providerReference, customerReference, invitationId });
    const at = deleted.token.length - 5;
    const damaged = deleted.token.slice(0, at) + (deleted.token[at] === 'A' ? 'B' : 'A') + deleted.token.slice(at + 1);
    const tokens = [deleted.token, foreign.token, damaged, 'x', '-', '', ' ', 'a.b', '%00', 'a'.repeat(2_000)];
    const expected = await page.open(`${provider.path}?for=${tokens[0]}`);
    expect([expected.status, expected.heading]).toEqual([404, deadHeading]);
    expect(textOf(expected.body)).toContain(
      `It is not valid, or no longer valid. Please use the latest link that you have received. Or ${contact}`,
    );
    expect(await accessibilityFindings(expected.body)).toEqual([]);
    const withoutQuery = (body: string): string => body.replace(/<a href="\?[^"]*"/, '');
    for (const token of tokens) {
      const { status, body } = await page.open(`${provider.path}?for=${token}`);
      expect([status, withoutQuery(body)], token).toEqual([404, withoutQuery(expected.body)]);
    }
    const german = await page.open(`${provider.path}?for=x&lang=de`);
    expect(german.heading).toBe('Diese Einladung funktioniert nicht');
  });

  it('can be shown in a frame, where the page can', async () => {
    const embedOn = { origins: ['https://studio.example'] };
    const { provider } = await openInvited({ embedOn });
    for (const path of [provider.path, `${provider.path}?for=x`]) {
      const { headers } = await page.open(path);
      expect(headers.get('content-security-policy')).toContain('frame-ancestors https://studio.example');
    }
  });

  it('is one that has expired', async () => {
    const { invitation } = await openInvited();
    await setClock(page, '2031-06-29T21:59:00Z');
    expect((await page.open(invitation.path)).status).toBe(200);
    await setClock(page, '2031-06-29T22:01:00Z');
    expect(await page.open(invitation.path)).toMatchObject({ status: 404, heading: deadHeading });
  });

  it('opens no address, and sends no form', async () => {
    const { provider, invitation, body, location } = await openForm();
    const unused = await page.open(`${invitation.path}&offer=massage`);
    // Mails to the previous address may be read by somebody else.
    await page.customers.updateCustomer({
      crmId: provider.crmId,
      providerReference: provider.providerReference,
      customerReference: invitation.customerReference,
      email: 'other@example.com',
    });
    const hold = `${provider.path}/hold?for=${invitation.token}`;
    for (const address of [invitation.path, `${invitation.path}&offer=massage`, location, hold])
      expect(await page.open(address), address).toMatchObject({ status: 404, heading: deadHeading });
    for (const answer of [await press(page, unused.body, '11:00'), await press(page, body, 'Book')])
      expect(answer).toMatchObject({ status: 404, heading: deadHeading });
  });

  it('still shows what was booked by it, and leads nowhere from there', async () => {
    const { provider, invitation, body } = await openForm({}, { bookings: 2 });
    const { location } = await press(page, body, 'Book');
    const { crmId, providerReference } = provider;
    const { customerReference, id: invitationId } = invitation;
    await page.invitations.deleteInvitation({ crmId, providerReference, customerReference, invitationId });
    const done = await page.open(location!);
    expect([done.status, done.heading]).toEqual([200, 'Booked']);
    expect(linksOf(done.body).has('Book another appointment')).toBe(false);
    // What is shown to whoever had the previous address is nothing that they can use.
    await page.customers.updateCustomer({ crmId, providerReference, customerReference, email: 'new@example.com' });
    const over = await page.open(location!);
    expect(over.status).toBe(404);
    expect(textOf(over.body)).toContain('If you have booked, the booking still stands.');
  });

  it('of a provider without a page is answered as any address without one', async () => {
    const { provider, invitation } = await openInvited();
    await changeRules(page, provider, { page: false });
    for (const address of [invitation.path, `${provider.path}?for=x`, `${provider.path}?for=`])
      expect(await page.open(address), address).toMatchObject({ status: 404, heading: 'Page not found' });
  });

  it('makes those wait who have tried too many', async () => {
    const { path } = await openPageOf(page);
    const headers = { 'x-forwarded-for': freshAddress() };
    for (let count = 0; count < 20; count += 1) await page.open(`${path}?for=x${count}`, { headers });
    const startedMs = performance.now();
    await page.open(`${path}?for=x`, { headers });
    expect(performance.now() - startedMs).toBeGreaterThan(950);
  });
});

describe('a page for those who are invited', () => {
  it('says so to everybody else, on every address, with phone and mail', async () => {
    const { provider } = await openInvited();
    const choice = randomUUID();
    const place = 'offer=massage&at=ada&slot=2031-06-02T08:00:00.000Z';
    const hold = { form: { offer: 'massage', slot: '2031-06-02T08:00:00.000Z' } };
    for (const [address, options] of [
      [provider.path],
      [`${provider.path}?offer=massage&lang=en`],
      [`${provider.path}/hold`],
      [`${provider.path}/hold`, hold],
      [`${provider.path}/form/${choice}?${place}`],
      [`${provider.path}/form/${choice}?${place}`, { form: person }],
      [`${provider.path}/form/${choice}`],
      [`${provider.path}/done/${choice}`],
    ] as const) {
      const { status, heading, body } = await page.open(address, options);
      expect([status, heading], address).toEqual([403, 'By invitation only']);
      expect(textOf(body)).toContain(`If you have one, please open the link in it. Or ${contact}`);
      expect(body).toContain('href="tel:+49301234567"');
      expect(body).toContain('--brand: #7a1f5c');
      expect(await accessibilityFindings(body)).toEqual([]);
    }
    expect((await page.open(`${provider.path}?lang=de`)).heading).toBe('Nur mit Einladung');
  });

  it('is open to those who come with an invitation, and to everybody once the rules say so', async () => {
    const { provider, invitation } = await openInvited();
    expect((await page.open(invitation.path)).status).toBe(200);
    await changeRules(page, provider, { access: Access.PUBLIC });
    expect((await page.open(provider.path)).status).toBe(200);
    expect(textOf((await page.open(provider.path)).body)).not.toContain('Lovelace');
    expect(textOf((await page.open(invitation.path)).body)).toContain('For Ada Lovelace');
  });

  it('does not make those wait who open it often', async () => {
    const { provider } = await openInvited();
    const headers = { 'x-forwarded-for': freshAddress() };
    for (let count = 0; count < 25; count += 1) await page.open(provider.path, { headers });
    const startedMs = performance.now();
    await page.open(provider.path, { headers });
    expect(performance.now() - startedMs).toBeLessThan(900);
  });
});
