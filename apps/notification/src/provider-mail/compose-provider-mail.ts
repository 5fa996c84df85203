import type { GetParticipationMailDataResponse } from '@scheduling/contracts/calendar/v1';
import type { Crm, Provider, ProviderRecipient } from '@scheduling/contracts/identity/v1';
import {
  contactOf,
  formatMoment,
  formatPrice,
  formatStart,
  multiLine,
  singleLine,
  titleOf,
} from '@scheduling/presentation';
import type { ProviderMailTemplate } from '@scheduling/runtime';
import type { MailContent } from '../db/schema.ts';
import { chooseLanguage, type Language } from '../language/language.ts';
import type { Texts } from '../language/texts.ts';
import { brandOf, imprintsOf } from '../mail/brand.ts';
import { describeAppointment, type Detail } from '../mail/describe-appointment.ts';
import { earlierOf } from '../mail/describe-changes.ts';
import { type MailParts, renderHtml, renderText, type Tone } from '../mail/layout.ts';
import { senderNameOf, senderOf } from '../mail/mail-addresses.ts';
import { person as byPerson } from '../mail/mail-of-change.ts';

/** Who has booked, as of now. */
export interface Person {
  name: string;
  email?: string | undefined;
  mobile?: string | undefined;
  note?: string | undefined;
}

/** Who gets a mail of a provider, and who sends it. */
export interface ProviderMailParties {
  recipient: ProviderRecipient;
  provider: Provider;
  crm: Crm;
  senderAddress: string;
  writtenAt: Date;
}

export interface ProviderMail extends ProviderMailParties {
  template: ProviderMailTemplate;
  /** Who caused the change, as events say it. */
  actor: string;
  mailData: GetParticipationMailDataResponse;
  /** Undefined if it is about a whole appointment. */
  person: Person | undefined;
  /** By which the recipient decides a request. */
  link?: string | undefined;
}

export const providerMailTones: Record<ProviderMailTemplate, Tone> = {
  'provider-booked': 'good',
  'provider-requested': 'waiting',
  'provider-moved': 'good',
  'provider-request-moved': 'waiting',
  'provider-cancelled': 'ended',
  'provider-request-withdrawn': 'ended',
  'provider-request-waiting': 'waiting',
  'provider-appointment-changed': 'good',
  'provider-appointment-cancelled': 'ended',
  'provider-list': 'neutral',
  'provider-day': 'neutral',
};

/**
 * The mail to a provider about one of its bookings, in the recipient's language or else the CRM's; times are in the
 * provider's zone. A reply to it goes to the person.
 */
export function composeProviderMail(mail: ProviderMail): MailContent {
  const language = languageOf(mail);
  return contentOf(mail, language, {
    replyTo: replyAddressOf(mail.person),
    parts: partsOf(mail, language),
  });
}

/** A server without SMTPUTF8 would refuse a mail with another one, which its recipient can do without. */
function replyAddressOf(person: Person | undefined): MailContent['replyTo'] {
  const isAscii = /^[\x21-\x7e]+@/.test(person?.email ?? '');
  return isAscii ? { name: singleLine(person!.name), address: person!.email! } : undefined;
}

export function languageOf({ recipient, crm }: ProviderMailParties): Language {
  return chooseLanguage(recipient.language, crm.language);
}

/** The mail of the parts that mails to providers do not share. */
export function contentOf(
  { recipient, provider, crm, senderAddress }: ProviderMailParties,
  { texts, locale }: Language,
  { replyTo, parts }: { replyTo?: MailContent['replyTo']; parts: Omit<MailParts, SharedParts> },
): MailContent {
  const name = singleLine(recipient.name);
  const all: MailParts = {
    ...parts,
    locale,
    brand: brandOf(crm),
    name: singleLine(provider.name),
    greeting: texts.greeting(name),
    contact: [],
    reason: texts.provider.reason(singleLine(provider.name), senderNameOf(crm)),
    imprints: imprintsOf(crm),
    automatic: texts.automatic,
    texts,
  };
  return {
    from: senderOf(crm, senderAddress),
    replyTo,
    to: { name, address: recipient.email },
    language: locale,
    subject: all.subject,
    text: renderText(all),
    html: renderHtml(all),
    calendars: [],
  };
}

type SharedParts = 'locale' | 'brand' | 'name' | 'greeting' | 'contact' | 'reason' | 'imprints' | 'automatic' | 'texts';

function partsOf(mail: ProviderMail, { texts, locale }: Language): Omit<MailParts, SharedParts> {
  const { template, mailData, person, provider, link, writtenAt } = mail;
  const { subject, ...mailTexts } = texts.mails[template];
  const start = formatMoment(mailData.start!, provider.timeZone, locale);
  // Of a request that waits, nobody knows any more who has written it.
  const message = template === 'provider-request-waiting' ? '' : multiLine(mailData.message ?? '');
  return {
    tone: providerMailTones[template],
    subject: subject(titleOf(mailData, provider), formatStart(mailData.start!, writtenAt, provider.timeZone, locale)),
    ...mailTexts,
    cause: causeOf(mail, texts),
    facts: person && describePerson(person, texts),
    appointment: describeAppointment(mailData, provider, locale, {
      details: detailsOf(mail, { texts, locale }),
      earlier: earlierOf(mailData, provider, locale, texts),
    }),
    message: message ? { label: labelOf(mail, texts), lines: message.split('\n') } : undefined,
    action:
      link === undefined
        ? undefined
        : { label: texts.provider.decide, url: link, notes: [texts.provider.decideUntil(start)] },
  };
}

/** A CRM acts for the provider as well as for the customer, so all that is known is through which CRM. */
export function causeOf(
  { actor, crm, template }: Pick<ProviderMail, 'actor' | 'crm' | 'template'>,
  { provider }: Texts,
): string | undefined {
  // Links change what is booked: only the page makes bookings.
  if (actor === byPerson) return isNew(template) ? provider.onPage : provider.byPerson;
  return actor.startsWith('crm:') ? provider.throughCrm(senderNameOf(crm)) : undefined;
}

function isNew(template: ProviderMail['template']): boolean {
  return template === 'provider-booked' || template === 'provider-requested';
}

function describePerson({ name, note, ...contact }: Person, { provider: { labels } }: Texts): Detail[] {
  const lines = contactOf(contact);
  return [
    { label: labels.name, value: singleLine(name) },
    ...lines.map(({ text, link }) => ({
      label: link?.startsWith('mailto:') ? labels.email : labels.phone,
      value: text,
      link,
    })),
    ...(note ? [{ label: labels.note, value: singleLine(note) }] : []),
  ];
}

/** A reference is that of one participant. */
function detailsOf({ mailData, person }: ProviderMail, { texts: { labels }, locale }: Language): Detail[] {
  const { price, reference } = mailData;
  const shown = price && price.value > 0 ? [{ label: labels.price, value: formatPrice(price, locale) }] : [];
  return person === undefined ? shown : [...shown, { label: labels.reference, value: singleLine(reference) }];
}

/** A message is to the person, unless the person has sent it. */
function labelOf({ actor, person }: ProviderMail, { provider: { labels } }: Texts): string {
  return actor === byPerson ? labels.message(singleLine(person?.name ?? '')) : labels.messageToPerson;
}
