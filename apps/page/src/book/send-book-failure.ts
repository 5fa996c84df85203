import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clients } from '../clients.ts';
import { describeAdvice } from '../describe-advice.ts';
import { fieldOf } from '../form-posts.ts';
import { hasCode } from '../has-code.ts';
import { renderPage, sendPage } from '../render-page.ts';
import { sendFailure, type SendFailure } from '../send-failure.ts';
import { invitationLimitPage, sendUsed } from './describe-invited.ts';
import { pageOf } from './page-request.ts';
import type { OpenPage, PageVisit } from './page-visit.ts';

/** Says what is wrong with an invitation, or that one is needed; every other failure is sent as on all pages. */
export function createBookFailures({ bookingPages }: Clients, openPage: OpenPage): SendFailure {
  return async (error, request, reply) => {
    if (!isOfProvider(request)) return sendFailure(error, request, reply);
    if (hasCode(error, 'booking_page.invited_only')) return sendNotice(request, reply, 403, 'invitedOnly');
    if (hasCode(error, 'link.not_found')) return sendNotice(request, reply, 404, 'deadInvitation');
    if (hasCode(error, 'booking_page.invitation_used')) return sendUsed(request, reply, await visitOf(request));
    if (hasCode(error, 'booking_page.limit_reached'))
      return sendPage(reply, 409, invitationLimitPage(await visitOf(request), fieldOf(request, 'message')));
    return sendFailure(error, request, reply);
  };

  async function visitOf(request: FastifyRequest): Promise<PageVisit> {
    const { page } = await bookingPages.getBookingPage(pageOf(request));
    return openPage(request, page);
  }

  async function sendNotice(
    request: FastifyRequest,
    reply: FastifyReply,
    status: number,
    failure: 'invitedOnly' | 'deadInvitation',
  ): Promise<FastifyReply> {
    const { page } = await bookingPages.getBookingPage({ providerId: pageOf(request).providerId, closed: true });
    const visit = await openPage(request, page);
    const { failures, book } = visit.texts;
    const advice = describeAdvice(visit, book.invited.orAsk);
    return sendPage(reply, status, renderPage('notice', visit.frame, { ...failures[failure], advice }));
  }
}

/** Not of the link in a mail, which names no provider. */
function isOfProvider({ params }: FastifyRequest): boolean {
  return typeof params === 'object' && params !== null && 'provider' in params;
}
