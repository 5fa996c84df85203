import { ago, type CleanUp } from '@scheduling/postgres';
import { sql } from 'kysely';
import type { NotificationSchema } from './db/schema.ts';
import { quotaWindowMs } from './mail/timings.ts';

const minuteMs = 60 * 1_000;
const hourMs = 60 * minuteMs;

/** Everything that notification deletes by itself, and when. */
export const notificationCleanUps: CleanUp<NotificationSchema>[] = [
  // The remains of mails: ids and codes. They are kept for longer than any event can be redelivered.
  {
    table: 'mail',
    column: 'finishedAt',
    before: ago('30 days'),
    where: sql<boolean>`state IN ('sent', 'failed')`,
    everyMs: hourMs,
  },
  // What lists were about: ids.
  {
    table: 'providerNotice',
    column: 'createdAt',
    before: ago('30 days'),
    where: sql<boolean>`state = 'listed'`,
    everyMs: hourMs,
  },
  // Digests of providers' addresses, when the hour for which they are counted is over.
  {
    table: 'providerMailCount',
    column: 'until',
    before: sql<Date>`now()`,
    everyMs: minuteMs,
  },
  // What sandboxes keep (interface 11.2).
  { table: 'sandboxMail', column: 'sentAt', before: ago('7 days'), everyMs: hourMs },
  // The organizers of events that ended a month ago.
  { table: 'eventOrganizer', column: 'keepUntil', before: sql<Date>`now()`, everyMs: hourMs },
  // Digests of recipients, as soon as the period is over for which the quotas count them.
  {
    table: 'recentMail',
    column: 'sentAt',
    before: sql<Date>`date_bin(make_interval(secs => ${quotaWindowMs / 1_000}), now(), 'epoch')`,
    everyMs: minuteMs,
  },
];
