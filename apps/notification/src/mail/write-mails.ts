import type { GetParticipationMailDataResponse } from '@scheduling/contracts/calendar/v1';
import { databaseTime } from '@scheduling/delivery';
import { undefinedIfNotFound } from '@scheduling/errors';
import { callFunction, type Database } from '@scheduling/postgres';
import type { Logger } from '@scheduling/runtime';
import type { NotificationSchema } from '../db/schema.ts';
import type { NotificationDependencies } from '../dependencies.ts';
import { type MailOfChange, stateOfReminder } from './mail-of-change.ts';
import { type UnwrittenMailRow, unwrittenMailTable } from './mail-table.ts';
import { readMailData } from './read-mail-data.ts';
import { startWriting } from './start-writing.ts';
import { type MailIntent, requestOf } from './store-mail.ts';
import type { MailTimings } from './timings.ts';
import { writeParticipationMail } from './write-participation-mail.ts';

export interface MailWritingOptions {
  dependencies: NotificationDependencies;
  timings: MailTimings;
  logger: Logger;
}

/** Writes the mails about changes of participations. */
export function startMailWriting({ dependencies, timings, logger }: MailWritingOptions): AsyncDisposable {
  const { database } = dependencies;
  return startWriting<UnwrittenMailRow, MailIntent>({
    database,
    table: unwrittenMailTable,
    write: (row) => write(dependencies, row),
    store: (row, intent) => store(database, row, intent),
    timings,
    logger,
  });
}

/** Undefined if there is no such participation or address any more, or nothing to remind of. */
async function write(dependencies: NotificationDependencies, row: UnwrittenMailRow): Promise<MailIntent | undefined> {
  const { crmId, aboutId: participationId, version, actor, eventId, expiresAt } = row;
  const mailData = await undefinedIfNotFound(
    readMailData(dependencies, { crmId, participationId, version, template: row.template }),
  );
  if (mailData === undefined || isPointless(row, mailData)) return undefined;
  const mail: MailOfChange = {
    template: row.template as MailOfChange['template'],
    calendar: row.calendarMethod ?? undefined,
  };
  const intent = await writeParticipationMail(dependencies, { crmId, participationId, version, mail, actor, mailData });
  return intent && { ...intent, eventId, expiresAt: expiresAt ?? undefined };
}

/** Of a reminder: the booking or request has changed meanwhile, or it is too late. */
function isPointless(
  row: UnwrittenMailRow,
  { state, start }: Pick<GetParticipationMailDataResponse, 'state' | 'start'>,
): boolean {
  const { template, expiresAt } = row;
  const startsAt = row.startsAt ?? row.requestedStartsAt;
  if (startsAt === null) return false;
  const isAsReminded = state === stateOfReminder[template] && start!.getTime() === startsAt.getTime();
  return !isAsReminded || (expiresAt !== null && expiresAt <= databaseTime(row));
}

/** Without a mail, the row is removed only. */
async function store(
  { kysely }: Database<NotificationSchema>,
  { crmId, id, lease, customerId, createdAt }: UnwrittenMailRow,
  intent: MailIntent | undefined,
): Promise<void> {
  const request = { ...(intent && requestOf(intent)), crmId, id, lease, customerId, createdAt };
  await callFunction(kysely, { name: 'store_written_mail', request, locks: `${crmId} ${customerId}` });
}
