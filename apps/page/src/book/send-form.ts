import type { GetPageChoiceResponse, PageTime } from '@scheduling/contracts/calendar/v1';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clients } from '../clients.ts';
import { type Page, renderPage, sendPage } from '../render-page.ts';
import { backToPage, canBookMore, sendUsed } from './describe-invited.ts';
import { type BookingForm, formPage } from './describe-form.ts';
import { isTaken } from './send-week.ts';
import type { ChosenPlace } from './page-links.ts';
import { type AskedPage, choiceOf, pageOf } from './page-request.ts';
import { findOffer, type OpenPage, type PageVisit } from './page-visit.ts';

/** What was sent and not booked. */
export type RefusedForm = Pick<BookingForm, 'typed' | 'problems' | 'error' | 'shownPrice'>;

/** Sends the form of what is chosen as it is now, or says that it has been sent. */
export type SendForm = (
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  chosen: ChosenPlace,
  form: RefusedForm,
) => Promise<FastifyReply>;

/** Who has sent it, and what, is said to nobody else. */
export function sentPage(visit: PageVisit): Page {
  const { sent, invited } = visit.texts.book;
  // The form of whoever is invited has no address.
  const text = visit.kept.for === undefined ? sent.text : invited.sent;
  return renderPage('notice', visit.frame, { title: sent.title, text, back: backToPage(visit) });
}

export function createFormSender({ bookingPages }: Clients, openPage: OpenPage): SendForm {
  /** What is chosen; neither place nor nearest times if it is booked. */
  async function findPlace(
    { offer, at: resourceReference, start, with: resource }: ChosenPlace,
    of: AskedPage & { choice: string },
    wasSent: boolean,
  ): Promise<GetPageChoiceResponse & { nearest?: PageTime[] }> {
    try {
      return await bookingPages.getPageChoice({ ...of, offer, resourceReference, start });
    } catch (error) {
      // Where nothing was typed, the week can be shown instead.
      if (!isTaken(error) || !wasSent) throw error;
      const wish = { ...of, offer, resourceReference: resource, start };
      const { page, times } = await bookingPages.listNearestPageTimes(wish);
      return { page, nearest: times };
    }
  }

  return async (request, reply, status, chosen, form) => {
    const choice = choiceOf(request);
    const { page, place, nearest } = await findPlace(chosen, { ...pageOf(request), choice }, request.method === 'POST');
    const visit = await openPage(request, page);
    if (place === undefined && nearest === undefined) return sendPage(reply, 200, sentPage(visit));
    if (!canBookMore(visit)) return sendUsed(request, reply, visit);
    const content = {
      ...form,
      choice,
      chosen,
      offer: findOffer(visit.page, chosen.offer)!,
      place,
      nearest: nearest ?? [],
    };
    if (place === undefined) return sendPage(reply, 409, formPage(visit, { ...content, error: 'taken' }));
    return sendPage(reply, status, formPage(visit, content));
  };
}
