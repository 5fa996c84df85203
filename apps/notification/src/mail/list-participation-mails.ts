import type { NotificationDependencies } from '../dependencies.ts';
import {
  describeMail,
  findParticipationId,
  type ParticipationKey,
  type ParticipationMail,
  selectParticipationMails,
} from './participation-mail.ts';

const maxListed = 500;

/**
 * The mails about a participation that are kept, oldest first; of more than 500 the newest ones. Rejects with
 * `provider.not_found` or `participation.not_found`.
 */
export async function listParticipationMails(
  dependencies: NotificationDependencies,
  key: ParticipationKey,
): Promise<ParticipationMail[]> {
  const participationId = await findParticipationId(dependencies, key);
  const rows = await selectParticipationMails(dependencies.database.kysely, key.crmId)
    .where('aboutId', '=', participationId)
    // An id begins with the time.
    .orderBy('id', 'desc')
    .limit(maxListed)
    .execute();
  return rows.toReversed().map(describeMail);
}
