import type { ParticipationChanged } from '@scheduling/contracts/events/v1';
import { type EventDefinition, events } from '@scheduling/events';

/** The event of a change of a participation: with or without the mail that belongs to it. */
export function changeEvent(notify: boolean): EventDefinition<ParticipationChanged> {
  return notify ? events.participationChanged : events.participationChangedSilently;
}
