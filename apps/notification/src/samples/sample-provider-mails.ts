import { type GetParticipationMailDataResponse, ParticipationState } from '@scheduling/contracts/calendar/v1';
import type { Crm, Provider } from '@scheduling/contracts/identity/v1';
import { type ProviderMailTemplate, providerMailTemplates } from '@scheduling/runtime';
import { person as byPerson } from '../mail/mail-of-change.ts';
import { composeDailyList } from '../provider-mail/compose-daily-list.ts';
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
        .filter((each) => each !== template && each !== 'provider-day')
        .map((each) => ({
          template: each,
          mailData: dataOf(each),
          link: isAboutRequest(each) ? link : undefined,
          person: isAboutAppointment(each) ? undefined : customer,
        }));
      return { template, language, content: composeProviderList({ ...shared, recipient, entries, unlisted: 12 }) };
    }
    if (template === 'provider-day')
      return { template, language, content: composeDailyList({ ...shared, recipient, ...sampleDay([moved, before]) }) };
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

/** Appointments of one day, the first of them with a booking and a request. */
function sampleDay(appointments: GetParticipationMailDataResponse[]) {
  const persons = [
    { ...customer, state: ParticipationState.BOOKED },
    { name: 'Jonas Muster', email: 'jonas@example.com', state: ParticipationState.REQUESTED },
  ].map((person, index) => ({ ...person, customerId: String(index), participationId: String(index) }));
  return {
    date: '2027-07-05',
    appointments: appointments
      .toSorted((one, other) => one.start!.getTime() - other.start!.getTime())
      .map((appointment, index) => ({ ...appointment, participations: index === 0 ? persons : [] })),
    booked: 1,
    requested: 1,
    unlisted: 0,
  };
}
