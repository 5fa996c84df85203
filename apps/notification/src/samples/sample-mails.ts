import type { GetParticipationMailDataResponse } from '@scheduling/contracts/calendar/v1';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import { type MailTemplate, type ParticipationMailTemplate, participationMailTemplates } from '@scheduling/runtime';
import type { MailContent } from '../db/schema.ts';
import { languages } from '../language/language.ts';
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

interface Sample {
  message?: string;
  at?: typeof appointment | typeof videoCall;
  actor?: string;
  /** What the link does. Absent: it moves and cancels. */
  link?: 'cancels' | 'shows';
}

const changes: Record<ParticipationMailTemplate, Sample> = {
  'booking-confirmed': { message: 'Bitte eine Matte mitbringen. 🧘\nWir öffnen 15 Minuten vorher.' },
  'request-received': {},
  'request-confirmed': { at: videoCall },
  'request-declined': { message: 'An diesem Tag sind wir leider ausgebucht.' },
  'request-withdrawn': { message: 'Ich bin leider krank.', actor: 'person' },
  'booking-moved': { at: videoCall },
  'appointment-changed': { link: 'shows' },
  'request-changed': { link: 'cancels' },
  'booking-cancelled': { at: videoCall },
  'booking-reminder': { at: videoCall },
  'appointment-cancelled': { message: 'Unsere Lehrerin ist erkrankt – es tut uns leid!' },
};

/**
 * Every mail in every language, with made-up data, of a CRM without a brand, whose mails have no link, and of one with a
 * brand and links.
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
    return [...samplesOf(crm, recipient), ...samplesOf(branded, recipient, 'https://booking.example/booking/c2FtcGxl')];
  });
}

function samplesOf(crm: Crm, address: string, link?: string): SampleMail[] {
  const { language } = crm;
  const shared = {
    provider,
    crm,
    senderAddress,
    writtenAt,
    organizer: organizerOf(provider, senderOf(crm, senderAddress), { attendeeAddress: address, known: undefined }),
  };
  const recipient = { name: 'Anna Beispiel', email: address, language };
  const aboutChanges = participationMailTemplates.map((template) => ({
    template,
    content: composeParticipationMail({
      ...shared,
      participationId,
      version: 1,
      mail: { template, calendar: participationMailKinds[template].calendar },
      actor: changes[template].actor ?? 'crm:sample',
      recipient,
      mailData: mailDataOf(changes[template]),
      link,
    }),
  }));
  const removal = composeRemovalMail({
    ...shared,
    notice: { providerId: provider.id, ...recipient },
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
  const samples: Omit<SampleMail, 'language'>[] = [
    ...aboutChanges,
    { template: 'removed-by-deletion', content: removal },
    { template: 'email-verification', content: verification },
  ];
  const toProvider = sampleProviderMails({ provider, crm, senderAddress }, address, mailDataOf({}));
  return [...samples.map((sample) => ({ ...sample, language })), ...toProvider];
}

function mailDataOf({ message, at = appointment, link }: Sample): GetParticipationMailDataResponse {
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
  };
}
