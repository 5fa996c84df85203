import { DomainError } from '@scheduling/errors';
import { isUuid } from '@scheduling/runtime';
import type { Kysely, Selectable } from 'kysely';
import type { MailTable, NotificationSchema } from '../db/schema.ts';
import type { NotificationDependencies } from '../dependencies.ts';
import { errorOfMail, type MailError } from './error-of-mail.ts';
import { selectMails } from './select-mails.ts';

/** By the references of its provider and its own. */
export interface ParticipationKey {
  crmId: string;
  providerReference: string;
  participationReference: string;
}

/** A mail about a participation as its CRM sees it (interface 4.3): nothing in it is personal. */
export interface ParticipationMail extends Pick<
  Selectable<MailTable>,
  'id' | 'template' | 'state' | 'attempts' | 'createdAt' | 'finishedAt'
> {
  error: MailError | undefined;
}

/**
 * The id of a participation. Rejects with `provider.not_found` or `participation.not_found`, and with
 * `service.unavailable` if calendar does not answer.
 */
export async function findParticipationId(
  { participations }: NotificationDependencies,
  key: ParticipationKey,
): Promise<string> {
  return (await participations.getParticipation(key)).id;
}

/** The row of a mail about a participation. Rejects with `mail.not_found`, or `mail.pending` if it is not written. */
export async function requireMail(
  db: Kysely<NotificationSchema>,
  { crmId, participationId, mailId }: { crmId: string; participationId: string; mailId: string },
): Promise<Selectable<MailTable>> {
  if (!isUuid(mailId)) throw new DomainError('mail.not_found');
  const unwritten = await db
    .selectFrom('unwrittenMail')
    .select('id')
    .where('crmId', '=', crmId)
    .where('id', '=', mailId)
    .where('aboutId', '=', participationId)
    .executeTakeFirst();
  if (unwritten !== undefined) throw new DomainError('mail.pending');
  return db
    .selectFrom('mail')
    .selectAll()
    .where('crmId', '=', crmId)
    .where('id', '=', mailId)
    .where('aboutId', '=', participationId)
    .executeTakeFirstOrThrow(() => new DomainError('mail.not_found'));
}

export function selectParticipationMails(db: Kysely<NotificationSchema>, crmId: string) {
  return selectMails(db)
    .select(['id', 'template', 'state', 'attempts', 'lastError', 'createdAt', 'finishedAt'])
    .where('crmId', '=', crmId);
}

export function describeMail({
  lastError,
  ...mail
}: Omit<ParticipationMail, 'error'> & { lastError: string | null }): ParticipationMail {
  return { ...mail, error: errorOfMail(lastError) };
}
