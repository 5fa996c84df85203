import { type OwnBooking, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { contactOf } from '@scheduling/presentation';
import type { PageContent } from './render-page.ts';
import type { Action, Obstacle } from './texts/texts.ts';
import type { Visit } from './visit.ts';

/** Why the person cannot do this now; undefined if they can. */
export function obstacleTo(action: Action, booking: OwnBooking): Obstacle | undefined {
  const { isPossible, until } = possibility(action, booking);
  if (isPossible) return undefined;
  if (booking.state === ParticipationState.CANCELED) return 'cancelled';
  return until !== undefined && until <= booking.now! ? 'tooLate' : 'notOffered';
}

function possibility(action: Action, booking: OwnBooking): { isPossible: boolean; until: Date | undefined } {
  switch (action) {
    case 'cancel':
      return { isPossible: booking.cancellable, until: booking.cancellableUntil };
    case 'move':
      return { isPossible: booking.movable, until: booking.movableUntil };
    case 'attend':
      return { isPossible: booking.confirmable, until: booking.start };
    default:
      return action satisfies never;
  }
}

/** The page that says so, and whom to ask. */
export function describeObstacle({ texts, provider, links }: Visit, action: Action, obstacle: Obstacle): PageContent {
  const { title, text } = texts.obstacles[action][obstacle];
  return {
    title,
    text,
    contact: obstacle === 'cancelled' ? undefined : { text: texts.contact, lines: contactOf(provider) },
    back: { href: links.booking(), text: texts.backToBooking },
  };
}
