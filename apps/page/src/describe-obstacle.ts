import { type OwnBooking, ParticipationState } from '@scheduling/contracts/calendar/v1';
import { describeAdvice } from './describe-advice.ts';
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
export function describeObstacle(visit: Visit, action: Action, obstacle: Obstacle): PageContent {
  const { texts, links } = visit;
  const { title, text } = texts.obstacles[action][obstacle];
  // What is cancelled or has begun leaves nothing to arrange.
  const isSettled = obstacle === 'cancelled' || (obstacle === 'tooLate' && action === 'attend');
  return {
    title,
    text,
    advice: isSettled ? undefined : describeAdvice(visit),
    back: { href: links.booking(), text: texts.backToBooking },
  };
}
