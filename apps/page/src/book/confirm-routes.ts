import type { GetPendingBookingResponse, PageTime } from '@scheduling/contracts/calendar/v1';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import type { Clients } from '../clients.ts';
import { hasCode } from '../has-code.ts';
import { fieldOf } from '../form-posts.ts';
import { sendPage } from '../render-page.ts';
import { tokenOf } from '../visit.ts';
import { confirmPage, type ConfirmForm, limitPage } from './describe-confirm.ts';
import { readShownPrice } from './describe-form.ts';
import { pageLinks } from './page-links.ts';
import { keptOf, placeValueOf } from './page-request.ts';
import type { OpenPage } from './page-visit.ts';
import { isTaken } from './send-week.ts';

interface ConfirmDependencies {
  clients: Clients;
  openPage: OpenPage;
  basePath: string;
  limit: onRequestAsyncHookHandler;
}

/** Whoever has the mail about a booking asks for it to be made. */
export function confirmRoutes({ clients: { bookingPages }, openPage, basePath, limit }: ConfirmDependencies) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/confirm/:token', (request, reply) => sendQuestion(request, reply, 200, undefined));

    app.post('/confirm/:token', { onRequest: limit }, async (request, reply) => {
      const place = placeValueOf(fieldOf(request, 'slot') ?? '');
      if (place === undefined) return sendQuestion(request, reply, 409, undefined);
      const price = readShownPrice(fieldOf(request, 'price') ?? '');
      try {
        const { page, receipt } = await bookingPages.confirmPendingBooking({
          token: tokenOf(request),
          resourceReference: place.at,
          start: place.start,
          price,
        });
        return await reply.redirect(pageLinks(basePath, page!.providerId, keptOf(request)).done(receipt), 303);
      } catch (error) {
        if (isTaken(error)) return sendQuestion(request, reply, 409, 'taken');
        if (hasCode(error, 'booking_page.changed')) return sendQuestion(request, reply, 409, 'changed', place);
        if (hasCode(error, 'booking_page.limit_reached')) return sendLimit(request, reply);
        throw error;
      }
    });
  };

  /**
   * The question as it is now; what is booked already leads on.
   *
   * @param other the place that was asked for, if it is another one than the mail says
   */
  async function sendQuestion(
    request: FastifyRequest,
    reply: FastifyReply,
    status: number,
    error: ConfirmForm['error'],
    other?: ReturnType<typeof placeValueOf>,
  ): Promise<FastifyReply> {
    const pending = await bookingPages.getPendingBooking({ token: tokenOf(request) });
    const { page, receipt, language } = pending;
    if (receipt !== undefined)
      return reply.redirect(pageLinks(basePath, page!.providerId, keptOf(request)).done(receipt), 303);
    const visit = await openPage(request, page, language);
    const found = other === undefined ? pending : await findOther(pending, other);
    const nearest = found.place === undefined || error === 'taken' ? await findNearest(pending) : [];
    const isGone = found.place === undefined;
    const shown = { pending: found, nearest, error: isGone ? ('taken' as const) : error };
    return sendPage(reply, isGone ? 409 : status, confirmPage(visit, shown));
  }

  /** What can be booked at another place than the mail says. */
  async function findOther(
    pending: GetPendingBookingResponse,
    { at: resourceReference, start }: NonNullable<ReturnType<typeof placeValueOf>>,
  ): Promise<GetPendingBookingResponse> {
    const { page, choice, offer } = pending;
    try {
      const { providerId } = page!;
      const { place } = await bookingPages.getPageChoice({ providerId, offer, resourceReference, start, choice });
      return { ...pending, place, resourceReference, start };
    } catch (error) {
      if (!isTaken(error)) throw error;
      return { ...pending, place: undefined };
    }
  }

  async function findNearest({ page, offer, start, choice }: GetPendingBookingResponse): Promise<PageTime[]> {
    const wish = { providerId: page!.providerId, offer, start, choice };
    return (await bookingPages.listNearestPageTimes(wish)).times;
  }

  async function sendLimit(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { page, language } = await bookingPages.getPendingBooking({ token: tokenOf(request) });
    return sendPage(reply, 409, limitPage(await openPage(request, page, language)));
  }
}
