import { ago, type CleanUp } from '@scheduling/postgres';
import type { WebhookSchema } from './db/schema.ts';
import { deleteOldEvents, keptDays } from './feed/delete-old-events.ts';

const hourMs = 60 * 60 * 1_000;

/** What webhook deletes by itself, and when; secrets that no longer sign are deleted by `startResealing`. */
export const webhookCleanUps: CleanUp<WebhookSchema>[] = [
  { name: `the removal of events after ${keptDays} days`, remove: deleteOldEvents, everyMs: hourMs },
  // What is remembered of subjects that are gone, as long as their events are kept.
  { table: 'latestVersion', column: 'goneAt', before: ago(`${keptDays} days`), everyMs: hourMs },
  { table: 'webhookAttempt', column: 'attemptedAt', before: ago('7 days'), everyMs: hourMs },
];
