import type { GetParticipationMailDataResponse } from '@scheduling/contracts/calendar/v1';
import type { Provider } from '@scheduling/contracts/identity/v1';
import { contactOf, formatMoment, singleLine } from '@scheduling/presentation';
import type { Language } from '../language/language.ts';
import type { Texts } from '../language/texts.ts';
import type { MailParts } from './layout.ts';
import { type MailOfChange, participationMailKinds } from './mail-of-change.ts';

/** What a mail about a participation says of the person's link. */
export interface LinkFacts {
  mail: MailOfChange;
  mailData: Pick<GetParticipationMailDataResponse, 'cancellableUntil' | 'movableUntil'>;
  provider: Provider;
  /** Absent: the mail has none. */
  link?: string | undefined;
  /** On which the person can book again. */
  page?: string | undefined;
}

/** The link, with what can be done by it and until when, if that is certain. */
export function actionOf(facts: LinkFacts, { texts, locale }: Language): MailParts['action'] {
  const { mail, mailData, provider, link: url } = facts;
  if (url === undefined) return undefined;
  const { view, cancel, change, until } = texts.link[participationMailKinds[mail.template].about];
  const deadline = deadlineOf(facts);
  if (deadline === undefined) return { label: view, url, notes: [] };
  const label = mailData.movableUntil ? change : cancel;
  return { label, url, notes: [until(formatMoment(deadline, provider.timeZone, locale))] };
}

/** By which the person says that they will be there, in a reminder, or books again, after the end of a booking. */
export function replyOf({ mail, link, page }: LinkFacts, { link: texts }: Texts): MailParts['reply'] {
  if (hasEnded(mail)) return page === undefined ? undefined : { label: texts.again, url: page };
  if (link === undefined || mail.template !== 'booking-reminder') return undefined;
  return { label: texts.attend, url: `${link}/attend` };
}

/** Whom to ask for what the link does not do. */
export function adviceOf(facts: LinkFacts, texts: Texts): Advice {
  return describeAdvice(facts.provider, adviceTextOf(facts, texts), texts);
}

export type Advice = NonNullable<MailParts['advice']>;

/** Whom to ask: a provider, or a CRM, whose contact options nobody knows. */
export function describeAdvice(
  { name: given, impressum, ...options }: Pick<Provider, 'name' | 'email' | 'phone' | 'mobile' | 'impressum'>,
  text: (whom: string) => string,
  { contact: texts }: Texts,
): Advice {
  const name = singleLine(given);
  const contact = contactOf(options);
  if (contact.length > 0) return { text: text(texts.byLines(name)), contact };
  return { text: [text(texts.directly(name)), impressum && texts.imprint].filter(Boolean).join(' '), contact };
}

function adviceTextOf(facts: LinkFacts, { contact }: Texts): (whom: string) => string {
  const { mail, mailData, provider } = facts;
  if (mail.template === 'request-unconfirmed') return contact.toBeAnswered;
  if (hasEnded(mail)) return provider.email === undefined ? contact.again : contact.againOrReply;
  if (deadlineOf(facts) === undefined) return contact.toChange;
  return mailData.movableUntil ? contact.later : contact.laterOrToMove;
}

/** Until when the person can cancel by the link; undefined if there is no link, or if it can no longer be done. */
function deadlineOf({ mail, mailData, link }: LinkFacts): Date | undefined {
  return link === undefined || hasEnded(mail) ? undefined : mailData.cancellableUntil;
}

function hasEnded({ template }: MailOfChange): boolean {
  return participationMailKinds[template].tone === 'ended';
}
