import { waitUntil } from '@scheduling/embedded';
import { path } from '@scheduling/test-stack/client';
import { createAppointment, createParticipation, type Practice } from '@scheduling/test-stack/crm';

/** A mail about a participation as the API shows it. */
export interface ParticipationMail {
  id: string;
  template: string;
  state: 'PENDING' | 'SENT' | 'FAILED';
  error: string | null;
  attempts: number;
  createdAt: string;
  finishedAt: string | null;
}

/** The address of the mails about a participation. */
export const mailsAt = ({ at }: Pick<Practice, 'at'>, participation: string): string =>
  `${at}/participations${path`/${participation}`}/mails`;

/** The subject of a mail without the time, which is in the middle. */
export const withoutTime = ({ subject }: { subject: string }): string => subject.replace(/: .* – /, ': ');

/** The mails about a participation, as soon as there are so many and all of them were sent. */
export function sentMails(
  { crm, at }: Pick<Practice, 'crm' | 'at'>,
  participation: string,
  count = 1,
): Promise<ParticipationMail[]> {
  return waitUntil(
    async () => {
      const { body: mails } = await crm.get<ParticipationMail[]>(mailsAt({ at }, participation));
      return mails.length === count && mails.every(({ state }) => state === 'SENT') ? mails : undefined;
    },
    { what: `${count} mails about ${participation}`, timeoutMs: 60_000, intervalMs: 100 },
  );
}

/** More than the mails that may be sent to one address in an hour, twice, because the hour may end meanwhile. */
const maxBookings = 45;

/**
 * Books for one customer until a mail waits for the quota of the address, and returns that participation with its mail.
 */
export async function bookUntilMailWaits(
  practice: Practice,
): Promise<{ participation: string; mail: ParticipationMail }> {
  const appointment = await createAppointment(practice, { capacity: 1_000 });
  for (let bookings = 0; bookings < maxBookings; bookings += 1) {
    const participation = await createParticipation(practice, appointment);
    const mail = await waitUntil(
      async () => {
        const [found] = (await practice.crm.get<ParticipationMail[]>(mailsAt(practice, participation))).body;
        return found !== undefined && (found.state === 'SENT' || found.error === 'recipient-quota') ? found : undefined;
      },
      { what: `the mail about ${participation}`, timeoutMs: 60_000, intervalMs: 50 },
    );
    if (mail.state === 'PENDING') return { participation, mail };
  }
  throw new Error(`no mail waits after ${maxBookings} bookings`);
}
