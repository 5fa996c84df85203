import type { GetParticipationMailDataResponse } from '@scheduling/contracts/calendar/v1';
import type { Database } from '@scheduling/postgres';
import type { MailTemplate } from '@scheduling/runtime';
import { sql } from 'kysely';
import type { NotificationSchema } from '../db/schema.ts';
import type { NotificationDependencies } from '../dependencies.ts';

export interface MailAbout {
  crmId: string;
  participationId: string;
  /** Of the participation, at the change. */
  version: number;
  template: string;
}

const templatesAboutChanges: readonly string[] = [
  'booking-moved',
  'appointment-changed',
  'request-changed',
] satisfies MailTemplate[];

/** The first mails about a booking. */
const announcements: readonly string[] = ['booking-confirmed', 'request-received'] satisfies MailTemplate[];

/**
 * What a mail about a change of a participation says. In a mail about another time or place, that includes what was
 * true before, if it is certain that the person was told of it. Rejects with `participation.not_found`.
 */
export async function readMailData(
  { database, participations }: NotificationDependencies,
  { template, ...key }: MailAbout,
): Promise<GetParticipationMailDataResponse> {
  if (!templatesAboutChanges.includes(template)) {
    const { previous: _told, ...mailData } = await participations.getParticipationMailData(key);
    return mailData;
  }
  const told = await findTold(database, key);
  const { previous, ...mailData } = await participations.getParticipationMailData({
    ...key,
    toldVersion: told.version,
  });
  return told.isCertain ? { ...mailData, previous } : mailData;
}

interface Told {
  /** Undefined: no earlier mail is recorded any more, so the person was told of all changes with a mail. */
  version?: number | undefined;
  isCertain: boolean;
}

/**
 * The version of which the person knows the time and place: that of the last mail that was sent. If the record of it
 * was deleted meanwhile, that before the first mail that was not sent. Nothing is certain while an earlier mail waits
 * that may be sent or not, if one may have arrived or not, and if the person was not told of the booking at all.
 */
async function findTold(
  { kysely }: Database<NotificationSchema>,
  { crmId, participationId, version }: Omit<MailAbout, 'template'>,
): Promise<Told> {
  const earlier = await kysely
    .selectFrom('mail')
    .select(['template', 'state', 'uncertain', 'version'])
    .select(sql<number>`coalesce(told_version, version)`.as('toldVersion'))
    .where('crmId', '=', crmId)
    .where('aboutId', '=', participationId)
    .where('version', '<', version)
    .orderBy('version')
    .execute();
  const lastSent = earlier.findLast(({ state }) => state === 'sent');
  const unsent = earlier.filter((mail) => mail.version > (lastSent?.version ?? 0));
  const isOpen = unsent.some(({ state, uncertain }) => state === 'pending' || uncertain);
  if (lastSent !== undefined) return { version: lastSent.toldVersion, isCertain: !isOpen };
  const [first] = unsent;
  if (first === undefined) return { isCertain: true };
  return { version: first.version - 1, isCertain: !isOpen && !announcements.includes(first.template) };
}
