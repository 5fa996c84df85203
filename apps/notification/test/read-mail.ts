import type { ReceivedMail } from '@scheduling/testing';
import type { MailTemplate } from '@scheduling/runtime';

/** What the subjects of English mails begin with. */
const templates: Record<string, MailTemplate> = {
  'Your booking': 'booking-confirmed',
  'Your request': 'request-received',
  Confirmed: 'request-confirmed',
  Declined: 'request-declined',
  'Request cancelled': 'request-withdrawn',
  'New time': 'booking-moved',
  Changed: 'appointment-changed',
  'Your request has changed': 'request-changed',
  Cancelled: 'booking-cancelled',
  'Your data was deleted': 'removed-by-deletion',
};

/** What an English mail about a participation says. */
export function readMail({ parsed, recipients }: ReceivedMail) {
  const [begin, title] = parsed.subject!.split(': ') as [string, string];
  const calendar = parsed.attachments.find(({ contentType }) => contentType === 'text/calendar')?.content.toString();
  const isCalledOff = parsed.text!.includes('This appointment will not take place');
  return {
    template: isCalledOff ? 'appointment-cancelled' : templates[begin]!,
    title,
    recipient: recipients.join(),
    reference: /^ *Reference: (\S+)$/m.exec(parsed.text!)?.[1],
    text: parsed.text!,
    calendar,
  };
}
