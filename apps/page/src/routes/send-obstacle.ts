import { ParticipationState } from '@scheduling/contracts/calendar/v1';
import { DomainError, type ErrorCode } from '@scheduling/errors';
import type { FastifyReply } from 'fastify';
import { describeObstacle, obstacleTo } from '../describe-obstacle.ts';
import { hasCode } from '../has-code.ts';
import { renderPage, sendPage } from '../render-page.ts';
import type { Action } from '../texts/texts.ts';
import type { Visit } from '../visit.ts';

/** Says why the person cannot do this, if so; undefined otherwise. */
export function sendObstacle(reply: FastifyReply, visit: Visit, action: Action): FastifyReply | undefined {
  const obstacle = obstacleTo(action, visit.booking);
  if (obstacle === undefined) return undefined;
  return sendPage(reply, 200, renderPage('notice', visit.frame, describeObstacle(visit, action, obstacle)));
}

/** Says why nothing has changed. The booking is as it was found after the attempt. */
export function sendRefusal(reply: FastifyReply, visit: Visit, action: Action): FastifyReply {
  // It may have become possible again in the meantime; then nobody knows better than the provider.
  const obstacle = obstacleTo(action, visit.booking) ?? 'notOffered';
  const status = visit.booking.state === ParticipationState.CANCELED ? 200 : 409;
  return sendPage(reply, status, renderPage('notice', visit.frame, describeObstacle(visit, action, obstacle)));
}

const refusals: readonly string[] = ['link.too_late', 'link.not_allowed'] satisfies ErrorCode[];

/** Whether calendar has refused to do it, and changed nothing. */
export function isRefusal(error: unknown): boolean {
  return error instanceof DomainError && refusals.includes(error.code);
}

/** Whether the booking begins at another time than the question has shown, and nothing was changed. */
export function isChanged(error: unknown): boolean {
  return hasCode(error, 'link.changed');
}
