import type { ReceivedMail } from '@scheduling/testing';
import type { MailTemplate } from '@scheduling/runtime';

/** What English mails begin with. */
const templates: Record<string, MailTemplate> = {
  'Your booking is confirmed': 'booking-confirmed',
  'We have your request': 'request-received',
  'Your request is confirmed': 'request-confirmed',
  'Your request was declined': 'request-declined',
  'You have cancelled your request': 'request-withdrawn',
  'Your booking has been moved': 'booking-moved',
  'Your appointment has changed': 'appointment-changed',
  'Your request has changed': 'request-changed',
  'Your booking is cancelled': 'booking-cancelled',
  'This appointment will not take place': 'appointment-cancelled',
  'Your customer data was deleted': 'removed-by-deletion',
};

/** What an English mail about a participation says. */
export function readMail({ parsed, recipients }: ReceivedMail) {
  const text = parsed.text!;
  const calendar = parsed.attachments.find(({ contentType }) => contentType === 'text/calendar')?.content.toString();
  const facts = /\n\n( {2}[^]+?)\n\n/
    .exec(text)![1]!
    .split('\n')
    .map((line) => line.trim());
  const earlier = facts.flatMap((line) => /^Previously: (.*)$/.exec(line)?.[1] ?? []);
  const [title, ...others] = facts.filter((line) => !line.startsWith('Previously: '));
  return {
    template: templates[text.split('\n')[0]!]!,
    title: title!,
    /** When it takes place, as it would be said in a later mail. */
    now: others.slice(0, 2).join(others[0]!.endsWith('–') ? ' ' : ', '),
    /** What was different before. */
    earlier,
    recipient: recipients.join(),
    reference: /^ *Reference: (\S+)$/m.exec(text)?.[1],
    text,
    calendar,
  };
}
