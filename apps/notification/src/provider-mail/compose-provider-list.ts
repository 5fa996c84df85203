import { contactOf, formatMoment, formatStart, singleLine, titleOf } from '@scheduling/presentation';
import type { MailContent } from '../db/schema.ts';
import type { ListedBooking } from '../mail/layout.ts';
import { contentOf, languageOf, type ProviderMail, type ProviderMailParties } from './compose-provider-mail.ts';

/** What happened to a booking. */
export type ListEntry = Pick<ProviderMail, 'template' | 'mailData' | 'person' | 'link'>;

export interface ProviderList extends ProviderMailParties {
  /** In the order in which they are shown. */
  entries: ListEntry[];
  /** How many more there are. */
  unlisted: number;
}

/** The mail to a provider with all that happened in an hour and was not told by a mail of its own. */
export function composeProviderList(list: ProviderList): MailContent {
  const { entries, unlisted, provider, writtenAt } = list;
  const language = languageOf(list);
  const { texts, locale } = language;
  const { subject, ...mailTexts } = texts.mails['provider-list'];
  const rows = entries.map(({ template, mailData, person, link }): ListedBooking => {
    return {
      status: texts.mails[template].status,
      when: formatMoment(mailData.start!, provider.timeZone, locale),
      title: titleOf(mailData, provider),
      action: link === undefined ? undefined : { label: texts.provider.decide, url: link },
      who: person === undefined ? [] : [[{ text: singleLine(person.name), link: undefined }, ...contactOf(person)]],
    };
  });
  return contentOf(list, language, {
    parts: {
      tone: 'neutral',
      subject: subject(singleLine(provider.name), formatStart(writtenAt, writtenAt, provider.timeZone, locale)),
      ...mailTexts,
      list: { rows, more: unlisted > 0 ? texts.provider.unlisted(unlisted) : undefined },
    },
  });
}
