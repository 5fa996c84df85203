import { DomainError } from '@scheduling/errors';
import { isUniqueViolation, transactOnce } from '@scheduling/postgres';
import type { Selectable, Transaction } from 'kysely';
import { randomUUID } from 'node:crypto';
import type { MailTable, NotificationSchema } from '../db/schema.ts';
import type { NotificationDependencies } from '../dependencies.ts';
import type { MailOfChange } from './mail-of-change.ts';
import {
  describeMail,
  findParticipationId,
  type ParticipationKey,
  type ParticipationMail,
  requireMail,
  selectParticipationMails,
} from './participation-mail.ts';
import { readMailData } from './read-mail-data.ts';
import { selectMails } from './select-mails.ts';
import { type MailIntent, storeNewMail } from './store-mail.ts';
import { writeParticipationMail } from './write-participation-mail.ts';

export interface ResendRequest extends ParticipationKey {
  mailId: string;
}

/**
 * Writes a finished mail about a participation again, from the present data, and queues it as a new mail. Rejects with
 * `provider.not_found`, `participation.not_found`, `mail.not_found`, also if the recipient or the provider was
 * erased, `mail.pending` if the mail or another copy of it waits, `mail.outdated` if the participation has changed since,
 * or if it is too late for a reminder, or `mail.address_missing`.
 */
export async function resendMail(
  dependencies: NotificationDependencies,
  request: ResendRequest,
): Promise<ParticipationMail> {
  const { crmId } = request;
  // What rejects a request does not concern its repetition, which only gets the mail that the first one has created.
  const [written] = await Promise.allSettled([writeCopy(dependencies, request)]);
  return transactOnce(dependencies.database, crmId, {
    work: (tx) => {
      if (written.status === 'rejected') throw written.reason;
      return storeCopy(tx, written.value);
    },
    keep: ({ id }) => ({ resourceIds: [id], created: true }),
    replay: (tx, { resourceIds }) => readMail(tx, crmId, resourceIds[0]!),
  });
}

async function writeCopy(dependencies: NotificationDependencies, request: ResendRequest): Promise<MailIntent> {
  const { crmId, mailId } = request;
  const participationId = await findParticipationId(dependencies, request);
  const original = await requireMail(dependencies.database.kysely, { crmId, participationId, mailId });
  if (original.state === 'pending') throw new DomainError('mail.pending');
  const { version, actor, expiresAt } = original;
  if (expiresAt !== null && expiresAt <= new Date()) {
    throw new DomainError('mail.outdated', { text: 'It is too late to send this mail again.' });
  }
  const { template } = original;
  const mailData = await readMailData(dependencies, { crmId, participationId, version, template });
  if (mailData.currentVersion > version) throw new DomainError('mail.outdated');
  const mail = await writeParticipationMail(dependencies, {
    crmId,
    participationId,
    version,
    mail: changeOf(original),
    actor: actor ?? '',
    mailData,
  });
  if (mail === undefined) throw new DomainError('mail.address_missing');
  return {
    ...mail,
    eventId: randomUUID(),
    resendOf: original.resendOf ?? original.id,
    expiresAt: expiresAt ?? undefined,
  };
}

function changeOf({ template, calendarMethod }: Selectable<MailTable>): MailOfChange {
  return { template: template as MailOfChange['template'], calendar: calendarMethod ?? undefined };
}

async function storeCopy(tx: Transaction<NotificationSchema>, copy: MailIntent): Promise<ParticipationMail> {
  await rejectOutdated(tx, copy);
  const id = await storeNewMail(tx, copy).catch((error: unknown) => {
    throw isUniqueViolation(error, 'mail_copy') ? new DomainError('mail.pending') : error;
  });
  // The person or the provider was erased in the meantime.
  if (id === null) throw new DomainError('mail.not_found');
  return readMail(tx, copy.crmId, id);
}

/**
 * The participation may have changed since the data was read, and the mail about that may wait to be written, or may
 * have been sent already.
 */
async function rejectOutdated(
  tx: Transaction<NotificationSchema>,
  { crmId, aboutId, version }: MailIntent,
): Promise<void> {
  const later = await selectMails(tx)
    .select('id')
    .where('crmId', '=', crmId)
    .where('aboutId', '=', aboutId)
    .where('version', '>', version)
    .limit(1)
    .executeTakeFirst();
  if (later !== undefined) throw new DomainError('mail.outdated');
}

async function readMail(tx: Transaction<NotificationSchema>, crmId: string, id: string): Promise<ParticipationMail> {
  const row = await selectParticipationMails(tx, crmId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => new DomainError('mail.not_found'));
  return describeMail(row);
}
