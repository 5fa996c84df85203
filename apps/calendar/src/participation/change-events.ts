import type { ParticipationChanged } from '@scheduling/contracts/events/v1';
import { events } from '@scheduling/events';
import { appendEvent, outboxJson } from '@scheduling/messaging';
import type { Transaction } from 'kysely';
import type { CalendarSchema } from '../db/schema.ts';

/** Records changes in their transaction, each on the subject for changes with or without a mail. */
export async function appendChanges(tx: Transaction<CalendarSchema>, changes: ParticipationChanged[]): Promise<void> {
  await appendEvent(tx, events.participationChanged, ...changes.filter(({ notify }) => notify));
  await appendEvent(tx, events.participationChangedSilently, ...changes.filter(({ notify }) => !notify));
}

/** The same for a SQL function that writes the change and its event at once. */
export function changeJson(change: ParticipationChanged) {
  return outboxJson(change.notify ? events.participationChanged : events.participationChangedSilently, change);
}
