import { ago, type CleanUp } from '@scheduling/postgres';
import type { WebhookSchema } from './db/schema.ts';
import { deleteOldEvents, keptDays } from './feed/delete-old-events.ts';
import { forgetPreviousSecrets } from './webhook/forget-previous-secrets.ts';

const hourMs = 60 * 60 * 1_000;

/** Everything that webhook deletes by itself, and when. */
export const webhookCleanUps: CleanUp<WebhookSchema>[] = [
  { name: `the removal of events after ${keptDays} days`, remove: deleteOldEvents, everyMs: hourMs },
  // What is remembered of subjects that are gone, as long as their events are kept.
  { table: 'latestVersion', column: 'goneAt', before: ago(`${keptDays} days`), everyMs: hourMs },
  { table: 'webhookAttempt', column: 'attemptedAt', before: ago('7 days'), everyMs: hourMs },
  { name: 'the removal of secrets that no longer sign', remove: forgetPreviousSecrets, everyMs: hourMs },
];
