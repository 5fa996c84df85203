import type { GetPendingBookingMailDataResponse } from '@scheduling/contracts/calendar/v1';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import { describe, expect, it } from 'vitest';
import type { MailContent } from '../db/schema.ts';
import { composePageMail } from './compose-page-mail.ts';

const crm: Crm = {
  crmId: 'crm',
  name: 'Studio',
  language: 'de',
  timeZone: 'Europe/Berlin',
  senderName: 'Studio',
  senderAddress: 'hello@studio.example',
  notifyOnCustomerDeletion: true,
  sandbox: false,
  imprint: 'Studio Ltd',
};
const provider: Provider = {
  id: 'provider',
  reference: 'provider@crm',
  ownerReference: 'owner@crm',
  accountReference: 'account@crm',
  name: 'Yoga & Co',
  email: 'desk@yoga.example',
  phone: '+49 30 1',
  impressum: 'Yoga & Co GmbH',
  timeZone: 'Europe/Berlin',
  version: 1,
};
const link = 'https://page.example/book/confirm/t0k-3n_';

function compose(
  overrides: Partial<GetPendingBookingMailDataResponse> = {},
  by: { provider?: Partial<Provider>; crm?: Partial<Crm> } = {},
): MailContent {
  return composePageMail({
    mailData: {
      providerId: provider.id,
      name: 'Ada Lovelace',
      email: 'ada@example.com',
      language: 'en',
      description: 'Massage',
      start: new Date('2030-07-01T08:00:00Z'),
      end: new Date('2030-07-01T09:00:00Z'),
      timeZone: 'Europe/Berlin',
      address: { kind: { $case: 'text', value: 'Hall 2' } },
      price: { value: 45, currency: 'EUR' },
      requested: false,
      token: 't0k-3n_',
      maxPerPerson: 3,
      expiresAt: new Date('2030-06-01T08:30:00Z'),
      ...overrides,
    },
    provider: { ...provider, ...by.provider },
    crm: { ...crm, ...by.crm },
    senderAddress: 'no-reply@scheduling.example',
    pageUrl: 'https://page.example',
    writtenAt: new Date('2030-06-01T08:00:00Z'),
  });
}

/** With one kind of space: Intl has several. */
const textOf = ({ text }: MailContent): string => text.replaceAll(/[^\S\n]/g, ' ');

const footer = `-- 
Yoga & Co
desk@yoga.example
+49 30 1

Yoga & Co GmbH

Studio Ltd

`;

describe('the mail by which a booking is confirmed', () => {
  it('says in English what is not booked yet, and until when it can be', () => {
    const content = compose();
    expect(content.subject).toBe('Please confirm: Mon 1 Jul, 10:00 – Massage');
    expect(textOf(content)).toBe(`Please confirm your booking

Hello Ada Lovelace,
Nothing is booked yet. The place is not kept for you: until you confirm, others can book it.

  Massage
  Monday, 1 July 2030
  10:00–11:00
  (Central European Summer Time)
  Hall 2
  Price: €45.00

Confirm booking:
${link}

The link works until Sat, 1 Jun 2030, 10:30 (CEST).
Somebody entered this address on the booking page of Yoga & Co. If that was not you, you do not need to do anything.
If you have any questions, please contact Yoga & Co: desk@yoga.example, +49 30 1

${footer}This message was sent automatically.
`);
  });

  it('says the same in German', () => {
    const content = compose({ language: 'de' });
    expect(content.subject).toBe('Bitte bestätigen: Mo., 1. Juli, 10:00 Uhr – Massage');
    expect(textOf(content)).toBe(`Bitte bestätigen Sie Ihre Buchung

Guten Tag Ada Lovelace,
Noch ist nichts gebucht. Der Platz ist nicht für Sie reserviert: Bis Sie bestätigen, können andere ihn buchen.

  Massage
  Montag, 1. Juli 2030
  10:00–11:00 Uhr
  (Mitteleuropäische Sommerzeit)
  Hall 2
  Preis: 45,00 €

Buchung bestätigen:
${link}

Der Link funktioniert bis Sa., 1. Juni 2030, 10:30 Uhr (MESZ).
Jemand hat diese Adresse auf der Buchungsseite von Yoga & Co eingegeben. Wenn Sie das nicht waren, müssen Sie nichts tun.
Bei Fragen wenden Sie sich bitte an Yoga & Co: desk@yoga.example, +49 30 1

${footer}Diese Nachricht wurde automatisch verschickt.
`);
  });

  it.each([
    ['en', 'Please confirm your request', 'Nothing is booked or requested yet', 'Confirm request'],
    ['de', 'Bitte bestätigen Sie Ihre Anfrage', 'Noch ist nichts gebucht oder angefragt', 'Anfrage bestätigen'],
  ])('is about a request if it becomes one, in %s', (language, headline, lead, label) => {
    const content = compose({ language, requested: true });
    expect(content.text).toMatch(new RegExp(`^${headline}\n`));
    expect(content.text).toContain(lead);
    expect(content.text).toContain(`\n${label}:\n${link}\n`);
    expect(content.html).toContain(`>${label}</a>`);
  });

  it('has the times of the provider, and none of the link is at another place', () => {
    const { text, html } = compose({ language: 'en-US' }, { provider: { timeZone: 'America/New_York' } });
    expect(text.replaceAll(/\s/g, ' ')).toContain(' 4:00 – 5:00 AM ');
    expect(text.replaceAll(/\s/g, ' ')).toContain('The link works until Sat, Jun 1, 2030, 4:30 AM (EDT).');
    expect(text.split(link)).toHaveLength(2);
    // The button, and the address for those whose button does not work.
    expect(html.match(/href="[^"]*\/book\/[^"]*"/g)).toEqual([`href="${link}"`, `href="${link}"`]);
  });

  it.each([undefined, { value: 0, currency: 'EUR' }])('has no price if there is none: %j', (price) => {
    expect(compose({ price }).text).not.toContain('Price');
  });
});

describe('the mail about too many bookings', () => {
  it('says in English that nothing was booked, why, and what makes room', () => {
    const content = compose({ token: undefined });
    expect(content.subject).toBe('Not booked: Mon 1 Jul, 10:00 – Massage');
    expect(textOf(content)).toBe(`This booking was not made

Hello Ada Lovelace,
You already have upcoming bookings, and more are not possible.
On the booking page of Yoga & Co, one person can have 3 upcoming bookings, including requests.

  Massage
  Monday, 1 July 2030
  10:00–11:00
  (Central European Summer Time)
  Hall 2

To make it all the same, first cancel another one by the link in its email, or contact Yoga & Co: desk@yoga.example, +49 30 1

${footer}Somebody entered this address on the booking page of Yoga & Co. If that was not you, you do not need to do anything.
This message was sent automatically.
`);
  });

  it('says the same in German', () => {
    const content = compose({ token: undefined, language: 'de', maxPerPerson: 1 });
    expect(content.subject).toBe('Nicht gebucht: Mo., 1. Juli, 10:00 Uhr – Massage');
    expect(textOf(content)).toBe(`Diese Buchung ist nicht zustande gekommen

Guten Tag Ada Lovelace,
Sie haben bereits bevorstehende Buchungen, und weitere sind nicht möglich.
Auf der Buchungsseite von Yoga & Co kann eine Person eine bevorstehende Buchung haben, Anfragen mitgezählt.

  Massage
  Montag, 1. Juli 2030
  10:00–11:00 Uhr
  (Mitteleuropäische Sommerzeit)
  Hall 2

Um diesen Termin trotzdem zu buchen, stornieren Sie bitte zuerst einen anderen über den Link in der E‑Mail dazu, oder wenden Sie sich an Yoga & Co: desk@yoga.example, +49 30 1

${footer}Jemand hat diese Adresse auf der Buchungsseite von Yoga & Co eingegeben. Wenn Sie das nicht waren, müssen Sie nichts tun.
Diese Nachricht wurde automatisch verschickt.
`);
  });

  it.each([
    ['en', 'Not requested: Mon 1 Jul, 10:00 – Massage', 'This request was not made'],
    ['de', 'Nicht angefragt: Mo., 1. Juli, 10:00 Uhr – Massage', 'Diese Anfrage ist nicht zustande gekommen'],
  ])('is about a request if it was one, in %s', (language, subject, headline) => {
    const content = compose({ token: undefined, language, requested: true });
    expect(content.subject).toBe(subject);
    expect(content.text).toMatch(new RegExp(`^${headline}\n`));
  });

  it('leads neither to the page nor to a call', () => {
    const { subject, text, html } = compose({
      token: undefined,
      description: 'Call https://meet.example/room',
      address: { kind: { $case: 'text', value: 'https://meet.example/room' } },
    });
    expect(`${subject}${text}${html}`).not.toMatch(/page\.example|meet\.example/);
  });
});

describe('both mails', () => {
  it.each(['t', undefined])('come from the provider, and go to the address that was entered: token %s', (token) => {
    expect(compose({ token })).toMatchObject({
      from: { name: 'Yoga & Co via Studio', address: 'hello@studio.example' },
      replyTo: { name: 'Yoga & Co', address: 'desk@yoga.example' },
      to: { name: 'Ada Lovelace', address: 'ada@example.com' },
      language: 'en',
      calendars: [],
    });
    expect(compose({ token, language: 'tlh' }).language).toBe('de');
  });

  it('have the colour of the CRM', () => {
    for (const token of ['t', undefined])
      expect(compose({ token }, { crm: { colour: '#0b7a4b' } }).html).toContain('bgcolor="#0b7a4b"');
  });

  it.each([
    ['Win at https://evil.example/now', 'Win at'],
    ['evil.com', ''],
    ['Ada www.evil.com/x Lovelace', 'Ada Lovelace'],
    ['spam '.repeat(20), `${'spam '.repeat(12).slice(0, 59)}…`],
    ['Ada\r\nBcc: b', 'Ada Bcc: b'],
    ['Dr. Ada Lovelace', 'Dr. Ada Lovelace'],
  ])('say nothing to the owner of an address that a stranger enters as a name: %j', (name, shown) => {
    for (const token of ['t', undefined]) {
      const { to, text, html } = compose({ name, token });
      expect(to.name).toBe(shown);
      expect(text).toContain(`Hello ${shown || 'ada@example.com'},\n`);
      expect(`${text}${html}`).not.toContain('evil');
    }
  });
});
