import { type CreateAppointmentRequest, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { runWithContext } from '@scheduling/runtime';
import { eventually } from '@scheduling/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { crmId, providerReference, startNotification, type NotificationUnderTest } from './notification-under-test.ts';

const { RESERVED, REQUESTED, BOOKED, CANCELED, DELETED } = ParticipationState;
let stack: NotificationUnderTest;
let names = 0;

beforeAll(async () => {
  stack = await startNotification();
  for (const [customerReference, language] of [
    ['anna', 'de-DE'],
    ['bill', 'en'],
    ['cleo', 'tlh'],
  ] as const) {
    const email = `${customerReference}@example.com`;
    await stack.customers.createCustomer({
      crmId,
      providerReference,
      customerReference,
      userName: customerReference,
      email,
      language,
    });
  }
  await stack.customers.createCustomer({
    crmId,
    providerReference,
    customerReference: 'nobody',
    userName: 'No address',
  });
}, 180_000);
afterAll(() => stack[Symbol.asyncDispose]());

/** A separate appointment, so that its mails can be identified by the subject. */
async function createAppointment(
  participations: { name: string; state: ParticipationState }[] = [],
  facts: Pick<CreateAppointmentRequest, 'price' | 'address'> = {},
): Promise<string> {
  const reference = `class-${(names += 1)}-`;
  await stack.appointments.createAppointment({
    crmId,
    providerReference,
    reference,
    start: '2030-07-01T10:00',
    end: '2030-07-01T11:00',
    capacity: 5,
    acceptBookings: true,
    resourceReference: 'room',
    productReference: 'yoga',
    description: reference,
    ...facts,
    participations: participations.map(({ name, state }) => ({
      reference: `${reference}${name}`,
      name,
      email: `${name}@example.com`,
      state,
    })),
  });
  return reference;
}

interface Flags {
  sendMails?: boolean;
  message?: string;
}

const create = (
  appointmentReference: string,
  customerReference: string,
  state: ParticipationState,
  { sendMails = true, message }: Flags = {},
) =>
  stack.participations.createParticipation({
    crmId,
    providerReference,
    reference: `${appointmentReference}${customerReference}`,
    appointmentReference,
    customerReference,
    state,
    ignoreCapacity: false,
    onDuplicateRaise: false,
    sendMails,
    message,
  });

const update = (
  appointmentReference: string,
  customerReference: string,
  state: ParticipationState,
  { sendMails = true, message }: Flags = {},
) =>
  stack.participations.updateParticipation({
    crmId,
    providerReference,
    participationReference: `${appointmentReference}${customerReference}`,
    state,
    ignoreCapacity: false,
    sendMails,
    message,
  });

const cancel = (appointmentReference: string, message?: string) =>
  stack.appointments.cancelAppointment({ crmId, providerReference, appointmentReference, message });

const remove = (value: string) =>
  stack.appointments.deleteAppointments({ crmId, providerReference, target: { $case: 'appointmentReference', value } });

/** The mails that arrived about an appointment, as `recipient beginning of the subject`, in order of arrival for each recipient. */
const arrived = (about: string): string[] =>
  stack.smtp.mails
    .filter(({ parsed }) => parsed.subject?.includes(about))
    .map(({ recipients, parsed }) => `${recipients.join()} ${parsed.subject!.replace(/: .*/, ': ')}`)
    .sort((one, other) => one.split('@')[0]!.localeCompare(other.split('@')[0]!));

/**
 * Adds a booking that is certain to send a mail after the test's own changes: once its mail has arrived, so have the
 * earlier ones.
 */
async function expectMails(about: string, expected: string[]): Promise<void> {
  const marker = await createAppointment();
  await create(marker, 'bill', BOOKED);
  await eventually(() => expect(arrived(marker)).toHaveLength(1));
  await eventually(() => expect(arrived(about)).toEqual(expected));
  await eventually(async () => expect(await unsentAbout(about)).toEqual([]));
  expect(arrived(about)).toEqual(expected);
}

const unsentAbout = (about: string) =>
  stack.database.kysely
    .selectFrom('mail')
    .select('id')
    .where(sql`content ->> 'subject'`, 'like', `%${about}%`)
    .execute();

const anna = 'anna@example.com';
const bill = 'bill@example.com';

interface Row {
  name: string;
  act: (about: string) => Promise<unknown>;
  mails: string[];
}

const rows: Row[] = [
  { name: 'create BOOKED', act: (about) => create(about, 'anna', BOOKED), mails: [`${anna} Ihre Buchung: `] },
  {
    name: 'create BOOKED for somebody who reads English',
    act: (about) => create(about, 'bill', BOOKED),
    mails: [`${bill} Your booking: `],
  },
  {
    name: 'create BOOKED for somebody whose language we do not speak: that of the CRM',
    act: (about) => create(about, 'cleo', BOOKED),
    mails: ['cleo@example.com Ihre Buchung: '],
  },
  { name: 'create BOOKED for somebody without an address', act: (about) => create(about, 'nobody', BOOKED), mails: [] },
  {
    name: 'create BOOKED, sendMails=false',
    act: (about) => create(about, 'anna', BOOKED, { sendMails: false }),
    mails: [],
  },
  { name: 'create REQUESTED', act: (about) => create(about, 'anna', REQUESTED), mails: [`${anna} Ihre Anfrage: `] },
  {
    name: 'create REQUESTED, sendMails=false',
    act: (about) => create(about, 'anna', REQUESTED, { sendMails: false }),
    mails: [],
  },
  { name: 'create RESERVED', act: (about) => create(about, 'anna', RESERVED), mails: [] },
  { name: 'create CANCELED', act: (about) => create(about, 'anna', CANCELED), mails: [] },
  { name: 'create DELETED', act: (about) => create(about, 'anna', DELETED), mails: [] },
  {
    name: 'RESERVED to BOOKED',
    act: async (about) => {
      await create(about, 'anna', RESERVED);
      await update(about, 'anna', BOOKED);
    },
    mails: [`${anna} Ihre Buchung: `],
  },
  {
    name: 'RESERVED to BOOKED by create with the same reference',
    act: async (about) => {
      await create(about, 'anna', RESERVED);
      await create(about, 'anna', BOOKED);
    },
    mails: [`${anna} Ihre Buchung: `],
  },
  {
    name: 'RESERVED to BOOKED, sendMails=false',
    act: async (about) => {
      await create(about, 'anna', RESERVED);
      await update(about, 'anna', BOOKED, { sendMails: false });
    },
    mails: [],
  },
  {
    name: 'RESERVED to CANCELED',
    act: async (about) => {
      await create(about, 'anna', RESERVED);
      await update(about, 'anna', CANCELED);
    },
    mails: [],
  },
  {
    name: 'REQUESTED to BOOKED',
    act: async (about) => {
      await create(about, 'bill', REQUESTED);
      await update(about, 'bill', BOOKED);
    },
    mails: [`${bill} Your request: `, `${bill} Confirmed: `],
  },
  {
    name: 'REQUESTED to CANCELED',
    act: async (about) => {
      await create(about, 'bill', REQUESTED);
      await update(about, 'bill', CANCELED);
    },
    mails: [`${bill} Your request: `, `${bill} Declined: `],
  },
  {
    name: 'BOOKED to CANCELED',
    act: async (about) => {
      await create(about, 'anna', BOOKED);
      await update(about, 'anna', CANCELED);
    },
    mails: [`${anna} Ihre Buchung: `, `${anna} Storniert: `],
  },
  {
    name: 'BOOKED to CANCELED, sendMails=false',
    act: async (about) => {
      await create(about, 'anna', BOOKED);
      await update(about, 'anna', CANCELED, { sendMails: false });
    },
    mails: [`${anna} Ihre Buchung: `],
  },
  {
    name: 'BOOKED to CANCELED, twice',
    act: async (about) => {
      await create(about, 'anna', BOOKED, { sendMails: false });
      await update(about, 'anna', CANCELED);
      await update(about, 'anna', CANCELED);
    },
    mails: [`${anna} Storniert: `],
  },
  {
    name: 'BOOKED to DELETED to CANCELED',
    act: async (about) => {
      await create(about, 'anna', BOOKED, { sendMails: false });
      await update(about, 'anna', DELETED);
      await update(about, 'anna', CANCELED);
    },
    mails: [],
  },
  {
    name: 'cancel the appointment: one mail for everybody whose participation was active',
    act: async (about) => {
      await create(about, 'anna', BOOKED, { sendMails: false });
      await create(about, 'bill', REQUESTED, { sendMails: false });
      await create(about, 'cleo', RESERVED);
      await cancel(about);
      await cancel(about);
    },
    mails: [`${anna} Abgesagt: `, `${bill} Cancelled: `, 'cleo@example.com Abgesagt: '],
  },
  {
    name: 'cancel the appointment of somebody who has cancelled, or was deleted',
    act: async (about) => {
      await create(about, 'anna', CANCELED);
      await create(about, 'bill', DELETED);
      await cancel(about);
    },
    mails: [],
  },
  {
    name: 'delete the appointment without notification',
    act: async (about) => {
      await create(about, 'anna', BOOKED, { sendMails: false });
      await remove(about);
    },
    mails: [],
  },
];

describe('which mail goes to whom', () => {
  it.concurrent.each(rows)('$name', async ({ act, mails }) => {
    const about = await createAppointment();
    await act(about);
    await expectMails(about, mails);
  });

  it('none for the participations of a new appointment, and one to each when it is cancelled', async () => {
    const about = await createAppointment([
      { name: 'dora', state: BOOKED },
      { name: 'emil', state: RESERVED },
      { name: 'finn', state: CANCELED },
    ]);
    await expectMails(about, []);
    await cancel(about);
    await expectMails(about, ['dora@example.com Abgesagt: ', 'emil@example.com Abgesagt: ']);
  });

  it('asks an invited person to confirm the address, and never writes to a derived one', async () => {
    const person = { email: 'ida@example.com', username: 'ida', lastName: 'Ida', language: 'en' };
    await stack.identity.addStaff({ crmId, providerReference, member: { $case: 'invitation', value: person } });
    await stack.identity.createUser({ crmId, reference: 'ida@crm', ...person });
    const { user } = await stack.identity.createUser({
      crmId,
      reference: 'ida-2@crm',
      email: person.email,
      username: 'ida-2',
      lastName: 'Ida',
    });
    expect(user!.email).not.toBe(person.email);
    const mails = () => stack.smtp.mails.filter(({ parsed }) => parsed.subject?.includes('confirm your email address'));
    await eventually(() => expect(mails()).toHaveLength(1));
    expect(mails()[0]!.recipients).toEqual([person.email]);
    const token = /https:\/\/booking\.example\/verify-email\?token=([\w-]+)/.exec(mails()[0]!.parsed.text!)![1]!;
    expect(await stack.identity.confirmVerification({ token })).toMatchObject({ language: 'en' });
  });
});

describe('a mail', () => {
  it('says who sends it, what for, when and where, and carries the request id', async () => {
    const about = await createAppointment();
    await runWithContext({ requestId: 'request-of-anna' }, () =>
      create(about, 'anna', BOOKED, { message: 'Bring a mat <b>\nand water' }),
    );
    await expectMails(about, [`${anna} Ihre Buchung: `]);
    const { parsed } = stack.smtp.mails.find((mail) => mail.parsed.subject?.includes(about))!;
    expect(parsed.from!.value).toEqual([{ name: 'Yoga & Co via Studio', address: 'hello@studio.example' }]);
    expect(parsed.replyTo!.value).toEqual([{ name: 'Yoga & Co', address: 'desk@yoga.example' }]);
    expect(parsed.to).toMatchObject({ value: [{ name: 'anna', address: anna }] });
    expect(parsed.headers.get('auto-submitted')).toBe('auto-generated');
    expect(parsed.headers.get('content-language')).toBe('de-DE');
    expect(parsed.headers.get('x-request-id')).toBe('request-of-anna');
    expect(parsed.text).toContain('Montag, 1. Juli 2030\n  10:00–11:00 Uhr\n  (Mitteleuropäische Sommerzeit)');
    expect(parsed.text).toContain('Nachricht von Yoga & Co:\n> Bring a mat <b>\n> and water');
    expect(parsed.text).toContain('desk@yoga.example\n+49 30 1\n\nYoga & Co GmbH\nBerlin');
    expect(parsed.html).toContain('Bring a mat &lt;b&gt;<br>and water');
    expect(parsed.html).not.toMatch(/<img|src=|@import|url\(/);
  });

  it('has the price and the reference of the booking, and when it is cancelled says through which CRM and has no link', async () => {
    const about = await createAppointment([], {
      price: { value: 49.9, currency: 'EUR' },
      address: { kind: { $case: 'text', value: 'https://meet.example/room' } },
    });
    const mail = (subject: string) =>
      stack.smtp.mails.find(
        ({ parsed }) => parsed.subject!.startsWith(`${subject}: `) && parsed.subject!.endsWith(about),
      )!.parsed;
    await runWithContext({ requestId: 'first', actor: 'crm:0123456789ab' }, async () => {
      await create(about, 'anna', BOOKED);
      await update(about, 'anna', CANCELED);
      await create(about, 'bill', BOOKED, { sendMails: false });
      await cancel(about);
    });
    await expectMails(about, [`${anna} Ihre Buchung: `, `${anna} Storniert: `, `${bill} Cancelled: `]);
    expect(mail('Ihre Buchung').text).toContain(
      `  https://meet.example/room\n  Preis: 49,90\u00A0€\n  Vorgangsnummer: ${about}anna\n`,
    );
    expect(mail('Storniert').text).toContain('Die Stornierung erfolgte über Studio und betrifft nur diese Buchung.');
    expect(mail('Cancelled').text).toContain(
      'The cancellation was made through Studio and applies to everyone taking part.',
    );
    for (const { text, html } of [mail('Storniert'), mail('Cancelled')])
      expect(`${text}${String(html)}`).not.toContain('meet.example');
  });

  it('shows the current logo, colour and imprint of the CRM', async () => {
    await stack.admin.updateCrm({
      crmId,
      logoUrl: 'https://cdn.example/logo.png',
      colour: '#0b7a4b',
      imprint: 'Acme GmbH\nHamburg',
    });
    const about = await createAppointment();
    await create(about, 'anna', BOOKED);
    await expectMails(about, [`${anna} Ihre Buchung: `]);
    const { parsed } = stack.smtp.mails.find((mail) => mail.parsed.subject?.includes(about))!;
    expect(parsed.html).toContain('<img src="https://cdn.example/logo.png" alt="Studio"');
    expect(parsed.html).toContain('bgcolor="#0b7a4b"');
    expect(parsed.text).toContain('Yoga & Co GmbH\nBerlin\n\nAcme GmbH\nHamburg\n');
    await stack.admin.updateCrm({ crmId, logoUrl: '', colour: '', imprint: '' });
  });

  it('is not kept once sent', async () => {
    const rest = stack.database.kysely.selectFrom('mail').select(['state', 'content', 'recipient']).distinct();
    await eventually(async () =>
      expect(await rest.execute()).toEqual([{ state: 'sent', content: null, recipient: null }]),
    );
  });
});
