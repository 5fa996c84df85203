import type { GetParticipationMailDataResponse } from '@scheduling/contracts/calendar/v1';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import { type ProviderMailTemplate, providerMailTemplates } from '@scheduling/runtime';
import { person as byPerson } from '../mail/mail-of-change.ts';
import { composeProviderList } from '../provider-mail/compose-provider-list.ts';
import { composeProviderMail } from '../provider-mail/compose-provider-mail.ts';
import { isAboutAppointment, isAboutRequest } from '../provider-mail/provider-mail-of-change.ts';

const customer = { name: 'Anna Beispiel', email: 'anna@example.com', mobile: '+49 171 2345678' };

const changes: Partial<Record<ProviderMailTemplate, { actor?: string; message?: string; note?: string }>> = {
  'provider-booked': { note: 'Kommt mit Kinderwagen.' },
  'provider-requested': { message: 'Bitte melden Sie sich, falls es früher geht.' },
  'provider-moved': { actor: byPerson },
  'provider-cancelled': { actor: byPerson, message: 'Ich bin leider krank.' },
  'provider-request-withdrawn': { actor: byPerson },
  'provider-request-waiting': { actor: 'service' },
};

const link = 'https://booking.example/decide/c2FtcGxl';

/** Every mail to a provider, with made-up data. */
export function sampleProviderMails(
  shared: { provider: Provider; crm: Crm; senderAddress: string; writtenAt: Date },
  email: string,
  { before, moved }: Record<'before' | 'moved', GetParticipationMailDataResponse>,
) {
  const { language } = shared.crm;
  const recipient = { id: shared.provider.id, email, name: shared.provider.name, contact: false };
  const dataOf = (template: ProviderMailTemplate) => (/moved|changed/.test(template) ? moved : before);
  return providerMailTemplates.map((template) => {
    if (template === 'provider-list') {
      const entries = providerMailTemplates
        .filter((each) => each !== template)
        .map((each) => ({
          template: each,
          mailData: dataOf(each),
          link: isAboutRequest(each) ? link : undefined,
          person: isAboutAppointment(each) ? undefined : customer,
        }));
      return { template, language, content: composeProviderList({ ...shared, recipient, entries, unlisted: 12 }) };
    }
    const { actor = 'crm:sample', message, note } = changes[template] ?? {};
    const mailData = dataOf(template);
    const person = isAboutAppointment(template) ? undefined : { ...customer, note };
    const mail = {
      ...shared,
      recipient,
      template,
      actor,
      mailData: { ...mailData, message },
      person,
      link: isAboutRequest(template) ? link : undefined,
    };
    return { template, language, content: composeProviderMail(mail) };
  });
}
