import type { GetParticipationMailDataResponse } from '@scheduling/contracts/calendar/v1';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import type { MailTemplate, ParticipationMailTemplate } from '@scheduling/runtime';
import type { MailContent } from '../db/schema.ts';
import { languages } from '../language/language.ts';
import { composePageMail } from '../mail/compose-page-mail.ts';
import { composeParticipationMail } from '../mail/compose-participation-mail.ts';
import { composeRemovalMail } from '../mail/compose-removal-mail.ts';
import { composeVerificationMail } from '../mail/compose-verification-mail.ts';
import { organizerOf, senderOf } from '../mail/mail-addresses.ts';
import { participationMailKinds } from '../mail/mail-of-change.ts';
import { sampleProviderMails } from './sample-provider-mails.ts';

export interface SampleMail {
  template: MailTemplate;
  language: string;
  content: MailContent;
  /** The one that the person received before, about the same thing. */
  before?: MailContent | undefined;
}

const participationId = '01990000-0000-7000-8000-000000000001';
const writtenAt = new Date('2027-06-01T08:00:00Z');
const senderAddress = 'hello@studio.example';

const provider: Provider = {
  id: '01990000-0000-7000-8000-000000000002',
  reference: 'studio@sample',
  ownerReference: 'owner@sample',
  accountReference: 'account@sample',
  name: 'Studio Sonnengruß & Söhne',
  email: 'kontakt@studio.example',
  phone: '+49 30 1234567',
  impressum: 'Studio Sonnengruß GmbH\nLindenallee 12, 10115 Berlin\nAG Charlottenburg HRB 12345, USt-IdNr. DE123456789',
  timeZone: 'Europe/Berlin',
  version: 1,
};

const appointment = {
  description: 'Yoga am Morgen – Vinyasa für Fortgeschrittene',
  start: new Date('2027-07-05T08:00:00Z'),
  end: new Date('2027-07-05T09:30:00Z'),
  address: {
    kind: {
      $case: 'address' as const,
      value: { street: 'Lindenallee', number: '12', zip: '10115', city: 'Berlin', countryCode: 'DE' },
    },
  },
};

const videoCall = {
  description: 'Beratungsgespräch',
  start: new Date('2027-07-12T14:00:00Z'),
  end: new Date('2027-07-12T14:30:00Z'),
  address: { kind: { $case: 'text' as const, value: 'https://meet.example/studio-sonnengruss' } },
};

/** The same at another time, and at another place. */
const laterAppointment = {
  ...appointment,
  start: new Date('2027-07-05T16:00:00Z'),
  end: new Date('2027-07-05T17:30:00Z'),
};
const elsewhere = {
  ...laterAppointment,
  address: { kind: { $case: 'text' as const, value: 'Stadtpark, große Wiese\n(bei Regen im Studio)' } },
};
const renamed = { ...elsewhere, description: 'Yoga am Abend' };

interface Sample {
  template: ParticipationMailTemplate;
  message?: string;
  at?: Pick<GetParticipationMailDataResponse, 'description' | 'start' | 'end' | 'address'> & { start: Date };
  actor?: string;
  /** What the link does. Absent: it moves and cancels. */
  link?: 'cancels' | 'shows';
}

/** The mails that a person receives about a booking, or a request, one after the other. */
const lives: Sample[][] = [
  [
    { template: 'booking-confirmed', message: 'Bitte eine Matte mitbringen. 🧘\nWir öffnen 15 Minuten vorher.' },
    { template: 'appointment-changed', at: laterAppointment, message: 'Die Heizung wird am Vormittag gewartet.' },
    { template: 'appointment-changed', at: elsewhere },
    { template: 'appointment-changed', at: renamed, link: 'shows' },
    { template: 'booking-moved', at: videoCall },
    { template: 'booking-reminder', at: videoCall },
    { template: 'booking-cancelled', at: videoCall },
  ],
  [
    { template: 'request-received' },
    { template: 'request-changed', at: elsewhere, link: 'cancels' },
    { template: 'request-confirmed', at: elsewhere },
    { template: 'appointment-cancelled', at: elsewhere, message: 'Unsere Lehrerin ist erkrankt – es tut uns leid!' },
  ],
  [
    { template: 'request-received' },
    { template: 'request-unconfirmed' },
    { template: 'request-declined', message: 'An diesem Tag sind wir leider ausgebucht.' },
  ],
  [
    { template: 'request-received' },
    { template: 'request-withdrawn', message: 'Ich bin leider krank.', actor: 'person' },
  ],
];

/** With nothing that an appointment, a provider and a CRM can do without. */
const bareLife: Sample[] = [
  {
    template: 'booking-confirmed',
    at: { start: appointment.start, end: appointment.end, description: undefined, address: undefined },
  },
  {
    template: 'booking-moved',
    at: { start: laterAppointment.start, end: laterAppointment.end, description: undefined, address: undefined },
  },
  {
    template: 'booking-cancelled',
    at: { start: laterAppointment.start, end: laterAppointment.end, description: undefined, address: undefined },
  },
];

/**
 * Every mail in every language, with made-up data, in the order in which persons receive them: of a CRM without a brand,
 * whose mails have no link, of one with a brand and links, and of one of which nothing is known that need not be.
 */
export function sampleMails(recipient: string): SampleMail[] {
  return [...languages.keys()].flatMap((language) => {
    const crm: Crm = {
      crmId: 'sample',
      name: 'Studio-Verwaltung',
      language,
      timeZone: 'Europe/Berlin',
      senderName: 'Studio-Verwaltung',
      senderAddress,
      notifyOnCustomerDeletion: true,
      sandbox: false,
      imprint: 'Studio-Verwaltung GmbH, Hafenstraße 3, 20457 Hamburg\nAG Hamburg HRB 54321, USt-IdNr. DE987654321',
    };
    const branded: Crm = { ...crm, logoUrl: 'https://booking.example/logo.png', colour: '#0b5d66' };
    const { email: _email, phone: _phone, impressum: _impressum, ...bareProvider } = provider;
    const { imprint: _imprint, ...bareCrm } = crm;
    const link = 'https://booking.example/booking/c2FtcGxl';
    return [
      ...samplesOf({ crm, provider, address: recipient }),
      ...samplesOf({ crm: branded, provider, address: recipient, link }),
      ...aboutLife({ crm: { ...bareCrm, senderAddress: '' }, provider: bareProvider, address: recipient }, bareLife),
    ];
  });
}

interface Situation {
  crm: Crm;
  provider: Provider;
  /** Of the recipient. */
  address: string;
  link?: string;
}

function samplesOf(situation: Situation): SampleMail[] {
  const { crm, address } = situation;
  const { language } = crm;
  const removal = composeRemovalMail({
    ...sharedOf(situation),
    notice: { providerId: provider.id, ...recipientOf(situation) },
    removed: { participationId, version: 2, ...videoCall, neverInvited: false },
  });
  const user = {
    id: provider.id,
    email: address,
    username: 'anna',
    lastName: 'Beispiel',
    firstName: 'Anna',
  };
  const verification = composeVerificationMail({
    verification: { token: 'c2FtcGxlLXRva2VuLW9mLW5vLXVzZS1hdC1hbGw', user, language },
    crm,
    senderAddress,
    publicUrl: 'https://booking.example',
  });
  const mails = lives.flatMap((life) => aboutLife(situation, life));
  const before = mails.find(({ template }) => template === 'booking-reminder')?.content;
  return [
    ...mails,
    { template: 'removed-by-deletion', language, content: removal, before },
    { template: 'email-verification', language, content: verification },
    ...pageSamplesOf(situation),
    ...sampleProviderMails({ provider, crm, senderAddress, writtenAt }, address, {
      before: mailDataOf({ template: 'booking-confirmed' }, undefined),
      moved: mailDataOf({ template: 'booking-moved', at: laterAppointment }, { template: 'booking-confirmed' }),
    }),
  ];
}

/** About what was booked, and requested, on the page of the provider. */
function pageSamplesOf(situation: Situation): SampleMail[] {
  const { crm } = situation;
  return (['booking-verification', 'booking-limit'] as const).flatMap((template) =>
    [false, true].map((requested) => {
      const mailData = {
        ...appointment,
        ...recipientOf(situation),
        providerId: provider.id,
        timeZone: provider.timeZone,
        price: { value: 18.5, currency: 'EUR' },
        requested,
        token: template === 'booking-verification' ? 'c2FtcGxlLXRva2VuLW9mLW5vLXVzZS1hdC1hbGw' : undefined,
        maxPerPerson: 3,
        expiresAt: new Date(writtenAt.getTime() + 30 * 60_000),
      };
      const pageUrl = 'https://booking.example';
      const content = composePageMail({ mailData, provider, crm, senderAddress, pageUrl, writtenAt });
      return { template, language: crm.language, content };
    }),
  );
}

/** Each with the one before. */
function aboutLife(situation: Situation, life: Sample[]): SampleMail[] {
  const { crm, link } = situation;
  const mails: SampleMail[] = [];
  for (const [index, sample] of life.entries()) {
    const { template, actor = 'crm:sample' } = sample;
    const content = composeParticipationMail({
      ...sharedOf(situation),
      participationId,
      version: index + 1,
      mail: { template, calendar: participationMailKinds[template].calendar },
      actor,
      recipient: recipientOf(situation),
      mailData: mailDataOf(sample, life[index - 1]),
      link,
      page: 'https://booking.example/book/studio',
    });
    mails.push({ template, language: crm.language, content, before: mails.at(-1)?.content });
  }
  return mails;
}

function sharedOf({ crm, provider, address }: Situation) {
  const organizer = organizerOf(provider, senderOf(crm, senderAddress), { attendeeAddress: address, known: undefined });
  return { provider, crm, senderAddress, writtenAt, organizer };
}

function recipientOf({ crm: { language }, address }: Situation) {
  return { name: 'Anna Beispiel', email: address, language };
}

function mailDataOf(
  { template, message, at = appointment, link }: Sample,
  before: Sample | undefined,
): GetParticipationMailDataResponse {
  const isChange = template === 'booking-moved' || template.endsWith('-changed');
  const deadline = new Date(at.start.getTime() - 24 * 3_600_000);
  return {
    ...at,
    currentVersion: 1,
    state: 'PARTICIPATION_STATE_BOOKED',
    reference: 'R-2027-0815',
    message,
    providerId: provider.id,
    price: { value: 18.5, currency: 'EUR' },
    selfService: true,
    cancellableUntil: link === 'shows' ? undefined : deadline,
    movableUntil: link === undefined ? deadline : undefined,
    previous: isChange ? (before?.at ?? appointment) : undefined,
  };
}
