import type { GetParticipationMailDataResponse, Location, Price } from '@scheduling/contracts/calendar/v1';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import ICAL from 'ical.js';
import { type ParsedMail, simpleParser } from 'mailparser';
import { createTransport } from 'nodemailer';
import { describe, expect, it } from 'vitest';
import { Diary, eventOf, periodOf, readCalendar } from '../../test/diary.ts';
import type { MailContent } from '../db/schema.ts';
import { sampleMails } from '../samples/sample-mails.ts';
import { renderSamplePage } from '../samples/sample-page.ts';
import { composeParticipationMail } from './compose-participation-mail.ts';
import { composeVerificationMail } from './compose-verification-mail.ts';
import { organizerOf, senderOf } from './mail-addresses.ts';
import type { MailOfChange } from './mail-of-change.ts';
import { toMessage } from './send-mail.ts';

const participationId = '01990000-0000-7000-8000-00000000000a';
const crm: Crm = {
  crmId: 'crm',
  name: 'Studio',
  language: 'en',
  timeZone: 'Europe/Berlin',
  senderName: 'Studio',
  senderAddress: 'hello@studio.example',
  notifyOnCustomerDeletion: true,
  sandbox: false,
};
const provider: Provider = {
  id: 'provider',
  reference: 'provider@crm',
  ownerReference: 'owner@crm',
  accountReference: 'account@crm',
  name: 'Yoga & Co',
  timeZone: 'Europe/Berlin',
  version: 1,
};

interface Facts {
  name?: string;
  description?: string;
  message?: string;
  address?: Location;
  start?: string;
  end?: string;
  price?: Price;
  language?: string;
  cancellableUntil?: string;
  movable?: boolean;
  /** What the person was told before. */
  previous?: Pick<Facts, 'description' | 'address' | 'start' | 'end'>;
}

interface Change {
  mail?: MailOfChange;
  version?: number;
  provider?: Partial<Provider>;
  crm?: Partial<Crm>;
  actor?: string;
  link?: string;
  page?: string;
}

const confirmed: MailOfChange = { template: 'booking-confirmed', calendar: 'REQUEST' };
const cancelled: MailOfChange = { template: 'booking-cancelled', calendar: 'CANCEL' };

function appointmentOf({ description, address, start, end }: Facts) {
  return {
    description: description ?? 'Yoga',
    start: new Date(start ?? '2030-07-01T08:00:00Z'),
    end: new Date(end ?? '2030-07-01T09:00:00Z'),
    address,
  };
}

function compose(facts: Facts, change: Change = {}): MailContent {
  const mailData: GetParticipationMailDataResponse = {
    currentVersion: 1,
    state: 'PARTICIPATION_STATE_BOOKED',
    reference: 'R-1',
    message: facts.message,
    providerId: provider.id,
    ...appointmentOf(facts),
    previous: facts.previous && appointmentOf(facts.previous),
    price: facts.price,
    selfService: change.link !== undefined,
    cancellableUntil: facts.cancellableUntil === undefined ? undefined : new Date(facts.cancellableUntil),
    movableUntil: facts.movable && facts.cancellableUntil !== undefined ? new Date(facts.cancellableUntil) : undefined,
  };
  const [by, through, recipient] = [
    { ...provider, ...change.provider },
    { ...crm, ...change.crm },
    { name: facts.name ?? 'Anna', email: 'anna@example.com', language: facts.language },
  ];
  const senderAddress = 'no-reply@scheduling.example';
  return composeParticipationMail({
    participationId,
    version: change.version ?? 1,
    mail: change.mail ?? confirmed,
    actor: change.actor ?? 'crm:key',
    recipient,
    mailData,
    provider: by,
    crm: through,
    senderAddress,
    organizer: organizerOf(by, senderOf(through, senderAddress), {
      attendeeAddress: recipient.email,
      known: undefined,
    }),
    link: change.link,
    page: change.page,
    writtenAt: new Date('2030-06-01T00:00:00Z'),
  });
}

/** As sent over the wire. */
async function write(content: MailContent): Promise<{ raw: string; envelope: { from: string | false; to: string[] } }> {
  const transport = createTransport({ streamTransport: true, buffer: true });
  const info = await transport.sendMail(
    toMessage({ eventId: 'event', aboutId: 'about', template: 'template', requestId: 'request' }, content),
  );
  return { raw: (info.message as Buffer).toString(), envelope: info.envelope };
}

const parse = async (content: MailContent): Promise<ParsedMail> => simpleParser((await write(content)).raw);

const calendarsOf = ({ attachments }: ParsedMail) =>
  attachments.map(({ contentType, content, filename }) => ({ contentType, filename, text: content.toString() }));

/** One in each month, and every half hour around each DST change. */
function interestingTimes(timeZone: string): Temporal.Instant[] {
  const months = Array.from({ length: 12 }, (_, month) =>
    Temporal.Instant.from('2030-01-15T09:00Z').add({ hours: month * 730 }),
  );
  const changes: Temporal.Instant[] = [];
  let at = Temporal.Instant.from('2030-01-01T00:00Z').toZonedDateTimeISO(timeZone).getTimeZoneTransition('next');
  while (at && at.year <= 2030) {
    changes.push(at.toInstant());
    at = at.getTimeZoneTransition('next');
  }
  return [
    ...months,
    ...changes.flatMap((change) => Array.from({ length: 16 }, (_, half) => change.add({ minutes: (half - 8) * 30 }))),
  ];
}

describe('every mail in every language', () => {
  it.each(sampleMails('anna@example.com'))(
    '$template in $language is complete',
    async ({ content, language, template }) => {
      const parsed = await parse(content);
      expect(parsed.headers.get('content-language')).toBe(language);
      expect(parsed.subject).toBe(content.subject);
      expect(parsed.text).toContain(content.text.split('\n')[0]);
      // What happens to a whole appointment says nothing of a person.
      const recipient = template.startsWith('provider-appointment') ? 'Studio Sonnengruß' : 'Anna Beispiel';
      expect(parsed.html).toContain(recipient);
      expect(`${parsed.text}${String(parsed.html)}${parsed.subject}`).not.toMatch(/undefined|null|\[object|NaN/);
      const expected = content.calendars.length;
      expect(calendarsOf(parsed)).toHaveLength(expected === 0 ? 0 : expected + 1);
      for (const { contentType, text } of calendarsOf(parsed)) {
        expect(contentType).toMatch(/^(?:text\/calendar|application\/ics)$/);
        expect(eventOf(text).summary).toBeTruthy();
      }
      expect(template).toBeTruthy();
    },
  );
});

describe('the page with the samples', () => {
  it('shows every mail beside the one before, with all that is said of it, in each language', () => {
    const samples = sampleMails('anna@example.com');
    const changed = samples.filter(
      ({ template }) =>
        !template.startsWith('provider-') && /changed|g-moved|cancelled|declined|withdrawn|reminder/.test(template),
    );
    expect(changed.every(({ before }) => before !== undefined)).toBe(true);
    for (const [language, previously] of [
      ['en', 'Previously: '],
      ['de', 'Bisher: '],
    ])
      expect(
        samples.filter((sample) => sample.language === language && sample.content.text.includes(previously!)).length,
      ).toBeGreaterThanOrEqual(10);
    const page = renderSamplePage(samples);
    expect(page.match(/<iframe /g)).toHaveLength(samples.length + samples.filter(({ before }) => before).length);
    expect(page).toMatch(/ srcdoc="\s*&lt;!doctype html&gt;\s*&lt;html lang=&quot;de&quot; /);
  });
});

describe('a verification mail', () => {
  it.each([
    ['hello@studio.example', 'This message was sent automatically.\n'],
    ['', 'This message was sent automatically. Please do not reply to it: replies do not reach Studio.\n'],
  ])('says who has sent it, why, and whom to ask, from %j', (address, note) => {
    const { text } = composeVerificationMail({
      verification: {
        token: 't',
        language: 'en',
        user: { id: 'u', email: 'anna@example.com', username: 'anna', lastName: 'Blum' },
      },
      crm: { ...crm, senderAddress: address, imprint: 'Studio Ltd\nLondon' },
      senderAddress: 'no-reply@scheduling.example',
      publicUrl: 'https://booking.example',
    });
    expect(text).toContain('\nStudio wants to be sure that messages about the account reach the right person.\n');
    expect(text).toContain('nothing happens unless you confirm.');
    expect(text).toContain(
      'If you have any questions, please contact Studio directly. Their legal notice is at the end of this email.\n',
    );
    expect(text).toContain(`\n\nStudio Ltd\nLondon\n\n${note}`);
  });

  it.each(sampleMails('anna@example.com').filter(({ template }) => template === 'email-verification'))(
    'says which account at which CRM uses the address, in $language',
    async ({ content }) => {
      const { subject, text, html } = await parse(content);
      expect(subject).toContain('Studio-Verwaltung');
      for (const fact of ['Studio-Verwaltung', 'Anna Beispiel', 'anna@example.com']) {
        expect(text).toMatch(new RegExp(`^ {2}[^:]+: ${fact}$`, 'm'));
        expect(html).toMatch(new RegExp(`>${fact}</p>`));
      }
    },
  );

  it('escapes the facts', () => {
    const { html } = composeVerificationMail({
      verification: {
        token: 't',
        language: 'en',
        user: {
          id: 'u',
          email: 'anna@example.com',
          username: 'anna',
          lastName: '<script>1</script>',
        },
      },
      crm: { ...crm, name: '<b>CRM</b>' },
      senderAddress: 'no-reply@scheduling.example',
      publicUrl: 'https://booking.example',
    });
    expect(html).not.toMatch(/<script|<b>/);
    expect(html).toContain('&lt;b&gt;CRM');
  });
});

describe('the contact lines of a mail', () => {
  const linksOf = ({ html }: MailContent) => [
    ...new Set([...html.matchAll(/href="((?:tel|mailto):[^"]*)"/g)].map((match) => match[1])),
  ];

  it('can be tapped', () => {
    const contact = { email: 'desk?x&y@yoga.example', phone: '+49 (0)30 123-45 67', mobile: '0170/12 34 567' };
    expect(linksOf(compose({}, { provider: contact }))).toEqual([
      'mailto:desk%3Fx%26y@yoga.example',
      'tel:+49301234567',
      'tel:01701234567',
    ]);
  });

  it('have an international prefix as RFC 3966 writes it', () => {
    expect(linksOf(compose({}, { provider: { phone: '0049 30 1234567' } }))).toEqual(['tel:+49301234567']);
  });

  it('are readable in the text', () => {
    expect(compose({}, { provider: { email: 'desk@yoga.example', phone: '+49 (0)30 123-45 67' } }).text).toContain(
      '\nYoga & Co\ndesk@yoga.example\n+49 (0)30 123-45 67\n',
    );
  });

  it.each(['+49 30 1 ext. 5', 'ask at the desk', '12', '030 1234567 / 0170 7654321'])(
    'are not linked when they are not a number: %s',
    (phone) => {
      const mail = compose({}, { provider: { phone } });
      expect(linksOf(mail)).toEqual([]);
      expect(mail.html).toContain(phone);
    },
  );
});

describe('the sender of a mail', () => {
  it.each([
    ['Yoga & Co', 'Studio', 'Yoga & Co via Studio'],
    ['STUDIO', 'Studio', 'Studio'],
    ['👩‍👧'.repeat(80), 'x'.repeat(255), `${'👩‍👧'.repeat(59)}… via ${'x'.repeat(59)}…`],
    ['One\r\nBcc: victim@example.com', 'Two\nX-Evil: 1', 'One Bcc: victim@example.com via Two X-Evil: 1'],
    ['"Bank" <pay@bank.example>,', 'a\\b', '"Bank" <pay@bank.example>, via a\\b'],
  ])('is named after the provider and the CRM: %s', async (name, senderName, from) => {
    const content = compose({}, { provider: { name }, crm: { senderName } });
    const { raw, envelope } = await write(content);
    const parsed = await simpleParser(raw);
    expect(parsed.from!.value).toEqual([{ name: from, address: 'hello@studio.example' }]);
    expect(envelope.from).toBe('hello@studio.example');
    for (const line of raw.split('\r\n\r\n')[0]!.split('\r\n')) expect(line.length).toBeLessThanOrEqual(998);
    expect([...parsed.headers.keys()]).not.toContain('x-evil');
    expect(parsed.bcc).toBeUndefined();
  });

  it('is answered at the provider’s address, if it has one', async () => {
    expect((await parse(compose({}, { provider: { email: 'desk@yoga.example' } }))).replyTo!.value).toEqual([
      { name: 'Yoga & Co', address: 'desk@yoga.example' },
    ]);
    expect((await parse(compose({}))).replyTo).toBeUndefined();
  });
});

describe('the price and the reference', () => {
  const price = { value: 1049.9, currency: 'CHF' };

  it.each([
    ['en', 'CHF 1,049.90'],
    ['de-DE', '1.049,90 CHF'],
  ])('are in the mail, formatted for %s', (language, formatted) => {
    const { text, html } = compose({ price, language });
    const labels = language === 'en' ? ['Price', 'Reference'] : ['Preis', 'Vorgangsnummer'];
    expect(text.replaceAll('\u00A0', ' ')).toContain(`  ${labels[0]}: ${formatted}\n  ${labels[1]}: R-1\n`);
    expect(html.replaceAll('\u00A0', ' ')).toContain(`>${formatted}</p>`);
    expect(html).toContain('>R-1</p>');
  });

  it.each([undefined, { value: 0, currency: 'EUR' }, { value: -5, currency: 'EUR' }])(
    'is only the reference without a price: %j',
    (none) => {
      expect(compose({ price: none }).text).toContain('Reference: R-1');
      expect(compose({ price: none }).text).not.toContain('Price');
    },
  );

  it.each(['request-declined', 'request-withdrawn', 'booking-cancelled', 'appointment-cancelled'] as const)(
    'is only the reference in %s',
    (template) => {
      const { text } = compose({ price }, { mail: { template } });
      expect(text).toContain('Reference: R-1');
      expect(text).not.toMatch(/Price|1,049/);
    },
  );
});

describe('who cancelled', () => {
  it.each([
    ['booking-cancelled', 'crm:key', 'en', 'The cancellation was made through Studio and affects only this booking.'],
    ['booking-cancelled', 'service', 'en', '\nThe cancellation affects only this booking.'],
    [
      'appointment-cancelled',
      'crm:key',
      'en',
      'The cancellation was made through Studio and applies to everyone taking part.',
    ],
    ['appointment-cancelled', '', 'en', '\nThe cancellation applies to everyone taking part.'],
    ['booking-cancelled', 'crm:key', 'de', 'Die Stornierung erfolgte über Studio und betrifft nur diese Buchung.'],
    ['booking-cancelled', 'person', 'de', '\nSie haben diese Buchung storniert.'],
    ['booking-cancelled', 'person', 'en', '\nYou have cancelled this booking.'],
    ['appointment-cancelled', 'crm:key', 'de', 'Die Absage erfolgte über Studio und gilt für alle Teilnehmenden.'],
    ['appointment-cancelled', 'service', 'de', '\nDie Absage gilt für alle Teilnehmenden.'],
  ] as const)('is in %s by %s, in %s, as far as it is known', (template, actor, language, sentence) => {
    const { text, html } = compose({ language }, { mail: { template }, actor });
    expect(text).toContain(sentence);
    expect(html).toContain(`<br>${sentence.trim()}</p>`);
  });

  it('is not in other mails', () => {
    expect(compose({}).text).not.toContain('through');
  });

  it('decides whose message it is', () => {
    const [own, theirs] = ['person', 'crm:key'].map((actor) =>
      compose({ message: 'I am ill' }, { mail: cancelled, actor }),
    ) as [MailContent, MailContent];
    expect(own.text).toContain('Your message to Yoga & Co:\n> I am ill\n');
    expect(own.html).toMatch(/>Your message to Yoga &amp; Co<\/p>[^]*>I am ill</);
    expect(eventOf(own.calendars[0]!.text).description).not.toContain('I am ill');
    expect(theirs.text).toContain('Message from Yoga & Co:\n> I am ill\n');
    expect(eventOf(theirs.calendars[0]!.text).description).toContain('I am ill');
  });
});

describe('the person’s link', () => {
  const link = 'https://page.example/booking/AbC-_123';
  const contact = { email: 'desk@yoga.example', phone: '+49 30 1', mobile: 'ask Mia' };
  const cancellableUntil = '2030-06-30T22:30:00Z';
  const withLink = (facts: Facts, mail = confirmed, by: Partial<Provider> = contact) =>
    compose({ cancellableUntil, ...facts }, { link, mail, provider: by });
  const sectionsOf = ({ text }: MailContent) => text.split('\n-- \n')[0]!.trimEnd().split('\n\n');

  it.each([
    {
      what: 'changes a booking',
      mail: confirmed,
      facts: { movable: true },
      says: ['Move or cancel', 'Possible until Mon, 1 Jul 2030, 00:30 (CEST).', 'After that, please contact'],
    },
    {
      what: 'only cancels a booking',
      mail: confirmed,
      facts: {},
      says: [
        'Cancel',
        'Possible until Mon, 1 Jul 2030, 00:30 (CEST).',
        'After that, or to move to another time, please contact',
      ],
    },
    {
      what: 'changes a request',
      mail: { template: 'request-received' as const },
      facts: { movable: true },
      says: [
        'Move or cancel',
        'You can cancel the request until Mon, 1 Jul 2030, 00:30 (CEST).',
        'After that, please contact',
      ],
    },
    {
      what: 'changes a request, in German',
      mail: { template: 'request-changed' as const },
      facts: { movable: true, language: 'de' },
      says: [
        'Verschieben oder stornieren',
        'Sie können die Anfrage bis Mo., 1. Juli 2030, 00:30 Uhr (MESZ) stornieren.',
        'Danach wenden Sie sich bitte an',
      ],
    },
  ])('$what, and the mail says until when and whom to ask then', ({ mail, facts, says: [label, until, advice] }) => {
    const content = withLink(facts, mail);
    expect(sectionsOf(content)).toContain(`${label}:\n${link}`);
    expect(sectionsOf(content)).toContain(`${until}\n${advice} Yoga & Co: desk@yoga.example, +49 30 1, ask Mia`);
    expect(content.html.match(new RegExp(`href="${link}"`, 'g'))).toHaveLength(2);
    expect(content.html).toContain(`>${label}</a>`);
    expect(content.html).toContain(`>${link}</a>`);
    expect(content.html).toContain(`>${until}</p>`);
    expect(content.html).toMatch(
      new RegExp(
        `>${advice} Yoga &amp; Co: <a [^>]*href="mailto:desk@yoga.example"[^>]*>desk@yoga.example</a>, <a [^>]*href="tel:\\+49301"[^>]*>\\+49 30 1</a>, ask Mia</p>`,
      ),
    );
  });

  it('of a reminder also says that the person will be there, and the mail has no message of an earlier change', () => {
    const mail: MailOfChange = { template: 'booking-reminder' };
    const content = withLink({ movable: true, message: 'Sorry, we had to move you.' }, mail);
    expect(content.subject).toBe('Reminder: Mon 1 Jul, 10:00 – Yoga');
    expect(sectionsOf(content)).toContain(`I will be there:\n${link}/attend`);
    expect(sectionsOf(content)).toContain(`Move or cancel:\n${link}`);
    expect(content.html).toContain(`href="${link}/attend"`);
    expect(content.text + content.html).not.toContain('Sorry');
    expect(content.calendars).toEqual([]);
    expect(compose({ cancellableUntil }, { mail }).text).not.toContain('I will be there');
  });

  it('promises nothing if it is too late', () => {
    const content = compose({}, { link, provider: contact });
    expect(sectionsOf(content)).toContain(`Your booking:\n${link}`);
    expect(content.text).toContain(
      '\nTo move or cancel, please contact Yoga & Co: desk@yoga.example, +49 30 1, ask Mia\n',
    );
    expect(content.text).not.toMatch(/until|After that/);
  });

  it.each([
    [cancelled, 'Your booking'],
    [{ template: 'appointment-cancelled' }, 'Your booking'],
    [{ template: 'request-declined' }, 'Your request'],
    [{ template: 'request-withdrawn' }, 'Your request'],
  ] as const)('shows what has ended, and promises nothing: $0.template', (mail, label) => {
    const content = withLink({ movable: true }, mail);
    expect(sectionsOf(content)).toContain(`${label}:\n${link}`);
    expect(content.text).not.toContain('until');
    expect(content.text).toContain(
      '\nTo book another time, or if you have any questions, just reply to this email or contact Yoga & Co: desk@yoga.example, +49 30 1, ask Mia\n',
    );
  });

  it('is after that to the booking page, if the provider has one, where the person can book again', () => {
    const page = 'https://booking.example/book/1';
    const content = compose({}, { link, page, mail: cancelled });
    expect(sectionsOf(content)).toContain(`Book another time:\n${page}`);
    expect(sectionsOf(content)).toContain(`Your booking:\n${link}`);
    expect(content.html).toContain(`href="${page}"`);
    expect(compose({}, { link, page }).text).not.toContain(page);
  });

  it('needs no contact', () => {
    const content = withLink({ movable: true }, confirmed, {});
    expect(sectionsOf(content)).toContain(
      'Possible until Mon, 1 Jul 2030, 00:30 (CEST).\nAfter that, please contact Yoga & Co directly.',
    );
  });

  it.each([
    [confirmed, 'To move or cancel, please contact Yoga & Co: '],
    [{ template: 'request-received' }, 'To move or cancel, please contact Yoga & Co: '],
    [cancelled, 'To book another time, or if you have any questions, please contact Yoga & Co: '],
  ] as const)('is replaced by a contact in a mail without it: $0.template', (mail, advice) => {
    const facts = { cancellableUntil, movable: true };
    const content = compose(facts, { mail, provider: { phone: '+49 30 1' } });
    expect(sectionsOf(content)).toContain(`${advice}+49 30 1`);
    expect(content.html).not.toContain('class="button"');
    expect(sectionsOf(compose(facts, { mail }))).toContain(`${advice.slice(0, -2)} directly.`);
    expect(compose(facts, { mail }).text).not.toContain('until');
  });

  it('is in the calendar file that adds the event, with what declining does not do', () => {
    const event = eventOf(withLink({ movable: true, message: 'Bring a mat' }).calendars[0]!.text);
    expect(event.component.getFirstPropertyValue('url')).toBe(link);
    expect(event.description).toBe(
      [
        'Bring a mat',
        `Move or cancel: ${link}\nPossible until Mon, 1 Jul 2030, 00:30 (CEST).\nDeclining the invitation in your calendar does not cancel the booking.`,
        'Yoga & Co\ndesk@yoga.example\n+49 30 1\nask Mia',
      ].join('\n\n'),
    );
    expect(withLink({}).text).toContain('Declining the invitation in your calendar does not cancel the booking.');
  });

  it('is not in the calendar file of a mail without it, or that removes the event', () => {
    for (const content of [compose({ cancellableUntil }, { provider: contact }), withLink({}, cancelled)]) {
      const event = eventOf(content.calendars[0]!.text);
      expect(event.component.getFirstPropertyValue('url')).toBeNull();
      expect(event.description).not.toMatch(/page\.example|until/);
    }
  });

  it.each(
    sampleMails('anna@example.com').filter(({ template }) => !/^(?:booking|request|appointment)-/.test(template)),
  )('is not in $template in $language', ({ content: { text, html, calendars } }) => {
    expect([text, html, ...calendars.map((each) => each.text)].join('\n')).not.toContain('/booking/');
  });
});

describe('what was before', () => {
  const moved: MailOfChange = { template: 'booking-moved', calendar: 'REQUEST' };
  const changed: MailOfChange = { template: 'appointment-changed', calendar: 'REQUEST' };
  const requestChanged: MailOfChange = { template: 'request-changed' };
  const room = (value: string): Location => ({ kind: { $case: 'text', value } });
  const then = { start: '2030-07-02T12:00:00Z', end: '2030-07-02T13:00:00Z' };
  const leadOf = ({ text }: MailContent) => text.split('\n')[3];

  it.each([
    [moved, then, 'New time: Tue 2 Jul, 14:00 – Yoga', 'The time has changed.'],
    [changed, then, 'New time: Tue 2 Jul, 14:00 – Yoga', 'The time has changed.'],
    [changed, { address: room('B') }, 'New place: Mon 1 Jul, 10:00 – Yoga', 'The place has changed.'],
    [
      moved,
      { ...then, address: room('B') },
      'New time: Tue 2 Jul, 14:00 – Yoga',
      'The time and the place have changed.',
    ],
    [
      changed,
      { description: 'Pilates' },
      'Changed: Mon 1 Jul, 10:00 – Pilates',
      'Only the title has changed. The time and the place are the same as before.',
    ],
    [changed, {}, 'Changed: Mon 1 Jul, 10:00 – Yoga', 'The time and the place are the same as in our last message.'],
    [
      requestChanged,
      then,
      'Request changed: Tue 2 Jul, 14:00 – Yoga',
      'The time has changed. It is not a booking yet. We will let you know as soon as it has been decided.',
    ],
  ] as const)('is what a mail says first: $0.template with $1', (mail, now, subject, lead) => {
    const content = compose({ address: room('A'), ...now, previous: { address: room('A') } }, { mail });
    expect(content.subject).toBe(subject);
    expect(leadOf(content)).toBe(lead);
  });

  it.each([
    ['en', 'Previously', 'Monday, 1 July 2030, 10:00–11:00'],
    ['de', 'Bisher', 'Montag, 1. Juli 2030, 10:00–11:00 Uhr'],
  ])('stands beside what is so now, as text and for those who hear it, in %s', (language, label, period) => {
    const previous = { description: 'Flow', address: room('Room 1\nDoor 2') };
    const { text, html } = compose(
      { language, description: 'Yoga', ...then, address: room('Room 3'), previous },
      { mail: moved },
    );
    const facts = text
      .replaceAll('\u2009', ' ')
      .split('\n')
      .filter((line) => line.startsWith('  '));
    expect(facts[1]).toBe(`  ${label}: Flow`);
    expect(facts[5]).toBe(`  ${label}: ${period}`);
    expect(facts.slice(6, 8)).toEqual(['  Room 3', `  ${label}: Room 1, Door 2`]);
    for (const value of ['Flow', period, 'Room 1, Door 2']) expect(html).toContain(`>${label}: <s>${value}</s></p>`);
  });

  it('is only what is different', () => {
    const { text, html } = compose({ address: room('B'), previous: { address: room('A') } }, { mail: changed });
    expect(text.match(/Previously: .*/g)).toEqual(['Previously: A']);
    expect(html.match(/<s>/g)).toHaveLength(1);
    expect(compose({ previous: {} }, { mail: changed }).text).not.toContain('Previously');
  });

  it('has the dates of both days, and its time zone if that is another one', () => {
    const previous = { start: '2030-10-26T20:00:00Z', end: '2030-10-27T02:30:00Z' };
    const { text } = compose({ start: '2030-12-01T20:00:00Z', end: '2030-12-01T21:00:00Z', previous }, { mail: moved });
    expect(text).toContain(
      '  Previously: Saturday, 26 October 2030 at 22:00 (UTC+2) – Sunday, 27 October 2030 at 03:30 (UTC+1) (Central European Summer Time – Central European Standard Time)\n',
    );
    const summer = compose(
      { start: '2030-12-01T20:00:00Z', end: '2030-12-01T21:00:00Z', previous: {} },
      { mail: moved },
    );
    expect(summer.text).toContain('11:00 (Central European Summer Time)\n');
  });

  it('is shown if there is no place any more, and never has a link to a call', () => {
    const left = compose({ previous: { address: room('Room 1') } }, { mail: changed });
    expect(left.text).toContain('  Previously: Room 1\n');
    expect(left.html).toMatch(/>Where<\/p>\s*<p [^>]*>Previously: <s>Room 1<\/s>/);
    const call = { description: 'Call https://meet.example/old', address: room('https://meet.example/old') };
    const content = compose({ description: 'Talk', address: room('Room 1'), previous: call }, { mail: changed });
    expect(leadOf(content)).toBe('The place has changed.');
    expect(content.text + content.html).not.toContain('meet.example/old');
    expect(content.text).toContain('  Previously: Call\n');
  });

  it('is not mentioned if it is not known', () => {
    const content = compose(then, { mail: moved });
    expect(content.subject).toBe('New time: Tue 2 Jul, 14:00 – Yoga');
    expect(leadOf(content)).toBe('Here are the new time and place. They replace what we sent you before.');
    expect(content.text).not.toContain('Previously');
  });
});

describe('a mail without what it can do without', () => {
  const own = { name: '\u202E', email: undefined };

  it('is in the name of the CRM if the provider has none', () => {
    const { text, from, subject } = compose({ description: '' }, { provider: own });
    expect(from.name).toBe('Studio');
    expect(subject).toBe('Your booking: Mon 1 Jul, 10:00 – Studio');
    expect(text).toContain('\n  Studio\n  Monday, 1 July 2030\n');
    expect(text).toContain('please contact Studio directly.\n');
  });

  it.each(['booking-confirmed', 'booking-cancelled', 'booking-moved'] as const)(
    'says that nobody reads replies if they go to the service: %s',
    (template) => {
      const note = 'This message was sent automatically. Please do not reply to it: replies do not reach Yoga & Co.\n';
      const mail = { template };
      expect(compose({}, { mail, crm: { senderAddress: '' } }).text).toContain(note);
      expect(compose({}, { mail, crm: { senderAddress: '' }, provider: { phone: '+49 30 1' } }).text).toContain(note);
      for (const reachable of [
        compose({}, { mail }),
        compose({}, { mail, crm: { senderAddress: '' }, provider: { email: 'desk@yoga.example' } }),
      ])
        expect(reachable.text).not.toContain('do not reply');
      expect(compose({}, { mail }).text).not.toContain('reply');
    },
  );

  it('says where the provider is described', () => {
    const provider = { impressum: 'Yoga & Co GmbH\nBerlin' };
    expect(compose({}, { provider }).text).toContain(
      'To move or cancel, please contact Yoga & Co directly. Their legal notice is at the end of this email.\n',
    );
  });

  it('has the year in its subject only if it is another one', () => {
    expect(compose({ start: '2031-01-02T08:00:00Z', end: '2031-01-02T09:00:00Z' }).subject).toBe(
      'Your booking: Thu, 2 Jan 2031, 09:00 – Yoga',
    );
  });
});

describe('the calendar file', () => {
  it.each([
    ['booking-confirmed', 'The attached file adds the appointment to your calendar.'],
    ['request-confirmed', 'The attached file adds the appointment to your calendar.'],
    ['booking-moved', 'The attached file updates your calendar.'],
    ['appointment-changed', 'The attached file updates your calendar.'],
  ] as const)('of %s is explained', (template, note) => {
    expect(compose({}, { mail: { template, calendar: 'REQUEST' } }).text).toContain(note);
  });
});

describe('a link to what has ended', () => {
  const call = 'https://meet.example/room';
  const facts = {
    description: `Call ${call}`,
    address: { kind: { $case: 'text' as const, value: `${call}\nwww.meet.example/phone` } },
  };
  const everything = ({ subject, text, html, calendars }: MailContent) =>
    [subject, text, html, ...calendars.map((each) => each.text.replaceAll('\r\n ', ''))].join('\n');

  it.each([
    { template: 'request-declined' },
    { template: 'request-withdrawn' },
    cancelled,
    { template: 'appointment-cancelled', calendar: 'CANCEL' },
  ] as const)('is nowhere in $template', (mail) => {
    const content = compose(facts, { mail });
    expect(everything(content)).not.toMatch(/meet\.example/);
    expect(content.subject).toMatch(/ – Call$/);
    expect(content.text).toContain('\n  Call\n');
  });

  it('is in the mails before', () => {
    const { text, html, calendars } = compose({ ...facts, address: { kind: { $case: 'text', value: call } } });
    expect(text).toContain(`\n  ${call}\n`);
    expect(html).toContain(`href="${call}"`);
    expect(eventOf(calendars[0]!.text).location).toBe(call);
  });

  it('is nowhere in the mail about the deletion of a customer', () => {
    const removal = sampleMails('anna@example.com').find(({ template }) => template === 'removed-by-deletion');
    expect(everything(removal!.content)).toContain('Beratungsgespräch');
    expect(everything(removal!.content)).not.toContain('meet.example');
  });
});

describe('numbers and addresses in an imprint', () => {
  it('may be recognised by a phone, but not dates, which the calendar file is for', () => {
    expect(compose({}).html).toContain('<meta name="format-detection" content="date=no">');
  });
});

describe('the brand of a CRM', () => {
  const brand = { logoUrl: 'https://cdn.example/logo.png?a=1&b=2', colour: '#0b7a4b', senderName: 'Acme "CRM" <x>' };
  const verification = (settings: Partial<Crm>) =>
    composeVerificationMail({
      verification: {
        token: 't',
        language: 'en',
        user: { id: 'u', email: 'anna@example.com', username: 'anna', lastName: 'Anna' },
      },
      crm: { ...crm, ...settings },
      senderAddress: 'no-reply@scheduling.example',
      publicUrl: 'https://booking.example',
    });

  it('is a logo with a text and a fixed size, and a background for white text', () => {
    for (const { html, text } of [compose({}, { crm: brand }), verification(brand)]) {
      expect(html.match(/<img [^>]*>/g)).toHaveLength(1);
      expect(html).toContain(
        '<img src="https://cdn.example/logo.png?a=1&amp;b=2" alt="Acme &quot;CRM&quot; &lt;x&gt;" width="180" height="60"',
      );
      expect(html).toMatch(
        /<td [^>]*bgcolor="#0b7a4b" style="[^"]*background-color:#0b7a4b;[^"]*color:#ffffff;[^"]*">(?:Yoga &amp; Co|Studio)<\/td>/,
      );
      expect(text).not.toMatch(/cdn\.example|#0b7a4b/);
    }
    expect(verification(brand).html).toMatch(/bgcolor="#0b7a4b" style="[^"]*"><a href="https:\/\/booking\.example/);
    expect(verification(brand).html).not.toContain('background-color:#2450c8');
  });

  it('is not in the mails of a CRM without one, which load nothing', () => {
    for (const { html } of [compose({}), verification({})]) expect(html).not.toMatch(/<img|src=|@import|url\(/);
  });

  it('is its imprint at the end of each mail, after that of the provider', () => {
    const imprint = 'Acme <b>GmbH</b>\nHRB 1';
    const { html, text } = compose({}, { provider: { impressum: 'Yoga GmbH\nBerlin' }, crm: { imprint } });
    expect(text).toContain(
      '\n-- \nYoga & Co\n\nYoga GmbH\nBerlin\n\nAcme <b>GmbH</b>\nHRB 1\n\nThis message was sent automatically.\n',
    );
    expect(html).toMatch(/>Yoga GmbH<br>Berlin<\/p>\s*<p [^>]*>Acme &lt;b&gt;GmbH&lt;\/b&gt;<br>HRB 1<\/p>/);
    expect(verification({ imprint }).text).toContain('\n-- \nStudio\n\nAcme <b>GmbH</b>\nHRB 1\n\n');
    expect(verification({ imprint }).html).toContain('>Acme &lt;b&gt;GmbH&lt;/b&gt;<br>HRB 1</p>');
  });
});

describe('the organizer of the calendar', () => {
  const organizerOf = (email: string | undefined, mail = confirmed) => {
    const organizer = eventOf(compose({}, { mail, provider: { email } }).calendars[0]!.text).component.getFirstProperty(
      'organizer',
    )!;
    return [organizer.getFirstValue(), organizer.getParameter('sent-by'), organizer.getParameter('cn')];
  };

  it.each([confirmed, cancelled])(
    'is the provider, who receives the answers, in whose name the sender acts: $template',
    (mail) => {
      expect(organizerOf('desk@yoga.example', mail)).toEqual([
        'mailto:desk@yoga.example',
        'mailto:hello@studio.example',
        'Yoga & Co',
      ]);
    },
  );

  it.each([undefined, 'HELLO@studio.example', 'anna@EXAMPLE.com'])(
    'is the sender if the address of the provider is %s',
    (email) => {
      expect(organizerOf(email)).toEqual(['mailto:hello@studio.example', undefined, 'Yoga & Co']);
    },
  );

  it('is named after the CRM if the name of the provider has nothing to show', () => {
    const { text } = compose({}, { provider: { name: '\u202E', email: 'desk@yoga.example' } }).calendars[0]!;
    expect(eventOf(text).component.getFirstProperty('organizer')!.getParameter('cn')).toBe('Studio');
  });
});

describe('the calendar of a mail', () => {
  it('is an alternative that clients act on, and a file', async () => {
    const { raw } = await write(compose({}));
    expect(raw).toMatch(/Content-Type: text\/calendar; charset=utf-8; method=REQUEST\r\n/);
    expect(raw).toMatch(/Content-Type: application\/ics; name=appointment\.ics\r\n/);
    const [alternative, file] = calendarsOf(await simpleParser(raw));
    expect(alternative!.text).toBe(file!.text);
  });

  it('says what, when, where and who', () => {
    const address: Location = {
      kind: {
        $case: 'address',
        value: { street: 'Lindenallee', number: '12', zip: '10115', city: 'Berlin', countryCode: 'DE' },
      },
    };
    const { text } = compose({ address, message: 'Bring a mat; and water, please' }, { version: 3 }).calendars[0]!;
    const event = eventOf(text);
    expect(event).toMatchObject({ uid: `${participationId}@participation.scheduling`, sequence: 3, summary: 'Yoga' });
    expect(event.location).toBe('Lindenallee 12, 10115 Berlin, Germany');
    expect(event.description).toContain('Bring a mat; and water, please');
    expect(event.startDate.zone.tzid).toBe('Europe/Berlin');
    expect(event.startDate.toString()).toBe('2030-07-01T10:00:00');
    expect(event.organizer).toBe('mailto:hello@studio.example');
    expect(event.attendees[0]!.getFirstValue()).toBe('MAILTO:anna@example.com');
    expect(event.attendees[0]!.getParameter('cn')).toBe('Anna');
    expect(event.component.getFirstPropertyValue('status')).toBe('CONFIRMED');
    expect(String(event.component.getFirstPropertyValue('dtstamp'))).toBe('2030-06-01T00:00:00Z');
    expect(readCalendar(text).getFirstSubcomponent('vtimezone')!.getFirstPropertyValue('tzid')).toBe('Europe/Berlin');
  });

  it.each([
    'Europe/Berlin',
    'Europe/London',
    'America/New_York',
    'Asia/Kolkata',
    'Australia/Lord_Howe',
    'Africa/Casablanca',
    'America/Sao_Paulo',
    'UTC',
  ])('has the right instant in %s', (timeZone) => {
    for (const start of interestingTimes(timeZone)) {
      const end = start.add({ hours: 1 });
      const { text } = compose({ start: start.toString(), end: end.toString() }, { provider: { timeZone } })
        .calendars[0]!;
      const period = periodOf(text);
      expect([period.start.getTime(), period.end.getTime()]).toEqual([start.epochMilliseconds, end.epochMilliseconds]);
    }
  });

  it('removes the booking again, in whatever order the mails are read', () => {
    const request = compose({}, { version: 1 }).calendars[0]!.text;
    const cancel = compose({}, { version: 2, mail: cancelled }).calendars[0]!.text;
    const other = compose({}, { version: 1 }).calendars[0]!.text.replaceAll(
      participationId,
      participationId.replace('a', 'b'),
    );
    for (const mails of [
      [request, other, cancel],
      [cancel, request, other, request],
    ]) {
      const diary = new Diary();
      for (const mail of mails) diary.receive(mail);
      expect(diary.entries.map(({ uid }) => uid)).toEqual([eventOf(other).uid]);
    }
    const diary = new Diary();
    diary.receive(request);
    expect(diary.entries).toHaveLength(1);
    expect(eventOf(cancel).component.getFirstPropertyValue('status')).toBe('CANCELLED');
  });

  it('shows the times in the person’s regional format, across midnight and a DST change', () => {
    const { text } = compose({ start: '2030-10-26T20:00:00Z', end: '2030-10-27T02:30:00Z' });
    expect(text).toContain(
      '  Saturday, 26 October 2030 at 22:00 (UTC+2) –\n  Sunday, 27 October 2030 at 03:30 (UTC+1)\n  (Central European Summer Time – Central European Standard Time)',
    );
  });

  it.each([
    ['en', 'Europe/Berlin', '10:00–11:00'],
    ['en', 'Atlantic/Canary', '09:00–10:00'],
    ['en-GB', 'America/New_York', '04:00–05:00'],
    ['en', 'America/New_York', '4:00 – 5:00 AM'],
    ['en-US', 'Europe/Berlin', '10:00 – 11:00 AM'],
  ])('has the clock of %s in %s', (language, timeZone, times) => {
    expect(compose({ language }, { provider: { timeZone } }).text.replaceAll(/\s/g, ' ')).toContain(` ${times} `);
  });
});

const nasty = [
  'Anna\r\nBcc: victim@example.com',
  'Anna\nContent-Type: text/html\n\n<script>alert(1)</script>',
  '<img src=x onerror=alert(1)> & "quoted" \'single\'',
  'x\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nUID:evil\r\nSUMMARY:evil',
  '\u202Egnp.exe\u202C \u2067abc',
  '👩‍👧 שלום مرحبا 日本語',
  '"; CN="evil":mailto:evil@example.com;X="',
  '<%= process.env %> ${1+1} {{x}} \\n \\, \\;',
  "back\\slash^n^'caret",
  '=?utf-8?B?QmNjOiB4QHkueg==?=',
  'a'.repeat(255),
  '\u0000\u0007\u001b[31m\u0085\u2028\u2029',
];

describe('texts of callers', () => {
  it.each(nasty)('are harmless everywhere: %j', async (text) => {
    const address: Location = { kind: { $case: 'text', value: text } };
    const content = compose(
      { name: text, description: text, message: text, address },
      { provider: { name: text, impressum: text, email: 'desk@example.com' } },
    );
    const { raw, envelope } = await write(content);
    const parsed = await simpleParser(raw);

    expect(envelope).toEqual({ from: 'hello@studio.example', to: ['anna@example.com'] });
    expect(parsed.to).toMatchObject({ value: [{ address: 'anna@example.com' }] });
    expect(parsed.bcc).toBeUndefined();
    expect(parsed.cc).toBeUndefined();
    // oxlint-disable-next-line no-control-regex -- that is what is looked for
    expect(content.subject).not.toMatch(/[\u0000-\u001F\u007F-\u009F\u2028-\u202E\u2066-\u2069]/);
    expect(parsed.subject).toBe(content.subject);
    expect([...parsed.headers.keys()].sort()).toEqual([
      'auto-submitted',
      'content-language',
      'content-type',
      'date',
      'from',
      'message-id',
      'mime-version',
      'reply-to',
      'subject',
      'to',
      'x-auto-response-suppress',
      'x-request-id',
    ]);
    expect(parsed.html).not.toMatch(/<script|<img|onerror=alert\(1\)>/);
    // oxlint-disable-next-line no-control-regex -- that is what is looked for
    expect(`${parsed.text}${String(parsed.html)}`).not.toMatch(/[\u0000-\u0008\u001B\u202A-\u202E\u2066-\u2069]/);

    const calendars = calendarsOf(parsed);
    expect(calendars).toHaveLength(2);
    for (const { text: calendar } of calendars) {
      const events = readCalendar(calendar).getAllSubcomponents('vevent');
      expect(events).toHaveLength(1);
      const event = new ICAL.Event(events[0]);
      expect(event.uid).toBe(`${participationId}@participation.scheduling`);
      expect(event.attendees.map((attendee) => attendee.getFirstValue())).toEqual(['MAILTO:anna@example.com']);
      expect(event.organizer).toBe('mailto:desk@example.com');
      expect(new Set(events[0]!.getAllProperties().map(({ name }) => name)).size).toBe(
        events[0]!.getAllProperties().length,
      );
    }
  });

  it.each([
    'a@example.com,victim@example.com',
    'a@example.com>\r\nRCPT TO:<victim@example.com',
    '"a" <victim@example.com>',
  ])('never turn one address into two: %j', async (address) => {
    const content = { ...compose({}), to: { name: 'Anna', address } };
    const { envelope } = await write(content);
    expect(envelope.to.length).toBeLessThanOrEqual(1);
  });

  it('keep right-to-left text and emoji', async () => {
    const parsed = await parse(compose({ name: 'שלום 👩‍👧', description: 'يوغا 🧘' }));
    expect(parsed.subject).toBe('Your booking: Mon 1 Jul, 10:00 – يوغا 🧘');
    expect(parsed.text).toContain('Hello שלום 👩‍👧,');
    expect(eventOf(calendarsOf(parsed)[0]!.text).summary).toBe('يوغا 🧘');
  });
});
